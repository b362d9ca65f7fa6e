//! The verdict of a check in its output formats.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, GateOutcome};
use counterproof_artifact::{Exit, harmless};
use counterproof_evaluator::{RankedCase, Standing, evaluation_text, gate_headline, is_unconfirmed, text, worst_first};
use counterproof_report::SUMMARY_UP_TO_BYTES;
use serde_json::{Value, json};

use super::args::{Args, Format};
use super::selection::has_no_answer;
use crate::command_error::CommandError;
use crate::comparison_summary::{self, Detail};
use crate::findings::workflow_command;
use crate::report_output::report_context;
use crate::streams::{Streams, to_json};

/// How many cases GitHub shows as annotations. It drops those after the tenth of a step.
const MAX_ANNOTATIONS: usize = 10;

const MAX_REASON_CHARS: usize = 300;

/// The result of a check.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) exit: Exit,
    /// The id of the baseline run.
    pub(super) baseline: Option<String>,
    /// The folder of the new run; `None` if no case was selected.
    pub(super) run: Option<Utf8PathBuf>,
    pub(super) report: Option<Utf8PathBuf>,
    /// How to decide the cases that look worse; `None` without a baseline.
    pub(super) decide: Option<String>,
    /// What a person does next.
    pub(super) next: Option<String>,
    /// Why the run failed, although the gate may have passed.
    pub(super) answered_too_few: Option<String>,
    /// Why there is no evaluation.
    pub(super) nothing: &'static str,
    pub(super) evaluation: Option<Evaluation>,
}

impl Checked {
    /// The result if no case is left to run, for a reason.
    pub(super) const fn nothing(reason: &'static str) -> Self {
        Self {
            exit: Exit::Done,
            baseline: None,
            run: None,
            report: None,
            decide: None,
            next: None,
            answered_too_few: None,
            nothing: reason,
            evaluation: None,
        }
    }
}

/// Prints a check for a person or a code host, and opens its report if that was asked for.
pub(super) fn print(args: &Args, checked: &Checked, streams: &mut Streams) -> Result<(), CommandError> {
    let Some(evaluation) = &checked.evaluation else {
        streams.print_line(checked.nothing)?;
        return Ok(());
    };
    let report = checked.report.as_deref().unwrap_or(Utf8Path::new(""));
    match args.format {
        Format::Github => {
            streams.print_document(&annotations(evaluation))?;
            streams.print_line(gate_headline(evaluation))?;
            print_decide(checked, evaluation, streams)?;
        }
        Format::Markdown => {
            let context = report_context(evaluation, args.cases.as_deref(), args.report_url.as_ref());
            let pages = args.files.pages(evaluation.cases.len());
            let summary = counterproof_report::summary(evaluation, &context, pages, SUMMARY_UP_TO_BYTES);
            streams.print_document(&summary.unwrap_or_default())?;
        }
        Format::Human | Format::Json => {
            let detail = if args.verbose { Detail::Full } else { Detail::Brief };
            if args.quiet {
                streams.print_summary(&gate_headline(evaluation))?;
                print_decide(checked, evaluation, streams)?;
            } else {
                streams.print_summary(&comparison_summary::render(evaluation, detail, checked.decide.as_deref()))?;
                streams.print_line(format_args!("report: {report}"))?;
            }
        }
    }
    if let Some(failure) = &checked.answered_too_few {
        streams.log(format_args!("the run failed: {failure}"));
    }
    if let (Some(next), false) = (&checked.next, args.quiet) {
        streams.log(next);
    }
    if args.open {
        open_in_browser(report, streams);
    }
    Ok(())
}

/// Prints how to decide, after a headline that stands alone.
fn print_decide(checked: &Checked, evaluation: &Evaluation, streams: &mut Streams) -> Result<(), CommandError> {
    if let Some(decide) = checked.decide.as_ref().filter(|_| is_unconfirmed(evaluation)) {
        streams.print_line(decide)?;
    }
    Ok(())
}

/// Prints the one JSON document of a check, also if it failed.
pub(super) fn print_json(
    checked: Result<Option<Checked>, CommandError>,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let (exit, document) = match checked {
        Ok(Some(checked)) => (checked.exit, document(&checked)),
        Ok(None) => (Exit::Interrupted, error_document(Exit::Interrupted, "the check was interrupted")),
        Err(error) => {
            for hint in error.hints() {
                streams.log(format_args!("hint: {hint}"));
            }
            (error.exit(), error_document(error.exit(), &error.message()))
        }
    };
    streams.print_document(&to_json(&document))?;
    Ok(exit)
}

