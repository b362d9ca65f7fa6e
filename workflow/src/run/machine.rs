//! The state machine of a workflow.
//!
//! ```text
//! created ─▶ checkout ─▶ reproduce ─▶ baseline ─▶ localise ─▶ understand ─▶ edit ─▶ target_test ─▶ suite ─▶ lint ─▶ contract
//!                                                    ▲                                                             │
//!                                                    └── a red check, or a red CI ◀── ci ◀── pull_request ◀── push ◀── commit
//! ```
//!
//! Each state is entered with a checkpoint. What a state does can be done again: a commit that was not recorded is made anew, a push
//! of a commit that is there changes nothing, and a pull request is looked for before one is opened.

use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;
use counterproof_contracts::contract::Contract;
use counterproof_contracts::execution::reasons;
use counterproof_contracts::process::{EvidenceFolder, FinishedCommand, contract_variables};
use counterproof_contracts::verification::{VerificationPlan, VerifySettings};
use counterproof_guard::http::UpstreamUrl;
use counterproof_safe_run::Cancellation;
use counterproof_sessions::event::{Command, CommandLine, EventBody, SessionEvent};
use counterproof_store::write::{Durability, WriteError, write};
use counterproof_workspace::{ChangeKind, FileStat, WorkspaceError};
use serde_json::{Value, json};

use super::agent_command::AgentCommandError;
use super::journal::{Journal, JournalError, message};
use super::messages::{
    about_or_last, contract_failure, first_messages, lines_about, neutral, new_failures_text, red_check,
};
use super::replay::{Patcher, ReplayError};
use super::state::{CheckResult, Failure, FailureKind, Outcome, Phase, RunState, Workflow};
use crate::forge::Forge;
use crate::model::{ApiKey, ModelClient, RecordError};
use crate::suite::{
    Finished, Shell, ShellError, Target, TargetVerdict, TestReport, Verdict, has_tests, new_failures, tampered,
    target_verdict, target_verdict_after, tests_added, without_access,
};
use crate::tools::Tools;

/// The most new failures for which the suite runs again. More are not due to chance.
const MAX_REPEATED: usize = 20;

/// How often the suite runs in all if it has new failures.
const RUNS_OF_A_FAILURE: usize = 3;

/// How a run is steered from outside.
pub struct Control<'a> {
    /// Stops the run at once, with a checkpoint.
    pub cancel: Cancellation,
    /// Returns true once if the run of a session shall stop at its next turn.
    pub takes_pause: Box<dyn Fn(&str) -> bool + 'a>,
    /// Receives a line for each step.
    pub progress: Box<dyn Fn(&str) + 'a>,
    /// The program that supervises commands; `None` is this program.
    pub supervisor: Option<PathBuf>,
}

/// A run between its start or its resume, and its end.
pub struct Run<'a> {
    pub(super) state: RunState,
    pub(super) messages: Vec<Value>,
    pub(super) journal: Journal,
    pub(super) model: ModelClient,
    pub(super) tools: Tools,
    pub(super) forge: Box<dyn Forge>,
    pub(super) control: Control<'a>,
    /// A folder for files of the run that are not part of the work.
    pub(super) private: Utf8PathBuf,
    pub(super) api_key: Option<ApiKey>,
    /// The servers of OpenAI and Anthropic requests of an agent command. `None` for the built-in agent.
    pub(super) agent_upstreams: Option<[UpstreamUrl; 2]>,
    /// Whether a request to pause was taken, and not followed yet.
    pub(super) has_pause: bool,
    pub(super) patcher: Patcher,
}

/// How a run stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// [`RunState::outcome`] has the result.
    Ended,
    Paused,
    Interrupted,
}

