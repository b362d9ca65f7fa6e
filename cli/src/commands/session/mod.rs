//! `counterproof session`: records, imports, queries and exports whole runs of coding agents. One file per subcommand.

mod bundle;
mod checkpoint;
mod checkpoints;
mod command;
mod export;
mod fork;
mod import;
mod list;
mod opened;
mod overview;
mod pause;
mod prune;
mod record;
mod replay;
mod resume;
mod show;
mod timeline;

pub(crate) use command::{Args, run};