/// Returns whether the arguments ask for the JSON document of a check, although they may be invalid.
pub(crate) fn wants_json(arguments: &[OsString]) -> bool {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let is_json = |pair: &[&str]| matches!(pair, ["--format", "json"]);
    let is_typed = words.iter().any(|word| *word == "--format" || word.starts_with("--format="));
    let is_chosen = if is_typed {
        words.contains(&"--format=json") || words.windows(2).any(is_json)
    } else {
        std::env::var_os("COUNTERPROOF_FORMAT").is_some_and(|format| format == "json")
    };
    words.contains(&"check") && is_chosen
}

/// Prints the document of a check that could not start.
pub(crate) fn print_json_error(exit: Exit, message: &str, streams: &mut Streams) -> Result<(), CommandError> {
    let first = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
    streams.print_document(&to_json(&error_document(exit, first)))?;
    Ok(())
}

fn error_document(exit: Exit, message: &str) -> Value {
    json!({"schema_version": "check.v1", "outcome": "error", "exit_code": exit.code(), "message": harmless(message)})
}

fn document(checked: &Checked) -> Value {
    let outcome = match (&checked.evaluation, checked.exit) {
        (None, _) => "nothing_to_run",
        (Some(evaluation), exit) => match evaluation.gate.outcome {
            GateOutcome::Passed if exit == Exit::Done => "passed",
            GateOutcome::NotEnoughData => "undecided",
            GateOutcome::NotJudged if exit == Exit::Done => "not_judged",
            GateOutcome::Passed | GateOutcome::Failed | GateOutcome::NotJudged => "failed",
        },
    };
    let cases = checked.evaluation.iter().flat_map(|evaluation| &evaluation.cases).map(|case| {
        let reasons: Vec<_> =
            case.reasons.iter().map(|reason| json!({"code": reason.code, "message": reason.message})).collect();
        json!({
            "case_id": case.case_id,
            "verdict": case.verdict,
            "unconfirmed": case.unconfirmed,
            "met": case.is_judged_on_new().then(|| !case.is_unmet_on_new()),
            "reasons": reasons,
        })
    });
    json!({
        "schema_version": "check.v1",
        "outcome": outcome,
        "exit_code": checked.exit.code(),
        "message": checked.evaluation.as_ref().map_or_else(|| checked.nothing.to_owned(), gate_headline),
        "baseline": checked.baseline,
        "run": checked.run,
        "report": checked.report,
        "decide": checked.decide.as_ref().filter(|_| checked.evaluation.as_ref().is_some_and(is_unconfirmed)),
        "cases": cases.collect::<Vec<_>>(),
    })
}

/// An undecided gate, the convicted cases and those without an answer as annotations of GitHub Actions, worst first.
fn annotations(evaluation: &Evaluation) -> String {
    let is_undecided = evaluation.gate.outcome == GateOutcome::NotEnoughData;
    let undecided = is_undecided.then(|| workflow_command("warning", "counterproof", &gate_headline(evaluation)));
    let annotation = |ranked: &RankedCase<'_>| {
        let level = match ranked.standing {
            Standing::Convicted => "error",
            _ if has_no_answer(ranked.case) => "warning",
            _ => return None,
        };
        let reason = evaluation_text::case_line(evaluation, ranked);
        let reason = if reason.is_empty() { "no answer" } else { &reason };
        Some(workflow_command(level, ranked.case.case_id.as_str(), &text::one_line(reason, MAX_REASON_CHARS)))
    };
    let ranked = worst_first(evaluation);
    // Errors first: GitHub drops those after the tenth.
    let (errors, warnings): (Vec<_>, Vec<_>) =
        ranked.iter().filter_map(annotation).partition(|line| line.starts_with("::error"));
    undecided.into_iter().chain(errors.into_iter().chain(warnings).take(MAX_ANNOTATIONS)).collect()
}

/// Opens a file with the program of the system. A failure is a warning: the path is printed in any case.
fn open_in_browser(report: &Utf8Path, streams: &mut Streams) {
    let (program, first): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start", ""])
    } else {
        ("xdg-open", &[])
    };
    let path = report.canonicalize_utf8().unwrap_or_else(|_| report.to_owned());
    let started = Command::new(program)
        .args(first)
        .arg(path.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = started {
        streams.warn(format_args!("cannot open the report with `{program}`: {error}"));
    }
}