/// A fault of this machine, not of the work. The last checkpoint is intact.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the run cannot be recorded")]
    Journal(#[from] JournalError),
    #[error("a model call cannot be recorded")]
    Record(#[source] RecordError),
    #[error(transparent)]
    Shell(#[from] ShellError),
    #[error(transparent)]
    Agent(#[from] AgentCommandError),
    #[error(transparent)]
    Write(WriteError),
}

impl From<WorkspaceError> for RunError {
    fn from(error: WorkspaceError) -> Self {
        RunError::Journal(error.into())
    }
}

/// A transition that a state has decided on.
#[derive(Debug)]
pub(super) struct Step {
    to: Phase,
    trigger: &'static str,
    context: Value,
}

impl Step {
    pub(super) fn new(to: Phase, trigger: &'static str) -> Self {
        Self { to, trigger, context: json!({}) }
    }

    pub(super) fn with(self, context: Value) -> Self {
        Self { context, ..self }
    }
}

/// Why a state was left without a next one.
#[derive(Debug)]
pub(super) enum Stop {
    Failed(Failure),
    Paused,
    /// The reason why the run cannot go on from here.
    Interrupted(Option<&'static str>),
    Error(RunError),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failed(failure)
    }
}

impl<E: Into<RunError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Stop::Error(error.into())
    }
}

impl Run<'_> {
    /// Runs until the work is done, has failed, or is stopped. The newest checkpoint has the result.
    pub fn drive(&mut self) -> Result<Stopped, RunError> {
        while self.state.outcome.is_none() {
            let step = self.boundary().and_then(|()| self.step());
            match step {
                Ok(Some(step)) => self.enter(step)?,
                Ok(None) => {}
                Err(Stop::Failed(failure)) => self.fail(failure)?,
                Err(Stop::Paused) => return self.stop("pause_requested", None, Stopped::Paused),
                Err(Stop::Interrupted(reason)) => return self.stop("interrupted", reason, Stopped::Interrupted),
                Err(Stop::Error(error)) => return Err(error),
            }
        }
        Ok(Stopped::Ended)
    }

    /// Runs until the checks are done, and makes nothing public. Returns whether they pass.
    pub(super) fn drive_checks(&mut self) -> Result<bool, ReplayError> {
        while !matches!(self.state.phase, Phase::Commit | Phase::Push | Phase::PullRequest | Phase::Ci) {
            match self.boundary().and_then(|()| self.step()) {
                Ok(Some(step)) => self.enter(step)?,
                Ok(None) => {}
                // Without the model, a trial proves nothing.
                Err(Stop::Failed(failure)) if failure.kind == FailureKind::Model => {
                    return Err(ReplayError::NoAnswer(failure.message));
                }
                Err(Stop::Failed(_)) => return Ok(false),
                Err(Stop::Paused | Stop::Interrupted(_)) => return Err(ReplayError::Interrupted),
                Err(Stop::Error(error)) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// A run stops between turns only, unless it is cancelled.
    fn boundary(&mut self) -> Result<(), Stop> {
        if self.control.cancel.is_cancelled() {
            return Err(Stop::Interrupted(None));
        }
        if !self.state.pending.is_empty() {
            return Ok(());
        }
        let is_requested = (self.control.takes_pause)(self.journal.recorder().session_id());
        if std::mem::take(&mut self.has_pause) || is_requested {
            return Err(Stop::Paused);
        }
        Ok(())
    }

    fn enter(&mut self, step: Step) -> Result<(), RunError> {
        (self.control.progress)(&format!("{} ({})", step.to, step.trigger.replace('_', " ")));
        self.journal.transition(step.to, step.trigger, step.context);
        self.state.phase = step.to;
        if step.to == Phase::Succeeded {
            self.state.outcome = Some(Outcome::Success);
        }
        Ok(self.journal.checkpoint(&self.state, &self.messages, None)?)
    }

    fn fail(&mut self, failure: Failure) -> Result<(), RunError> {
        // The further lines are those of an output, which was shown.
        (self.control.progress)(&format!("failed: {}", failure.message.lines().next().unwrap_or_default()));
        let context = json!({ "kind": failure.kind, "message": failure.message });
        self.journal.transition(Phase::Failed, "failed", context);
        let stopped_in = std::mem::replace(&mut self.state.phase, Phase::Failed);
        self.state.outcome = Some(Outcome::Failure { failure, stopped_in });
        Ok(self.journal.checkpoint(&self.state, &self.messages, None)?)
    }

    fn stop(&mut self, trigger: &str, reason: Option<&str>, stopped: Stopped) -> Result<Stopped, RunError> {
        (self.control.progress)(&format!("paused: {}", trigger.replace('_', " ")));
        self.journal.transition(Phase::Paused, trigger, json!({ "state": self.state.phase.word() }));
        self.journal.checkpoint(&self.state, &self.messages, reason)?;
        Ok(stopped)
    }

    fn step(&mut self) -> Result<Option<Step>, Stop> {
        match self.state.phase {
            Phase::Checkout => self.check_model().map(|()| {
                Some(match self.state.settings.workflow {
                    Workflow::FixFailingTest => Step::new(Phase::Reproduce, "checked_out"),
                    Workflow::ImplementFeature => Step::new(Phase::Baseline, "checked_out"),
                })
            }),
            Phase::Reproduce => self.reproduce().map(Some),
            Phase::Baseline => self.baseline().map(Some),
            Phase::Localise | Phase::Understand | Phase::Edit => match self.agent_upstreams.clone() {
                Some(upstreams) => self.run_agent(upstreams).map(Some),
                None => self.turn(),
            },
            Phase::TargetTest => self.target_test().map(Some),
            Phase::Suite => self.suite().map(Some),
            Phase::Lint => self.lint().map(Some),
            Phase::Contract => self.contract().map(Some),
            Phase::Commit => self.commit().map(Some),
            Phase::Push => self.push().map(Some),
            Phase::PullRequest => self.pull_request().map(Some),
            Phase::Ci => self.ci().map(Some),
            Phase::Created | Phase::Succeeded | Phase::Failed | Phase::Paused => {
                // No checkpoint has one of these states without a result.
                Err(Failure::new(FailureKind::Interrupted, "the checkpoint has no state to go on from").into())
            }
        }
    }

    fn reproduce(&mut self) -> Result<Step, Stop> {
        let (Some(target), Some(line)) = (self.state.target.clone(), self.target_line()) else {
            return Err(Failure::new(FailureKind::TestNotFound, "the command of the test is not known").into());
        };
        let report = self.run_tests(&line)?;
        let name = self.target_name();
        if let Some(reason) = cannot_start(&report) {
            return Err(Failure::new(FailureKind::TestNotFound, format!("`{line}` cannot start: {reason}")).into());
        }
        match target_verdict(&report, &target) {
            TargetVerdict::Failed => {
                self.journal.expect_failure();
                self.state.checks.target = Some(CheckResult::Fail);
                self.state.reproduced = Some(report);
                Ok(Step::new(Phase::Baseline, "test_fails").with(json!({ "command": line })))
            }
            TargetVerdict::Passed => {
                self.state.checks.target = Some(CheckResult::Pass);
                let text = format!("the test `{name}` passes already, before any change");
                Err(Failure::new(FailureKind::TestPassesAlready, text).into())
            }
            TargetVerdict::NotFound => {
                self.show(lines_about(&report.output, &name));
                let text = format!("`{line}` ran no test `{name}`");
                Err(Failure::new(FailureKind::TestNotFound, text).into())
            }
            TargetVerdict::NotRun(reason) => {
                self.show(lines_about(&report.output, &name));
                let text = format!("`{line}` did not run the test `{name}`: {reason}");
                Err(Failure::new(FailureKind::TestNotFound, text).into())
            }
        }
    }

    fn baseline(&mut self) -> Result<Step, Stop> {
        let Some(line) = self.suite_line() else { return Ok(self.start_work("no_suite")) };
        let report = self.run_tests(&line)?;
        let context = json!({ "command": line, "failing": report.failed().count(), "tests": report.ran });
        // It finds out which tests fail before the change.
        self.journal.expect_failure();
        self.state.before = Some(report);
        Ok(self.start_work("suite_ran").with(context))
    }

    fn start_work(&mut self, trigger: &'static str) -> Step {
        let messages = first_messages(&self.state);
        self.messages = messages.into_iter().map(|message| self.journal.masked(message)).collect();
        Step::new(Phase::Localise, trigger)
    }

    fn target_test(&mut self) -> Result<Step, Stop> {
        let (Some(target), Some(line)) = (self.state.target.clone(), self.target_line()) else {
            return Ok(Step::new(Phase::Suite, "no_target"));
        };
        let tree = self.journal.snapshot().tree.clone();
        self.check_tampering(&target, &tree)?;
        let report = self.run_tests(&line)?;
        let before = self.state.reproduced.clone().unwrap_or_default();
        let verdict = target_verdict_after(&before, &report, &target);
        self.state.checks.target = Some(CheckResult::of(verdict == TargetVerdict::Passed));
        let name = self.target_name();
        match verdict {
            TargetVerdict::Passed => Ok(Step::new(Phase::Suite, "target_passes")),
            TargetVerdict::Failed => {
                let failure = Failure::new(FailureKind::TargetStillFails, format!("the test `{name}` still fails"));
                let shown = about_or_last(&report.output, Some(&name));
                self.red(failure, &format!("The test {name} still fails:"), &report.output, shown)
            }
            TargetVerdict::NotFound => {
                Err(self.tampering(format!("the test `{name}` does not exist after the change")))
            }
            TargetVerdict::NotRun(reason) => Err(self.tampering(format!("the test `{name}` is not run: {reason}"))),
        }
    }

    /// Compares the files of the target test in a tree with the base.
    pub(super) fn check_tampering(&mut self, target: &Target, tree: &str) -> Result<(), Stop> {
        let repository = self.journal.repository();
        let is_known = !self.state.target_files.is_empty();
        let mut found = None;
        for path in self.guarded_files(&self.state.base.commit, tree)? {
            let Some(before) = repository.file_at(&self.state.base.commit, &path)? else { continue };
            let now = repository.file_at(tree, &path)?;
            let whole = Target::File { path: path.clone().into() };
            let target = if is_known { target } else { &whole };
            found = found.or_else(|| tampered(&path, &before, now.as_deref(), target));
        }
        found.map_or(Ok(()), |reason| Err(self.tampering(reason)))
    }

    /// Returns the files in which the tests have to stay. Where the file of the target test is not known, it may be any file that had
    /// tests at the base; of those, the ones that two trees have otherwise.
    fn guarded_files(&self, from: &str, to: &str) -> Result<Vec<String>, WorkspaceError> {
        if self.state.target.is_none() || !self.state.target_files.is_empty() {
            return Ok(self.state.target_files.clone());
        }
        let repository = self.journal.repository();
        let mut guarded = Vec::new();
        for FileStat { path, .. } in
            repository.numstat(from, to)?.into_iter().filter(|it| it.status != ChangeKind::Created)
        {
            let at_base = repository.file_at(&self.state.base.commit, &path)?;
            if at_base.is_some_and(|text| has_tests(&path, &text)) {
                guarded.push(path);
            }
        }
        Ok(guarded)
    }

    fn tampering(&mut self, reason: String) -> Stop {
        self.state.checks.target = Some(CheckResult::Fail);
        Failure::new(FailureKind::TestTampered, reason).into()
    }

    fn suite(&mut self) -> Result<Step, Stop> {
        let Some(line) = self.suite_line() else { return Ok(Step::new(Phase::Lint, "no_suite")) };
        let report = self.run_tests(&line)?;
        let before = self.baseline_of_checks();
        let (found, flaky) = self.repeat_failures(&line, &before, new_failures(&before, &report))?;
        let added = self.state.before.as_ref().map_or(0, |before| tests_added(before, &report));
        let checks = &mut self.state.checks;
        checks.suite = Some(CheckResult::of(found.is_empty()));
        checks.tests_added = added;
        checks.flaky = flaky;
        checks.new_failures = Some(found.clone());
        let context = json!({ "new_failures": found, "flaky": checks.flaky, "tests_added": checks.tests_added });
        if !found.is_empty() {
            let is_lost = |id: &String| {
                before.tests.get(id) == Some(&Verdict::Passed)
                    && report.tests.get(id).is_none_or(|now| *now == Verdict::Skipped)
            };
            let (lost, failed): (Vec<String>, Vec<String>) = found.into_iter().partition(is_lost);
            let text = new_failures_text(&failed, &lost);
            let shown = about_or_last(&report.output, failed.first().map(String::as_str));
            let title = format!("T{}:", text.strip_prefix('t').unwrap_or(&text));
            let failure = Failure::new(FailureKind::NewFailures, text);
            return Ok(self.red(failure, &title, &report.output, shown)?.with(context));
        }
        if self.state.settings.workflow == Workflow::ImplementFeature
            && checks.tests_added == 0
            && !report.formats.is_empty()
        {
            let failure = Failure::new(FailureKind::TargetStillFails, "no test was added for the feature");
            return self.red(failure, "No test was added for the feature. All tests:", &report.output, Vec::new());
        }
        Ok(Step::new(Phase::Lint, "no_new_failures").with(context))
    }

    /// Returns the results before the change without those of the target test, which has to pass now.
    pub(super) fn baseline_of_checks(&self) -> TestReport {
        let mut before = self.state.before.clone().unwrap_or_default();
        if let Some(target) = &self.state.target {
            before.tests.retain(|id, verdict| *verdict != Verdict::Failed || !target.contains(id));
        }
        before
    }

    /// Runs the suite again if it has a few new failures. Returns the failures that count, and the flaky ones. The whole suite runs,
    /// because a test may fail only after others.
    fn repeat_failures(
        &mut self,
        suite: &str,
        before: &TestReport,
        mut found: Vec<String>,
    ) -> Result<(Vec<String>, Vec<String>), Stop> {
        if found.is_empty() || found.len() > MAX_REPEATED {
            return Ok((found, Vec::new()));
        }
        let mut seen = found.clone();
        for _ in 1..RUNS_OF_A_FAILURE {
            let again = new_failures(before, &self.run_tests(suite)?);
            if again.is_empty() {
                return Ok((Vec::new(), seen));
            }
            found.retain(|test| again.contains(test));
            seen.extend(again.into_iter().filter(|test| !seen.contains(test)).collect::<Vec<_>>());
        }
        if found.is_empty() {
            // Every run has new failures, although not the same ones: the change breaks something.
            return Ok((seen, Vec::new()));
        }
        let flaky = seen.into_iter().filter(|test| !found.contains(test)).collect();
        Ok((found, flaky))
    }

    fn lint(&mut self) -> Result<Step, Stop> {
        let line = self.state.commands.as_ref().and_then(|commands| commands.lint.clone());
        let Some(line) = line else { return Ok(Step::new(Phase::Contract, "no_linter")) };
        let before = self.journal.snapshot().tree.clone();
        let run = self.run_command(&line)?;
        self.journal.observe()?;
        self.restore_targets(&before)?;
        if !run.report.is_success() {
            let text = format!("the linter `{line}` reports errors");
            let failure = Failure::new(FailureKind::TargetStillFails, text);
            let output = &run.report.output;
            return self.red(
                failure,
                &format!("The linter reports errors ({line}):"),
                output,
                about_or_last(output, None),
            );
        }
        let context = json!({ "command": line });
        if self.journal.snapshot().tree != before && !std::mem::replace(&mut self.state.is_linted, true) {
            // Once: a linter that changes files each time would never end.
            return Ok(Step::new(self.first_check(), "files_formatted").with(context));
        }
        Ok(Step::new(Phase::Contract, "lint_passed").with(context))
    }

    /// Undoes what the linter has changed in the guarded files: it would count as a change of the test.
    fn restore_targets(&mut self, before: &str) -> Result<(), Stop> {
        let folder = self.journal.workspace().folder().to_owned();
        let mut has_restored = false;
        for path in self.guarded_files(before, &self.journal.snapshot().tree)? {
            let repository = self.journal.repository();
            let [was, now] = [before, &self.journal.snapshot().tree].map(|tree| repository.file_at(tree, &path));
            if let (Some(was), Some(now)) = (was?, now?)
                && was != now
            {
                write(&folder.join(&path), &was, Durability::Cached).map_err(RunError::Write)?;
                has_restored = true;
            }
        }
        if has_restored {
            self.journal.observe()?;
        }
        Ok(())
    }

    /// Returns the state of the first check of an attempt.
    pub(super) fn first_check(&self) -> Phase {
        match self.state.settings.workflow {
            Workflow::FixFailingTest => Phase::TargetTest,
            Workflow::ImplementFeature => Phase::Suite,
        }
    }

    fn contract(&mut self) -> Result<Step, Stop> {
        match &self.state.settings.contract {
            None => Ok(Step::new(Phase::Commit, "no_contract")),
            Some(contract) => {
                let contract = Contract::clone(contract);
                self.verify(&contract)
            }
        }
    }

    fn verify(&mut self, contract: &Contract) -> Result<Step, Stop> {
        let plan = VerificationPlan::new(contract).map_err(|errors| {
            let text = errors.first().map(ToString::to_string).unwrap_or_default();
            Failure::new(FailureKind::TargetStillFails, format!("the contract `{}` is invalid: {text}", contract.id))
        })?;
        let redactor = self.journal.redactor();
        let evidence = self.private.join(format!("contract-{}", uuid::Uuid::now_v7()));
        let folder = self.journal.workspace().folder().to_owned();
        let settings = VerifySettings {
            environment: without_access(std::env::vars_os()).into_iter().chain(contract_variables(contract)).collect(),
            supervisor: self.control.supervisor.clone(),
            ..VerifySettings::new(&folder, EvidenceFolder { path: &evidence, redactor: &redactor })
        };
        let checks = &self.state.checks;
        let output =
            json!({ "target_test": checks.target, "regression_tests": checks.suite, "text": self.state.last_text });
        let verified = plan.verify(&output, &settings, &self.control.cancel).map_err(ShellError::from)?;
        self.journal.undo_changes()?;
        if self.control.cancel.is_cancelled() {
            return Err(Stop::Interrupted(None));
        }
        if verified.report.passed {
            return Ok(Step::new(Phase::Commit, "contract_holds").with(json!({ "contract": contract.id })));
        }
        let output = [&verified.stdout, &verified.stderr].into_iter().flatten();
        let output: String = output.map(|head| String::from_utf8_lossy(&head.bytes).into_owned()).collect();
        let command = Some(contract.verification.command.as_str()).filter(|_| !verified.report.attempts.is_empty());
        let text = contract_failure(contract.id.as_str(), &reasons(&verified.report), command, &output);
        let failure = Failure::new(FailureKind::TargetStillFails, masked_text(&self.journal, text));
        let title = failure.message.lines().next().unwrap_or_default();
        let title = format!("T{}:", title.strip_prefix('t').unwrap_or(title));
        self.red(failure, &title, &output, about_or_last(&output, None))
    }

    fn show(&self, lines: Vec<&str>) {
        for line in lines {
            (self.control.progress)(&format!("    {line}"));
        }
    }

    /// Sends a red check with its output back to the model, unless it was the last one. A person sees only the lines of `shown`.
    pub(super) fn red(&mut self, failure: Failure, title: &str, output: &str, shown: Vec<&str>) -> Result<Step, Stop> {
        let check = self.journal.masked(red_check(title, output));
        self.messages.push(check);
        self.state.red_checks += 1;
        self.state.is_linted = false;
        let is_last = self.state.red_checks >= self.state.settings.limits.iterations;
        if !is_last {
            // The last one is shown as the reason of the run's end.
            (self.control.progress)(failure.message.lines().next().unwrap_or_default());
        }
        self.show(shown);
        if !is_last {
            return Ok(Step::new(Phase::Localise, "red_check").with(message(&failure.message)));
        }
        // With a higher limit, the run would go on there.
        self.state.phase = Phase::Localise;
        Err(failure.into())
    }

    fn target_name(&self) -> String {
        self.state.target.as_ref().map(Target::name).unwrap_or_default().to_owned()
    }

    fn target_line(&self) -> Option<String> {
        let (commands, target) = (self.state.commands.as_ref()?, self.state.target.as_ref()?);
        commands.test_line(target, self.journal.workspace().folder()).ok()
    }

    fn suite_line(&self) -> Option<String> {
        self.state.commands.as_ref()?.suite.clone()
    }

    fn run_tests(&mut self, line: &str) -> Result<TestReport, Stop> {
        let run = self.run_command(line)?;
        self.journal.undo_changes()?;
        Ok(run.report)
    }

    /// Runs a command of the repository, and records it with the changes that it made.
    fn run_command(&mut self, line: &str) -> Result<Finished, Stop> {
        (self.control.progress)(&format!("$ {line}"));
        let timeout = Duration::from_secs_f64(self.state.settings.command_timeout);
        let folder = self.journal.workspace().folder().to_owned();
        let mut shell = Shell::new(timeout, self.control.cancel.clone());
        shell.supervisor.clone_from(&self.control.supervisor);
        let mut run = match shell.run(line, &folder) {
            Err(ShellError::Cancelled(_)) => return Err(Stop::Interrupted(None)),
            run => run?,
        };
        if self.control.cancel.is_cancelled() {
            return Err(Stop::Interrupted(None));
        }
        self.journal.add(command_event(line, &run));
        // A checkpoint has the report, and a fork works in another folder.
        run.report.output = neutral(&run.report.output, &folder).into_owned();
        // It is compared with those of checkpoints.
        run.report.mask_ids(&self.journal.redactor());
        Ok(run)
    }
}

/// Returns why a test command cannot start: a test that cannot run is not a failing one.
fn cannot_start(report: &TestReport) -> Option<String> {
    let last = report.output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let is_missing = matches!(report.exit_code, Some(126 | 127)) || last.ends_with("No module named pytest");
    (is_missing && report.formats.is_empty()).then(|| last.to_owned())
}

/// Creates the record of a command of the repository.
fn command_event(line: &str, run: &Finished) -> SessionEvent {
    let FinishedCommand { started_at, duration, stdout, stderr, .. } = &run.command;
    let text = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned());
    let body = Command {
        command: Some(CommandLine::Shell(line.to_owned())),
        cwd: Some(".".to_owned()),
        exit_code: Some(i64::from(run.command.exit_code())),
        stdout: text(&stdout.bytes),
        stderr: text(&stderr.bytes),
        latency_ms: u64::try_from(duration.as_millis()).ok(),
        call_id: None,
        expected_failure: false,
    };
    SessionEvent::captured(*started_at, EventBody::Command(body))
}

pub(super) fn masked_text(journal: &Journal, text: String) -> String {
    match journal.masked(Value::String(text)) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
