//! `counterproof session replay`: asks the model again from a checkpoint, with and without a change.

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Exit, harmless};
use counterproof_evaluator::statistics::{CaseTallies, Tally, fisher};
use counterproof_store::read_file;
use counterproof_workflow::run::{Arm, Patch, ReplayError, ReplayOptions, replay, stored_settings};
use serde_json::json;

use super::opened::open;
use crate::command_error::CommandError;
use crate::commands::ledger::Place;
use crate::commands::workflow::{Outside, ReplacedArgs, control, failed, home, replace, secrets};
use crate::streams::{Streams, to_json};

/// Largest content of a patch, in bytes.
const MAX_PATCH: u64 = 16 << 20;

/// Ask the model again from a checkpoint, several times, with and without a change.
///
/// Tool results come from the recording, and a call that was not recorded ends the trial. A trial succeeds if the model reaches its final
/// answer. With `--live-tools`, the tools run in a copy of the workspace, and a trial succeeds if the checks of the workflow pass.
/// Nothing is pushed, and the session is not changed. The p-value is that of Fisher's exact test, two-sided.
///
/// Exit code 2: the checkpoint or the patched record is unknown. 3: the model does not answer. 4: interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Checkpoint, or a session for its newest one
    #[arg(value_name = "CHECKPOINT")]
    id: String,

    /// Trials of each variant
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    times: u64,

    /// Replace the result of the tool call with this number by the text of a file
    #[arg(long, value_name = "SEQ=FILE", value_parser = patch)]
    patch: Option<(u64, Utf8PathBuf)>,

    /// Compare with another model
    #[arg(long, value_name = "NAME", conflicts_with = "patch")]
    other_model: Option<String>,

    /// Run the tools, and the checks of the workflow
    #[arg(long)]
    live_tools: bool,

    #[command(flatten)]
    replaced: ReplacedArgs,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let outside = Outside::new(place)?;
    let home = home(place)?;
    let mut store = open(place, streams)?;
    let mut settings = stored_settings(&mut store, &args.id).map_err(|error| failed(error, place))?;
    let (_, urls) = replace(&args.replaced, &mut settings)?;
    let secrets = secrets(&settings, urls)?;
    let patch = args.patch.as_ref().map(|(seq, path)| read_patch(*seq, path)).transpose()?;
    let options = ReplayOptions {
        times: args.times,
        patch,
        other_model: args.other_model.clone(),
        settings,
        uses_live_tools: args.live_tools,
    };
    let replayed = replay(&home, &mut store, &args.id, &options, &secrets, || control(&outside));
    let (checkpoint_id, arms) = match replayed {
        Err(ReplayError::Interrupted) => return Ok(Exit::Interrupted),
        Err(ReplayError::Begin(error)) => return Err(failed(error, place)),
        Err(error @ ReplayError::NoCall(_)) => {
            return Err(CommandError::usage(error)
                .hint("list the calls with `counterproof session timeline ID --type tool_call`"));
        }
        Err(error @ ReplayError::NothingLeft(_)) => {
            return Err(CommandError::usage(error).hint("replay an earlier checkpoint"));
        }
        Err(error) => return Err(CommandError::io(error)),
        Ok(replayed) => replayed,
    };
    let p_value = p_value(&arms);
    if place.is_json {
        let mode = if args.live_tools { "live-tools" } else { "strict" };
        let document = json!({ "checkpoint_id": checkpoint_id, "mode": mode, "arms": arms, "p_value": p_value });
        streams.print_document(&to_json(&document))?;
    } else {
        streams.print_document(&harmless(&text(&arms, p_value)))?;
    }
    Ok(Exit::Done)
}

/// Both variants have the same number of trials, so the distribution is symmetric, and the two-sided value twice the one-sided one.
fn p_value(arms: &[Arm]) -> Option<f64> {
    let [one, other] = arms else { return None };
    let tally = |arm: &Arm| {
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Tally::new(count(arm.succeeded), count(arm.trials - arm.succeeded))
    };
    let (fewer, more) = if one.succeeded <= other.succeeded { (one, other) } else { (other, one) };
    Some((2.0 * fisher(CaseTallies { baseline: tally(more), new: tally(fewer) })).min(1.0))
}

fn text(arms: &[Arm], p_value: Option<f64>) -> String {
    let mut text = String::new();
    for arm in arms {
        let _ = writeln!(text, "{:<12} {} of {} succeed", arm.name.replace('_', " "), arm.succeeded, arm.trials);
    }
    if let Some(p) = p_value {
        let verdict = if p < 0.05 { "the change matters" } else { "no difference is shown" };
        let _ = writeln!(text, "{verdict} (p {p:.3})");
    }
    text
}

fn patch(text: &str) -> Result<(u64, Utf8PathBuf), String> {
    let (seq, path) = text.split_once('=').ok_or("expected SEQ=FILE")?;
    let seq = seq.parse().map_err(|_| format!("`{seq}` is not the number of a record"))?;
    Ok((seq, path.into()))
}

fn read_patch(seq: u64, path: &Utf8Path) -> Result<Patch, CommandError> {
    let bytes = read_file::read(path, MAX_PATCH)
        .map_err(|error| CommandError::io(format!("cannot read the patch `{path}`: {error}")))?;
    let content =
        String::from_utf8(bytes).map_err(|_| CommandError::usage(format!("the patch `{path}` is not UTF-8")))?;
    Ok(Patch { seq, content })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(trials: u64, succeeded: u64) -> Arm {
        Arm { name: "recorded", trials, succeeded }
    }

    #[test]
    fn five_of_five_against_none_of_five_is_no_chance() {
        let p = p_value(&[arm(5, 0), arm(5, 5)]).unwrap();
        assert!((p - 2.0 / 252.0).abs() < 1e-12, "{p}");
        assert_eq!(p_value(&[arm(5, 5), arm(5, 0)]), Some(p));
        assert_eq!(p_value(&[arm(5, 3), arm(5, 3)]), Some(1.0));
        assert_eq!(p_value(&[arm(5, 3)]), None);
    }
}
