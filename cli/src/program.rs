//! Parses the command line and dispatches to the subcommand.

use std::ffi::OsString;

use anstream::ColorChoice;
use clap::builder::Resettable;
use clap::{Args as _, CommandFactory, FromArgMatches, Parser, Subcommand};
use counterproof_artifact::{Exit, escape_invisible, harmless};
use counterproof_safe_run::report_file_size_limit;

use crate::command_error::CommandError;
use crate::commands::{
    accept, batch, calibrate, check, compare, completions, config, conformance, contract, demo, demo_agent, export_run,
    guard, history, init, ledger, man, merge, mutate, replay, report, run, schema, session, try_agent, validate,
    workflow,
};
use crate::layers::{self, Layers};
use crate::resume_command::TypedOptions;
use crate::streams::{OutputError, Streams};

/// Finds regressions between two versions of an AI agent.
///
/// Runs a set of cases against an agent, records its answers and tool calls as portable files, compares a new version with a
/// baseline, and writes a report that opens in a browser without a server.
#[derive(Debug, Parser)]
#[command(name = "counterproof", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    /// When to use colours; overrides `NO_COLOR` and `FORCE_COLOR`
    #[arg(long, global = true, value_enum, value_name = "WHEN", hide_short_help = true)]
    color: Option<Colour>,
}

/// When output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Colour {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Colour {
    /// Applies the choice to all output. `NO_COLOR` beats `FORCE_COLOR`, and an option beats both.
    fn apply(chosen: Option<Self>) {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let choice = match chosen {
            Some(Self::Always) => ColorChoice::Always,
            Some(Self::Never) => ColorChoice::Never,
            None if is_set("NO_COLOR") => ColorChoice::Never,
            None if is_set("FORCE_COLOR") => ColorChoice::Always,
            Some(Self::Auto) | None => ColorChoice::Auto,
        };
        choice.write_global();
    }
}

/// What the program prints without a command.
const START: &str = "\
Counterproof finds regressions between two versions of an AI agent.

Start with these commands:
  counterproof init     write cases.yaml and counterproof.toml
  counterproof try      look at one answer of your agent
  counterproof check    run the cases, compare with the baseline, and report the verdict
  counterproof accept   make a run the baseline

`counterproof demo` shows a report in a few seconds. `counterproof --help` lists all commands.";

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Args),
    Try(Box<try_agent::Args>),
    Check(Box<check::Args>),
    Accept(accept::Args),
    Run(Box<run::Args>),
    Merge(merge::Args),
    Batch(batch::Args),
    Compare(compare::Args),
    Report(report::Args),
    History(history::Args),
    Config(config::Args),
    Validate(validate::Args),
    Schema(schema::Args),
    Replay(replay::Args),
    Mutate(mutate::Args),
    Calibrate(calibrate::Args),
    ExportRun(export_run::Args),
    Contract(contract::Args),
    Guard(guard::Args),
    Ledger(ledger::Args),
    Session(Box<session::Args>),
    Workflow(workflow::Args),
    Conformance(conformance::Args),
    Demo(demo::Args),
    DemoAgent(demo_agent::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// The command line, for what is generated from it.
fn command() -> clap::Command {
    Cli::command()
}

pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    // If this fails, a write beyond the limit ends the program, which is all that the limit requires.
    let _ = report_file_size_limit();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    Colour::apply(typed_colour(&arguments));
    let mut streams = Streams::of_process();
    let (cli, layers) = match parse(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => return report_parse_error(error, &arguments, &mut streams),
    };
    let Some(command) = cli.command else {
        let printed = streams.print_line(START);
        return printed.map_or_else(|error| CommandError::from(error).report(&mut streams), |()| Exit::Done);
    };
    let result = match command {
        Command::Init(args) => init::run(&args, &mut streams),
        Command::Try(args) => try_agent::run(&args, &layers, &mut streams),
        Command::Check(args) => {
            let reload = || match parse(&arguments) {
                Ok((Cli { command: Some(Command::Check(args)), .. }, layers)) => Ok((args, layers)),
                Err(ParseError::Layers(error)) => Err(error),
                Ok(_) | Err(ParseError::Arguments(_)) => {
                    Err(CommandError::usage("the options do not fit the changed configuration"))
                }
            };
            check::run(args, layers, &reload, &mut streams)
        }
        Command::Run(args) => run::run(&args, &layers, &mut streams),
        Command::Config(args) => config::run(&args, &layers, &mut streams),
        Command::Merge(args) => merge::run(&args, &mut streams),
        Command::Batch(args) => batch::run(&args, &mut streams),
        Command::Compare(args) => compare::run(&args, &layers, &mut streams),
        Command::Report(args) => report::run(&args, &mut streams),
        Command::History(args) => history::run(&args, &mut streams),
        Command::Accept(args) => accept::run(&args, &layers, &mut streams),
        Command::Mutate(args) => mutate::run(&args, &layers, &mut streams),
        Command::Calibrate(args) => calibrate::run(&args, &layers, &mut streams),
        Command::Replay(args) => replay::run(&args, &mut streams),
        Command::Validate(args) => validate::run(&args, &all_options(), &mut streams),
        Command::Schema(args) => schema::run(&args, &mut streams),
        Command::ExportRun(args) => export_run::run(&args, &mut streams),
        Command::Contract(args) => contract::run(&args, &mut streams),
        Command::Guard(args) => guard::run(&args, &mut streams),
        Command::Ledger(args) => ledger::run(&args, &mut streams),
        Command::Session(args) => session::run(&args, &mut streams),
        Command::Workflow(args) => workflow::run(&args, &mut streams),
        Command::Conformance(args) => conformance::run(&args, &mut streams),
        Command::Demo(args) => demo::run(&args, &mut streams),
        Command::DemoAgent(args) => demo_agent::run(&args, &mut streams),
        Command::Completions(args) => completions::run(&args, &self::command(), &mut streams),
        Command::Man(args) => man::run(&args, &self::command(), &mut streams),
    };
    result.unwrap_or_else(|error| error.report(&mut streams))
}

