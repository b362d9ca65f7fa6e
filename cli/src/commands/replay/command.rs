//! Runs the command: sends the saved request again, and prints how the answer differs.

use camino::Utf8Path;
use counterproof_artifact::{CaseId, Exit};
use counterproof_cases::{CaseSpec, Expected, Input, Metadata};
use counterproof_evaluator::{Artifact, ComparedRun, Differences, Rules, WithEvidence, follow_evidence, messages};
use counterproof_runner::{Environment, Silent};
use counterproof_store::RunReader;

use super::args::Args;
use super::options::{Action, ReplayOptions, SendOptions, TargetChoice};
use super::recorded_case::RecordedCase;
use crate::command_error::CommandError;
use crate::connect_error::connect_error;
use crate::streams::Streams;

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let ReplayOptions { case, action, target } = ReplayOptions::new(args)?;
    let recorded = RecordedCase::read(&case)?;
    match action {
        Action::PrintCommand => {
            streams.print_line(target.shell_command(&recorded.request)?)?;
            Ok(Exit::Done)
        }
        Action::Send(options) => send(recorded, &target, &options, streams),
    }
}

/// Sends the request and prints how the new answer differs from the recorded one.
fn send(
    recorded: RecordedCase,
    target: &TargetChoice,
    options: &SendOptions,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    if recorded.request.masked {
        streams.warn("the saved request has a redacted secret, so it differs from the request that was sent");
    }
    let temporary = tempfile::tempdir().map_err(CommandError::io)?;
    let out = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| CommandError::io("the path of the temporary folder is not UTF-8"))?;
    let settings = options.settings(&recorded, target, out)?;
    let cases = [placeholder_case(&recorded.case_id)];
    let summary = counterproof_runner::run(&settings, &cases, Environment::from_system(), &mut Silent)
        .map_err(CommandError::io)?;
    if !summary.reached {
        return Err(connect_error(&settings.target, &summary.folder, Some(&recorded.case_id)));
    }
    let replayed = RunReader::open(&summary.folder).map_err(CommandError::io)?;
    let baseline = ComparedRun::new(recorded.reader).load(&recorded.case_id);
    let new = ComparedRun::new(replayed).load(&recorded.case_id);
    print_differences(&baseline, &new, &options.config.rules, streams)
}

/// Returns a case with the given ID and no content: the runner resends the saved request and reads only the ID.
fn placeholder_case(id: &CaseId) -> CaseSpec {
    CaseSpec {
        id: id.clone(),
        title: None,
        input: Input { user: String::new(), context: None, extra: counterproof_artifact::Extra::new() },
        expected: Expected::default(),
        metadata: Metadata::default(),
        suite: None,
        extra: counterproof_artifact::Extra::new(),
    }
}

fn print_differences(
    baseline: &Artifact,
    new: &Artifact,
    rules: &Rules,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let (Some(old), Some(other)) = (baseline.answer(), new.answer()) else {
        let message = messages::first_divergence(baseline, new, None).map(|divergence| divergence.message);
        streams.print_line(message.unwrap_or_else(|| "one of the two artifacts violates the contract".to_owned()))?;
        return Ok(Exit::Findings);
    };
    let (old_evidence, new_evidence) = (follow_evidence(old), follow_evidence(other));
    let differences = Differences::between(
        WithEvidence { loaded: old, evidence: &old_evidence },
        WithEvidence { loaded: other, evidence: &new_evidence },
        rules,
    );
    if differences.is_empty() {
        streams.print_line("the answers are equivalent")?;
        return Ok(Exit::Done);
    }
    streams.print_line("the answers differ:")?;
    if let Some(first) = messages::first_divergence(baseline, new, Some(&differences)) {
        streams.print_line(format_args!("  first divergence: {}", first.message))?;
    }
    for row in differences.actions.iter().filter(|row| !row.is_same()) {
        let sentence = messages::action(row, &old.answer.proposed_actions, &other.answer.proposed_actions);
        streams.print_line(format_args!("  action: {sentence}"))?;
    }
    streams.print_line(format_args!("  {}", messages::output(&differences.output)))?;
    Ok(Exit::Findings)
}
