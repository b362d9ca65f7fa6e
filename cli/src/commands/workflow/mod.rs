//! `counterproof workflow`: an agent fixes a test or implements a feature in a copy of a repository.

mod command;
mod drive;
mod run;

pub(crate) use command::{Args, run};
pub(crate) use drive::{Outside, control, drive, end, failed, home, secrets};
pub(crate) use run::{ReplacedArgs, replace};
