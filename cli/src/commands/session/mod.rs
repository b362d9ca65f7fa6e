//! `counterproof session`: records, imports, queries and exports whole runs of coding agents. One file per subcommand.

mod command;
mod list;
mod opened;
mod overview;
mod prune;
mod record;
mod show;
mod timeline;

pub(crate) use command::{Args, run};
