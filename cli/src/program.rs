//! The subcommands, one file each: an `Args` struct whose docs are the help, and one function.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use counterproof_artifact::Exit;

use crate::commands::{
    accept, compare, conformance, demo, demo_agent, export_run, history, merge, replay, report, run, schema, validate,
};
use crate::resume_command::Retold;
use crate::streams::Streams;

/// Tells whether tonight's version of an AI agent is worse than yesterday's.
///
/// Runs a set of cases against an agent, keeps what it did as portable files, compares a new version with a baseline, and
/// writes a report that opens from a folder.
#[derive(Debug, Parser)]
#[command(name = "counterproof", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Merge(merge::Args),
    Compare(compare::Args),
    Report(report::Args),
    History(history::Args),
    Accept(accept::Args),
    Replay(replay::Args),
    Validate(validate::Args),
    Schema(schema::Args),
    ExportRun(export_run::Args),
    Conformance(conformance::Args),
    Demo(demo::Args),
    DemoAgent(demo_agent::Args),
}

/// Runs the program with its arguments, the program's own name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let mut streams = Streams::of_process();
    let parsed = Cli::command()
        .try_get_matches_from(arguments)
        .and_then(|typed| Cli::from_arg_matches(&typed).map(|cli| (cli, typed)));
    let (cli, typed) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and version are no errors, and clap knows where each belongs.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    let result = match cli.command {
        Command::Run(args) => run::run(&args, &retold(&typed), &mut streams),
        Command::Merge(args) => merge::run(&args, &mut streams),
        Command::Compare(args) => compare::run(&args, &mut streams),
        Command::Report(args) => report::run(&args, &mut streams),
        Command::History(args) => history::run(&args, &mut streams),
        Command::Accept(args) => accept::run(&args, &mut streams),
        Command::Replay(args) => replay::run(&args, &mut streams),
        Command::Validate(args) => validate::run(&args, &mut streams),
        Command::Schema(args) => schema::run(&args, &mut streams),
        Command::ExportRun(args) => export_run::run(&args, &mut streams),
        Command::Conformance(args) => conformance::run(&args, &mut streams),
        Command::Demo(args) => demo::run(&args, &mut streams),
        Command::DemoAgent(args) => demo_agent::run(&args, &mut streams),
    };
    result.unwrap_or_else(|error| error.report(&mut streams))
}

/// What was typed for the subcommand.
fn retold(typed: &clap::ArgMatches) -> Retold {
    let (name, typed) = typed.subcommand().unwrap_or(("", typed));
    let command = Cli::command();
    Retold::of(command.find_subcommand(name).unwrap_or(&command), typed)
}
