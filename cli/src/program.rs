//! Parses the command line and dispatches to the subcommand.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use counterproof_artifact::Exit;

use crate::commands::{
    accept, compare, conformance, demo, demo_agent, export_run, history, merge, replay, report, run, schema, validate,
};
use crate::resume_command::TypedOptions;
use crate::streams::Streams;

/// Finds regressions between two versions of an AI agent.
///
/// Runs a set of cases against an agent, records its answers and tool calls as portable files, compares a new version with a
/// baseline, and writes a report that opens in a browser without a server.
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

/// Runs the program. `arguments` starts with the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let mut streams = Streams::of_process();
    let parsed = Cli::command()
        .try_get_matches_from(arguments)
        .and_then(|typed| Cli::from_arg_matches(&typed).map(|cli| (cli, typed)));
    let (cli, typed) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // clap also returns `--help` and `--version` here, and prints them to standard output.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    let result = match cli.command {
        Command::Run(args) => run::run(&args, &typed_options(&typed), &mut streams),
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

/// Returns the options that were typed for the subcommand.
fn typed_options(matches: &clap::ArgMatches) -> TypedOptions {
    let (name, matches) = matches.subcommand().unwrap_or(("", matches));
    let command = Cli::command();
    TypedOptions::new(command.find_subcommand(name).unwrap_or(&command), matches)
}
