//! The command line: what was typed becomes a call into the crates that do the work, and what they say becomes text and
//! an exit code. Nothing about a case is decided here.

mod agent;
mod command_error;
mod commands;
mod config;
mod curl;
mod findings;
mod open_files;
mod passes;
mod progress;
mod retold;
mod rounds;
mod signals;
mod streams;
mod suite;
mod summary;
mod surroundings;
mod told;
mod unreached;
mod values;

pub use commands::run;
