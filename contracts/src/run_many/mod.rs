//! Executes many contracts: in the order of their dependencies, in parallel where they allow it.

mod run;
mod selection;

pub use selection::{preview, Preview};
pub use run::{ContractEnd, RunObserver, RunStep, run_many};
pub use selection::{Selected, Selection, SelectionError, select};
