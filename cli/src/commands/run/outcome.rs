//! Log output at the end of a run: counts, failures, hints and next steps.

use camino::Utf8Path;
use counterproof_artifact::{CaseId, Exit, FailureClass, Side};
use counterproof_evaluator::text;
use counterproof_runner::{ClaimError, Reason, ResumeError, RunError, Settings, Summary, Target};
use counterproof_store::{CreateError, LockError, ReopenError, RunReader, TakenOver, read_file};
use serde_json::Value;

use crate::command_error::{CERTIFICATE_HINT, CommandError, PROXY_HINT, WAIT_OR_STOP, connect_error, recorded_failure};
use crate::reporter::{FailureSummary, ReporterKind};
use crate::resume_command;
use crate::run_plan::RunPlan;
use crate::streams::Streams;

pub(super) fn log_outcome(
    (reporter, prints_folder): (ReporterKind, bool),
    settings: &Settings,
    summary: &Summary,
    failures: &FailureSummary,
    streams: &mut Streams,
) -> Result<(), CommandError> {
    let counts = counts_line(summary, failures);
    match &settings.confirmation {
        None => {
            streams.log(counts);
            warn_about_baseline(settings, summary, streams);
        }
        // A confirmation run has flipped cases only, so failures are expected.
        Some(plan) => {
            // A case without an answer may run more often than planned.
            let count = plan.count.max(plan.index);
            streams.log(format_args!("{} of {count} as {}: {counts}", plan.index, settings.side));
        }
    }
    // Repeats and confirmations lack the same parts.
    if !summary.filled_in.is_empty()
        && settings.confirmation.is_none()
        && settings.repeat.as_ref().is_none_or(|repeat| repeat.number == 1)
    {
        let part = |(name, cases): (&String, &usize)| format!("{name} ({})", text::count(*cases, "case", "cases"));
        let parts: Vec<_> = summary.filled_in.iter().map(part).collect();
        streams.log(format_args!("filled in: {}", parts.join(", ")));
    }
    // The other reporters have logged each failure when it happened.
    if reporter == ReporterKind::Human {
        let is_program = matches!(settings.target, Target::Command(_));
        let detail = |case_id: &CaseId| {
            let exit = if is_program { program_exit(&summary.folder, case_id) } else { String::new() };
            format!("{exit}{}", reason_of_failure(&summary.folder, case_id))
        };
        for failure in failures.lines(detail) {
            streams.log(format_args!("  {failure}"));
        }
    }
    if summary.counts.over_budget > 0 {
        let cases = text::count(summary.counts.over_budget, "case", "cases");
        streams.log(format_args!("retry budget exhausted: {cases} failed without further retries"));
    }
    // The folders of confirmation runs follow from the folder of the run.
    if prints_folder && settings.confirmation.is_none() {
        streams.print_line(format_args!("run folder: {}", summary.folder))?;
    }
    for hint in hints(&settings.target, summary, failures) {
        streams.log(format_args!("hint: {hint}"));
    }
    Ok(())
}

/// The least share of its cases that a baseline has to answer, in percent. Below it, a comparison shows little.
const BASELINE_ANSWERED_PERCENT: usize = 90;

/// Warns, in red on a terminal, about a baseline that lacks answers: cases without one cannot regress.
fn warn_about_baseline(settings: &Settings, summary: &Summary, streams: &mut Streams) {
    let counts = &summary.counts;
    let asked = counts.answered + counts.failed;
    if settings.side == Side::Baseline && counts.answered * 100 < asked * BASELINE_ANSWERED_PERCENT {
        streams.warn_in_red(format_args!(
            "the baseline answered {} of {}; cases without an answer cannot be compared",
            counts.answered,
            text::count(asked, "case", "cases")
        ));
    }
}

/// Formats the counts, such as `6 cases: 2 ok, 4 failed (3 http_error, 1 timeout), 2 retried`.
fn counts_line(summary: &Summary, failures: &FailureSummary) -> String {
    let counts = &summary.counts;
    // `failures` lacks the cases that failed before a resumed run was stopped, so the classes would not add up.
    let classes =
        if counts.failed > 0 && counts.already_complete == 0 { format!(" ({failures})") } else { String::new() };
    let not_run = if counts.not_run() > 0 { format!(", {} not run", counts.not_run()) } else { String::new() };
    let earlier = if counts.already_complete > 0 {
        format!("; {} completed earlier", counts.already_complete)
    } else {
        String::new()
    };
    format!(
        "{}: {} ok, {} failed{classes}, {} retried{not_run}{earlier}",
        text::count(counts.selected, "case", "cases"),
        counts.answered,
        counts.failed,
        counts.retried
    )
}

