//! `counterproof workflow`: an agent fixes a test or implements a feature in a copy of a repository.

mod arguments;
mod command;
mod drive;

pub(crate) use arguments::{ReplacedArgs, replace};
pub(crate) use command::{Args, run};
pub(crate) use drive::{Outside, control, drive, end, failed, home, secrets};
