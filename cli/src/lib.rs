//! The command line of Counterproof: parses arguments, calls the crates that do the work, and turns their results into
//! text and an exit code. It decides nothing about a case.

mod agent_args;
mod cases_file;
mod certificates;
mod command_error;
mod commands;
mod comparison_summary;
mod config;
mod confirm_args;
mod confirmations;
mod connect_error;
mod document_kind;
mod environment;
mod findings;
mod json_text;
mod named_runs;
mod open_files;
mod program;
mod progress_bar;
mod report_context;
mod report_output;
mod reporter;
mod request_command;
mod resume_command;
mod run_identity;
mod run_plan;
mod shell;
mod signals;
mod source_excerpt;
mod step_summary;
mod streams;
mod value_parsers;
mod writer;

pub use program::run;