/// Returns the value of `--color`, before the command line is parsed: errors of the parser have colours too.
fn typed_colour(arguments: &[OsString]) -> Option<Colour> {
    let mut words = arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    let value = words.find_map(|word| word.strip_prefix("--color"))?;
    let value = if value.is_empty() { words.next()? } else { value.strip_prefix('=')? };
    <Colour as clap::ValueEnum>::from_str(value, true).ok()
}

/// Why a command line cannot be carried out.
enum ParseError {
    /// The arguments are invalid, or ask for help.
    Arguments(clap::Error),
    /// The environment or the configuration is invalid.
    Layers(CommandError),
}

/// Parses the command line, with the values of the environment and of the configuration as defaults.
fn parse(arguments: &[OsString]) -> Result<(Cli, Layers), ParseError> {
    let command = without_empty_variables(Cli::command());
    // A lower source may have an option that is required.
    let Ok(first) = layers::relaxed(command.clone()).try_get_matches_from(arguments) else {
        let matches = command.try_get_matches_from(arguments).map_err(ParseError::Arguments)?;
        let cli = Cli::from_arg_matches(&matches).map_err(ParseError::Arguments)?;
        return Ok((cli, Layers::default()));
    };
    let (command, mut layers) = layers::apply(command, &first, &all_options()).map_err(ParseError::Layers)?;
    let matches = command.try_get_matches_from(arguments).map_err(ParseError::Arguments)?;
    let cli = Cli::from_arg_matches(&matches).map_err(ParseError::Arguments)?;
    layers.typed = typed_options(&matches);
    Ok((cli, layers))
}

/// Returns a command with all options that `[run]` names.
fn all_options() -> clap::Command {
    check::Args::augment_args(clap::Command::new("check"))
}

/// Makes options ignore environment variables that are empty, as if they were not set.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let value = argument.get_env().and_then(std::env::var_os);
        // An empty text would be an invalid value of the option.
        if value.is_some_and(|value| value.is_empty()) { argument.env(Resettable::Reset) } else { argument }
    });
    command.mut_subcommands(without_empty_variables)
}

/// Reports why a command line cannot be carried out. `check --format json` prints one document in any case.
fn report_parse_error(error: ParseError, arguments: &[OsString], streams: &mut Streams) -> Exit {
    let wants_json = check::wants_json(arguments);
    let (message, exit) = match error {
        ParseError::Arguments(error) if wants_json && error.use_stderr() => {
            (error.render().to_string(), print_parse_error(&error, arguments, streams))
        }
        ParseError::Arguments(error) => return print_parse_error(&error, arguments, streams),
        ParseError::Layers(error) => (error.message(), error.report(streams)),
    };
    if wants_json && let Err(error) = check::print_json_error(exit, &message, streams) {
        return error.report(streams);
    }
    exit
}

/// Prints the message of clap, which has styles and quotes arguments. Returns the exit code.
fn print_parse_error(error: &clap::Error, arguments: &[OsString], streams: &mut Streams) -> Exit {
    if !error.use_stderr() {
        // `--help` and `--version`, on standard output. They quote no argument.
        let failure = error.print().err().and_then(OutputError::from_io);
        return failure.map_or(Exit::Done, |error| CommandError::from(error).report(streams));
    }
    // Arguments may come from a script with text of others, and clap quotes them as they are.
    let escaped: Vec<OsString> = arguments.iter().map(|it| harmless_argument(&it.to_string_lossy()).into()).collect();
    // The message about the escaped arguments quotes no harmful text, so it may keep its styles.
    match parse(&escaped) {
        Err(ParseError::Arguments(error)) if error.use_stderr() => drop(error.print()),
        _ => streams.log(error.render().to_string().trim_end()),
    }
    Exit::Usage
}

/// Spells out line breaks as well: an argument is quoted within a line.
fn harmless_argument(argument: &str) -> String {
    harmless(&escape_invisible(argument))
}

fn typed_options(matches: &clap::ArgMatches) -> TypedOptions {
    let (name, matches) = matches.subcommand().unwrap_or(("", matches));
    let command = Cli::command();
    TypedOptions::new(command.find_subcommand(name).unwrap_or(&command), matches)
}
