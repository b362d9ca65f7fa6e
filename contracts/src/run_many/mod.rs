//! Executes many contracts: in the order of their dependencies, in parallel where they allow it.

mod run;
mod selection;

pub use run::{ContractEnd, RunObserver, RunStep, run_many};
pub use selection::{Preview, Selected, Selection, SelectionError, preview, select};