/// Returns an error if no attempt reached the agent, or cases were skipped because it looked down.
pub(super) fn check_reached(
    settings: &Settings,
    summary: &Summary,
    failures: &FailureSummary,
    resume_command: Option<&str>,
) -> Result<(), CommandError> {
    const SEE_ARTIFACTS: &str = "the artifacts in the run folder contain the details of each attempt";

    let counts = &summary.counts;
    if !summary.reached && counts.selected > 0 {
        return Err(connect_error(&settings.target, &summary.folder, failures.first_attempted()).hint(SEE_ARTIFACTS));
    }
    if let Some(limit) = &summary.limit {
        let skipped = text::count(counts.skipped, "case", "cases");
        return Err(CommandError::findings(format!("{limit}; skipped {skipped}")).hint(SEE_ARTIFACTS));
    }
    if counts.skipped > 0 {
        let skipped = text::count(counts.skipped, "case", "cases");
        let message = format!("the agent at {} looks down; skipped {skipped}", settings.target.recorded());
        let error = CommandError::io(message).hint(SEE_ARTIFACTS);
        return Err(match resume_command {
            Some(command) => error.hint(format!("run the skipped cases: {command}")),
            None => error,
        });
    }
    Ok(())
}

pub(super) fn log_next_steps(shared: &Settings, plan: &RunPlan, streams: &mut Streams) {
    let side = shared.out.join(shared.side.as_str());
    let run_shard = plan.runs.first().and_then(|run| run.shard.as_ref());
    // The run that is validated is the merged one.
    for (number, run) in plan.runs.iter().filter(|_| run_shard.is_none()).enumerate() {
        let prefix = if number == 0 { "next: " } else { "      " };
        streams.log(format_args!(
            "{prefix}counterproof validate {}",
            resume_command::path(&side.join(run.run_id.as_str()))
        ));
    }
    let other = shared.side.other();
    if let Some(run_shard) = run_shard {
        let merged = resume_command::path(&side.join(run_shard.run_id.as_str()));
        let count = run_shard.shard.count();
        streams.log(format_args!("next: after all {count} shards: counterproof merge --shards {count} --out {merged}"));
    // `compare` needs a run of each side.
    } else if RunReader::open_latest(&shared.out, other).is_ok() {
        let (runs, cases) = (resume_command::path(&shared.out), resume_command::path(&shared.cases_path));
        streams.log(format_args!("      counterproof compare --runs {runs} --cases {cases}"));
    } else {
        streams.log(format_args!("      counterproof run --side {other} …, then counterproof compare"));
    }
}

const MAX_QUOTED_CHARS: usize = 160;

/// Returns the exit code or signal of the failed agent program, with a leading space; an empty string if it is zero or unknown.
pub(super) fn program_exit(folder: &Utf8Path, case_id: &CaseId) -> String {
    let failure = recorded_failure(folder, case_id);
    let number = failure.as_ref().and_then(|failure| {
        let field = ["exit_code", "signal"].into_iter().find_map(|field| failure.extra.get(field));
        field.and_then(Value::as_i64).filter(|number| *number != 0)
    });
    number.map(|number| format!(" {number}")).unwrap_or_default()
}

/// Returns the first line of the reason of a failure, after a colon: what the agent said about it, the first violation of an
/// answer, or the message.
fn reason_of_failure(folder: &Utf8Path, case_id: &CaseId) -> String {
    let Some(failure) = recorded_failure(folder, case_id) else { return String::new() };
    let is = |reason: Reason| failure.error_name.as_deref() == Some(reason.name());
    let violation = failure.extra.get("violations").and_then(|violations| {
        let violation = violations.get(0)?;
        let message = violation.get("message")?.as_str()?;
        let pointer = violation.get("pointer")?.as_str().filter(|pointer| !pointer.is_empty());
        Some(pointer.map_or_else(|| message.to_owned(), |pointer| format!("{pointer}: {message}")))
    });
    let reason = if failure.class == FailureClass::HttpError {
        // The status is named already.
        failure.body_snippet.unwrap_or_default()
    } else if is(Reason::AgentExit) || is(Reason::AgentSignal) {
        let file = failure.extra.get("stderr_saved_to").and_then(Value::as_str);
        let stderr = file.and_then(|file| read_file::read(&folder.join(file), read_file::MAX_SMALL_BYTES).ok());
        let stderr = String::from_utf8_lossy(&stderr.unwrap_or_default()).into_owned();
        stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    } else {
        violation.or(failure.error_message).unwrap_or_default()
    };
    let first = reason.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    if first.is_empty() { String::new() } else { format!(": {}", text::one_line(first, MAX_QUOTED_CHARS)) }
}

