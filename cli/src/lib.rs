//! The command line of Counterproof: parses arguments, calls the crates that do the work, and turns their results into
//! text and an exit code. It decides nothing about a case.

mod agent_args;
mod agent_process;
mod cases_file;
mod command_error;
mod commands;
mod comparison_summary;
mod config;
#[cfg(test)]
mod config_errors;
mod config_file;
mod document_errors;
mod environment;
mod findings;
mod layers;
mod named_runs;
mod open_files;
mod program;
mod report_output;
mod reporter;
mod request_args;
mod resume_command;
mod run_plan;
mod side_agent;
mod side_table;
mod signals;
mod streams;
mod value_parsers;
mod working_copies;

pub use program::run;
