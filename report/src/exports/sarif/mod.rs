//! SARIF 2.1.0 (OASIS standard, 2020): the model of a log, and the log of an evaluation.

mod model;
mod results;
mod rules;

pub use model::{
    ArtifactLocation, Configuration, Driver, Fingerprints, Identity, Invocation, Level, Location, Log, LogicalLocation,
    Notification, PhysicalLocation, Region, Rule, Run, SarifResult, Text, Tool,
};
pub(crate) use results::render;
