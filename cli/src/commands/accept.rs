//! `counterproof accept`: a new run in, a baseline out.

use camino::Utf8PathBuf;
use counterproof_artifact::{Exit, RunId, Side};
use counterproof_evaluator::values::text;
use counterproof_runner::{AcceptError, Acceptance, Clock, SystemClock};
use counterproof_store::{ReadError, RunReader};

use crate::command_error::CommandError;
use crate::commands::compare;
use crate::streams::Streams;

/// Make a new run the baseline that the next ones are compared with.
///
/// Copies the run folder to RUNS/baseline, where `counterproof compare` finds it as the latest, and keeps the reason in its
/// run.json. The copy is there whole, or not at all; the run and earlier baselines stay as they are. All repeats of a group
/// are accepted together, whichever of them is named.
///
/// Refuses a run that was stopped, lacks artifacts, is a shard, breaks the contract, or has cases without an answer.
///
/// Exit code 0: done. 1: the run cannot be the baseline as it is. 2: there is no such run, or a baseline has its name. 3: a
/// file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run folder to accept [default: the latest below RUNS/new]
    new: Option<Utf8PathBuf>,

    /// Why, for whoever asks later
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,

    /// Who says so
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// Where the runs are kept
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    runs: Utf8PathBuf,

    /// Names the baseline, or the group of its repeats [default: as the run]
    #[arg(long, value_name = "ID")]
    run_id: Option<RunId>,

    /// Accept a run in which cases have no answer: what new does there will never count as worse
    #[arg(long)]
    allow_failures: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let folder = match &args.new {
        Some(folder) => folder.clone(),
        None => latest(args, streams)?,
    };
    let acceptance = Acceptance {
        reason: args.reason.clone(),
        by: args.by.clone(),
        at: SystemClock::start().read().iso(),
        run_id: args.run_id.clone(),
        allow_failures: args.allow_failures,
    };
    let baseline = match counterproof_runner::accept(&folder, &args.runs, &acceptance) {
        Ok(baseline) => baseline,
        Err(error) => return refused(error, streams),
    };
    for folder in &baseline.folders {
        streams.say(format_args!("baseline: {folder} ({})", text::count(baseline.cases, "case", "cases")))?;
    }
    if baseline.unresolved > 0 {
        let refs = text::count(baseline.unresolved, "evidence ref leads", "evidence refs lead");
        streams.note(format_args!("note: {refs} nowhere, and will not count as lost when new has none either"));
    }
    streams.note("next: run the side new again, then counterproof compare");
    Ok(Exit::Done)
}

fn latest(args: &Args, streams: &mut Streams) -> Result<Utf8PathBuf, CommandError> {
    let latest = RunReader::latest(&args.runs, Side::New).map_err(|error| match error {
        ReadError::NoRun { .. } => {
            CommandError::usage(error).hint("`counterproof run --side new …` makes one; or name a run folder")
        }
        ReadError::OnlyShards { .. } => CommandError::usage(error).hint(compare::MERGE_FIRST),
        ReadError::Io { .. } | ReadError::Document { .. } => CommandError::io(error),
    })?;
    let chosen = latest.run.folder().to_owned();
    for error in &latest.skipped {
        streams.note(format_args!("warning: {error}, so `{chosen}` may not be the latest run"));
    }
    Ok(chosen)
}

/// Tells why a run is refused. What is wrong with the run itself is a finding, and no mistake of the command line.
fn refused(error: AcceptError, streams: &mut Streams) -> Result<Exit, CommandError> {
    use AcceptError::{
        Exists, Failures, Incomplete, Invalid, IsBaseline, IsShard, Lock, Name, Path, Read, Repeats, Write,
    };
    let remedy = error.remedy();
    let (error, is_finding) = match error {
        Read(_) | Path(_) | Lock(_) | Write(_) => (CommandError::io(error), false),
        Name { .. } | IsBaseline(_) | Exists(_) => (CommandError::usage(error), false),
        IsShard(_) | Incomplete { .. } | Invalid { .. } | Failures { .. } | Repeats { .. } => {
            (CommandError::usage(error), true)
        }
    };
    let error = match remedy {
        Some(remedy) => error.hint(remedy),
        None => error,
    };
    if !is_finding {
        return Err(error);
    }
    error.report(streams);
    Ok(Exit::Findings)
}

fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() { Err("say why, for whoever asks later".to_owned()) } else { Ok(text.to_owned()) }
}