pub(super) fn hints(target: &Target, summary: &Summary, failures: &FailureSummary) -> Vec<String> {
    let mut hints: Vec<_> = first_stderr(summary, failures).into_iter().collect();
    hints.extend(first_violation(summary, failures));
    if matches!(target, Target::Http(_)) && failures.common_status(summary.counts.selected) == Some(404) {
        hints.push("every case failed with status 404; check that the path of `--base-url` is correct".to_owned());
    }
    if let Some(timed_out) = failures.count(Reason::ResponseTimeout) {
        let cases = text::count(timed_out, "case", "cases");
        hints.push(format!(
            "{cases} got no answer in time; if the agent needs longer, raise `--timeout`, or `timeout` below `[run]` in counterproof.toml"
        ));
    }
    // Usually a log line before the answer.
    if matches!(target, Target::Command(_)) && failures.has(Reason::NotJson) {
        hints.push(
            "an agent program must write only the answer to standard output, and logs to standard error".to_owned(),
        );
    }
    if failures.has(Reason::Tls) {
        hints.push(CERTIFICATE_HINT.to_owned());
    }
    if failures.has(Reason::ProxyFailed) {
        hints.push(PROXY_HINT.to_owned());
    }
    if failures.has(Reason::BodyTooLarge) {
        hints.push("raise the size limits with `--max-body-bytes` and `--max-answer-bytes`".to_owned());
    }
    hints
}

/// Points to the standard error of the first case if all cases failed for the same reason: it usually has the cause.
fn first_stderr(summary: &Summary, failures: &FailureSummary) -> Option<String> {
    // Failures of different kinds have different causes, and the errors of one case would mislead.
    let reason = failures.common_reason(summary.counts.selected)?;
    let case_id = failures.first_attempted()?;
    let failure = recorded_failure(&summary.folder, case_id)?;
    let file = failure.extra.get("stderr_saved_to")?.as_str()?;
    let file = summary.folder.join(file);
    Some(format!("every case failed as `{reason}`; see the standard error of {case_id}: {file}"))
}

/// Quotes the first violation of the first case if the answers of all cases violate the contract: the others are likely the same.
fn first_violation(summary: &Summary, failures: &FailureSummary) -> Option<String> {
    let reason = failures.common_reason(summary.counts.selected)?;
    if reason != Reason::ContractViolated.name() {
        return None;
    }
    let case_id = failures.first_attempted()?;
    let failure = recorded_failure(&summary.folder, case_id)?;
    let violation = failure.extra.get("violations")?.get(0)?;
    let pointer = violation.get("pointer")?.as_str()?;
    // The pointer of the whole answer is empty.
    let at =
        if pointer.is_empty() { String::new() } else { format!(" at {}", text::one_line(pointer, MAX_QUOTED_CHARS)) };
    let message = text::one_line(violation.get("message")?.as_str()?, MAX_QUOTED_CHARS);
    let file = summary.folder.join(format!("{case_id}.json"));
    Some(format!(
        "every case failed as `{reason}`; the first violation of {case_id}{at}: {message}; see \
         `runner_failure.violations` in {file}"
    ))
}

/// Maps an error of claiming a shard.
pub(crate) fn claim_error(error: ClaimError) -> CommandError {
    match error {
        ClaimError::Read(_) | ClaimError::Write(_) => CommandError::io(error),
        ClaimError::Name { .. } => CommandError::usage(error).hint("use a shorter ID"),
        ClaimError::Changed { .. } => CommandError::usage(error)
            .hint("take the shard over with the cases and settings that the run was started with, or start a new run"),
    }
}

/// Maps an error of a run. `resume_command` is the command line that continues it.
pub(crate) fn run_error(error: RunError, resume_command: &str) -> CommandError {
    match error {
        RunError::Create(CreateError::Exists(_)) => CommandError::usage(error)
            .hint("choose another `--run-id`; runs are never overwritten")
            .hint("to continue a stopped run, replace `--run-id` with `--resume`"),
        RunError::Create(CreateError::Lock(LockError::Busy(_)))
        | RunError::Resume(ResumeError::Reopen(ReopenError::Lock(LockError::Busy(_)))) => {
            CommandError::usage(error).hint(WAIT_OR_STOP)
        }
        RunError::Request { .. } => CommandError::usage(error)
            .hint("give the case the value, or take the placeholder out of `body` in `[side.new.http]`"),
        RunError::SecretRunId | RunError::SecretCaseId { .. } => {
            CommandError::usage(error).hint("file names cannot be redacted: choose another id or another secret")
        }
        RunError::Resume(ResumeError::Changed { .. }) => CommandError::usage(error)
            .hint("resume with the cases and settings that the run was started with, or start a new run"),
        RunError::Resume(ResumeError::Reopen(ReopenError::Missing(_))) => {
            CommandError::usage(error).hint("to start the run, replace `--resume` with `--run-id`")
        }
        RunError::Resume(ResumeError::Reopen(ReopenError::Packed(_))) => {
            CommandError::usage(error).hint("unpack run.zip in the run folder and remove it, or start a new run")
        }
        RunError::Claim(error) => claim_error(error),
        RunError::Write(error) if TakenOver::of(&error).is_some() => CommandError::io(error.source),
        // Completed cases stay on disk, so a full disk costs only the cases in flight.
        RunError::Write(_) => {
            CommandError::io(error).hint(format!("completed cases are saved; resume with: {resume_command}"))
        }
        RunError::Interrupted => CommandError::new(Exit::Interrupted, error),
        _ => CommandError::io(error),
    }
}
