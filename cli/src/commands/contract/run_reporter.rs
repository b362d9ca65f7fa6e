//! What a run of contracts prints: its progress (a bar on a terminal, lines elsewhere), its summary, and its errors with their
//! exit codes.

use std::error::Error;
use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_artifact::{Exit, Side, harmless, with_causes};
use counterproof_contracts::StoreError;
use counterproof_contracts::execution::RollbackOutcome;
use counterproof_contracts::execution::{ExecutionError, VerificationStatus};
use counterproof_contracts::run_many::{ContractEnd, RunStep, Selected};
use counterproof_evaluator::text;
use counterproof_store::RunReader;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::project::Project;
use super::run_folder::WrittenRun;
use crate::command_error::CommandError;
use crate::resume_command;
use crate::streams::{OutputError, Streams};

/// Interval at which the elapsed time is redrawn.
const TICK: Duration = Duration::from_millis(200);

/// Reports the steps of a run on standard error.
pub(super) struct RunReporter {
    bar: ProgressBar,
    running: Mutex<Vec<String>>,
    /// True if each contract gets lines when it ends.
    has_lines: bool,
}

impl RunReporter {
    /// Creates a reporter for this many contracts.
    pub(super) fn new(contracts: usize, is_json: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let target = if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(contracts as u64), target);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {elapsed}  {msg}");
        // The template is a constant, so it is always valid.
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        if is_terminal {
            bar.enable_steady_tick(TICK);
        }
        // With `--json`, the reasons are in the document.
        Self { bar, running: Mutex::default(), has_lines: !is_json }
    }

    /// Reports a step.
    pub(super) fn observe(&self, step: &RunStep<'_>) {
        let mut running = self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match step {
            RunStep::Began(selected) => running.push(selected.contract.id.to_string()),
            RunStep::Ended(selected, end) => {
                running.retain(|id| id != selected.contract.id.as_str());
                self.bar.inc(1);
                if self.has_lines {
                    self.print(selected.contract.id.as_str(), end);
                }
            }
        }
        self.bar.set_message(running.join(", "));
    }

    fn print(&self, id: &str, end: &ContractEnd) {
        let mut lines = vec![format!("{:<16} {id}", end_word(end))];
        lines.extend(reasons(end).into_iter().map(|reason| format!("    {reason}")));
        for line in lines {
            let line = harmless(&line);
            // With a hidden bar, `println` of the bar prints nothing.
            if self.bar.is_hidden() {
                anstream::eprintln!("{line}");
            } else {
                self.bar.println(line);
            }
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Returns how a contract ended, in one or two words.
pub(super) fn end_word(end: &ContractEnd) -> &'static str {
    match end {
        ContractEnd::Executed(execution) => match execution.verdict {
            VerificationStatus::Met => "met",
            VerificationStatus::AlreadyMet => "met before",
            VerificationStatus::AwaitsApproval => "needs approval",
            VerificationStatus::NotMet => "not met",
            VerificationStatus::Interrupted => "interrupted",
        },
        ContractEnd::Refused(_) => "not run",
        ContractEnd::Blocked { .. } => "blocked",
        ContractEnd::NotBegun => "not begun",
        ContractEnd::Interrupted => "interrupted",
    }
}

/// Returns why a contract is not met, and what was done about it, one sentence each.
pub(super) fn reasons(end: &ContractEnd) -> Vec<String> {
    match end {
        ContractEnd::Executed(execution) => {
            let mut lines = execution.reasons.clone();
            if let Some(rollback) = &execution.rollback {
                let word = match rollback.outcome {
                    RollbackOutcome::RolledBack => "rolled back",
                    RollbackOutcome::Refused => "rollback refused",
                    RollbackOutcome::Failed => "rollback failed",
                };
                lines.push(format!("{word}: {}", rollback.message));
                lines.extend(rollback.way_back.as_ref().map(|way| format!("restore with: {way}")));
            }
            if execution.verdict == VerificationStatus::AwaitsApproval {
                let id = &execution.contract.id;
                lines.push(format!("decide with `counterproof contract approve {id} --reason …`, or `reject`"));
            }
            let shows_evidence = !execution.verdict.is_met();
            lines.extend(execution.evidence.iter().filter(|_| shows_evidence).map(|path| format!("evidence: {path}")));
            lines
        }
        ContractEnd::Refused(error) => vec![with_causes(error)],
        ContractEnd::Blocked { by, state: None } => vec![format!("its dependency `{by}` is not met")],
        ContractEnd::Blocked { by, state: Some(state) } => vec![format!("its dependency `{by}` is {state}")],
        ContractEnd::NotBegun => Vec::new(),
        ContractEnd::Interrupted => vec!["the next run continues it".to_owned()],
    }
}

/// Prints the result.
pub(super) fn print(
    selected: &[Selected],
    ends: &[ContractEnd],
    written: &WrittenRun,
    project: &Project,
    streams: &mut Streams,
) -> Result<(), Failure> {
    let met = ends.iter().filter(|end| end.is_met()).count();
    let rows = selected.iter().zip(ends).map(|(selected, end)| {
        let mut row = json!({
            "id": selected.contract.id, "version": selected.contract.version, "result": end_word(end), "met": end.is_met(),
            "reasons": reasons(end),
        });
        match end {
            ContractEnd::Executed(execution) => {
                row["state"] = json!(execution.state);
                row["evidence"] = json!(execution.evidence);
            }
            ContractEnd::Refused(error) => row["code"] = json!(error.code()),
            ContractEnd::Blocked { .. } | ContractEnd::NotBegun | ContractEnd::Interrupted => {}
        }
        row
    });
    let document = json!({
        "met": met, "contracts": rows.collect::<Vec<Value>>(), "run": written.folder, "cases": written.cases,
    });
    project.print(streams, &document, || {
        let met = format!(
            "{met} of {} met\nrun folder: {}",
            text::count(ends.len(), "contract", "contracts"),
            written.folder
        );
        // `compare` needs a run of each side.
        if !has_both_sides(&written.folder) {
            return met;
        }
        format!("{met}\ncompare two runs: counterproof compare --cases {}", resume_command::path(&written.cases))
    })
}

/// Whether the folder of all runs has runs of both sides. `folder` is one of the runs.
fn has_both_sides(folder: &Utf8Path) -> bool {
    let runs = folder.parent().and_then(Utf8Path::parent);
    runs.is_some_and(|runs| Side::BOTH.iter().all(|side| RunReader::open_latest(runs, *side).is_ok()))
}

/// A failed subcommand.
#[derive(Debug)]
pub(super) struct Failure {
    code: &'static str,
    error: CommandError,
}

impl Failure {
    /// Creates a failure with exit code 2 and this code.
    pub(super) fn refused(code: &'static str, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { code, error: CommandError::usage(error) }
    }

    /// Creates a failure with exit code 3.
    pub(super) fn io(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { code: "storage_error", error: CommandError::io(error) }
    }

    /// Adds a remedy.
    pub(super) fn hint(self, hint: impl std::fmt::Display) -> Self {
        Self { code: self.code, error: self.error.hint(hint) }
    }

    /// Returns the error without its code.
    pub(super) fn into_error(self) -> CommandError {
        self.error
    }

    /// Prints the failure as JSON.
    pub(super) fn print(self, streams: &mut Streams) -> Result<Exit, CommandError> {
        let mut document = json!({ "error": { "code": self.code, "message": self.error.message() } });
        if !self.error.hints().is_empty() {
            document["error"]["hints"] = json!(self.error.hints());
        }
        streams.print_document(&crate::streams::to_json(&document))?;
        Ok(self.error.exit())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (code, hint) = (error.code(), error.hint());
        let error = if error.is_io() { CommandError::io(error) } else { CommandError::usage(error) };
        Self { code, error: hint.into_iter().fold(error, CommandError::hint) }
    }
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        let code = error.code();
        Self { code, error: if error.is_io() { CommandError::io(error) } else { CommandError::usage(error) } }
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Self::io(error)
    }
}
