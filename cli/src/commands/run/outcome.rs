//! What is said at the end of a run: how it went, what failed, what is done next, and why it could not go on.

use counterproof_artifact::CaseId;
use counterproof_runner::{ResumeError, RunError, Settings, Summary, Target};
use counterproof_store::{CreateError, LockError, ReopenError, RunReader};

use super::command::Args;
use super::failure_hints;
use crate::command_error::CommandError;
use crate::connect_error;
use crate::reporter::{Failures, Style};
use crate::run_plan::Passes;
use crate::streams::Streams;

/// Says how one run went.
pub(super) fn tell(
    args: &Args,
    settings: &Settings,
    summary: &Summary,
    failures: &Failures,
    streams: &mut Streams,
) -> Result<(), CommandError> {
    let counts = &summary.counts;
    // Of the cases that failed before, the classes are not known here.
    let classes = if counts.failed > 0 && counts.kept == 0 { format!(" ({failures})") } else { String::new() };
    let not_run = if counts.not_run() > 0 { format!(", {} not run", counts.not_run()) } else { String::new() };
    let kept = if counts.kept > 0 { format!("; {} complete before", counts.kept) } else { String::new() };
    let line = format!(
        "{}: {} ok, {} failed{classes}, {} retried{not_run}{kept}",
        counted(counts.selected, "case"),
        counts.answered,
        counts.failed,
        counts.retried
    );
    streams.note(line);
    // A log has named each when it ended.
    if args.reporter == Style::Human {
        let is_program = matches!(settings.target, Target::Command(_));
        let ended =
            |case_id: &CaseId| if is_program { failure_hints::ended(&summary.folder, case_id) } else { String::new() };
        for failure in failures.lines(ended) {
            streams.note(format_args!("  {failure}"));
        }
    }
    if counts.over_budget > 0 {
        streams.note(format_args!(
            "the retry budget was spent: {} failed that would have been tried again",
            counted(counts.over_budget, "case")
        ));
    }
    if args.reporter != Style::Jsonl {
        streams.say(format_args!("run folder: {}", summary.folder))?;
    }
    for hint in failure_hints::all(&settings.target, summary, failures) {
        streams.note(format_args!("hint: {hint}"));
    }
    if !summary.interrupted && !summary.reached && counts.selected > 0 {
        return Err(connect_error::error(&settings.target, &summary.folder, failures.first_asked())
            .hint("the artifacts in the run folder tell of each attempt"));
    }
    if !summary.interrupted && counts.not_asked > 0 {
        let message = format!(
            "the agent at {} was given up; not run: {}",
            settings.target.recorded(),
            counted(counts.not_asked, "case")
        );
        return Err(CommandError::io(message)
            .hint("the artifacts in the run folder tell of each attempt")
            .hint("`--resume` asks the cases that were not run"));
    }
    Ok(())
}

/// Says what is usually done next.
pub(super) fn next(args: &Args, shared: &Settings, passes: &Passes, streams: &mut Streams) {
    let side = shared.out.join(shared.side.as_str());
    for (number, pass) in passes.runs.iter().enumerate() {
        let start = if number == 0 { "next: " } else { "      " };
        streams.note(format_args!("{start}counterproof validate {}", side.join(pass.run_id.as_str())));
    }
    let other = shared.side.other();
    if let Some(part) = passes.runs.first().and_then(|pass| pass.part.as_ref()) {
        let whole = side.join(part.run_id.as_str());
        streams.note(format_args!(
            "      when all {} shards are done: counterproof merge {whole}-s*of{} --out {whole}",
            part.shard.count(),
            part.shard.count()
        ));
    } else if RunReader::open_latest(&args.out, other).is_ok() {
        streams.note(format_args!("      counterproof compare --runs {} --cases {}", args.out, args.cases));
    } else {
        streams.note(format_args!("      run the side {other} too, then counterproof compare"));
    }
}

pub(super) fn run_error(error: RunError, resume: &str) -> CommandError {
    match error {
        RunError::Create(CreateError::Exists(_)) => CommandError::usage(error)
            .hint("choose another `--run-id`; a run is never written over")
            .hint("a run that was stopped goes on with `--resume` in place of `--run-id`"),
        RunError::Create(CreateError::Lock(LockError::Held(_)))
        | RunError::Resume(ResumeError::Reopen(ReopenError::Lock(LockError::Held(_)))) => {
            CommandError::usage(error).hint("wait until it is done, or stop it")
        }
        RunError::SecretName(_) => {
            CommandError::usage(error).hint("names of files cannot be masked: choose another id, or another secret")
        }
        RunError::Resume(ResumeError::Changed { .. }) => CommandError::usage(error)
            .hint("resume with the cases and settings it was started with, or start a new run"),
        RunError::Resume(ResumeError::Reopen(ReopenError::Missing(_))) => {
            CommandError::usage(error).hint("start the run with `--run-id` in place of `--resume`")
        }
        // What is finished stays, so a full disk costs no more than the cases in flight.
        RunError::Write(_) => CommandError::io(error).hint(format!("what is finished is kept; to go on: {resume}")),
        _ => CommandError::io(error),
    }
}

pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
