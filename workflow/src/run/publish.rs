//! What makes the work public: the commit, the push, the pull request and its CI.
//!
//! Each of them can be done again. A commit is in the state before it is pushed, a push of a commit that is there changes nothing, and
//! a pull request is looked for before one is opened.

use std::time::Duration;

use camino::Utf8Path;
use counterproof_artifact::with_causes;
use jiff::Timestamp;
use serde_json::json;

use super::begin::DEFAULT_CI_TIMEOUT;
use super::machine::{Run, Step, Stop, masked_text};
use super::messages::{about_or_last, neutral};
use super::state::{CheckResult, Failure, FailureKind, ForgeKind, Phase, Publication, RunState};
use crate::forge::{Baseline, ChangeTexts, CiStatus, CiWanted, ForgeError, NewPullRequest, Push, Texts};
use crate::suite::{Target, controls_tests};

impl Run<'_> {
    pub(super) fn commit(&mut self) -> Result<Step, Stop> {
        self.journal.observe()?;
        let tree = self.journal.repository().publishable_tree(self.journal.snapshot())?;
        if let Some(target) = self.state.target.clone() {
            // What is pushed, and not only what was tested.
            self.check_tampering(&target, &tree)?;
        }
        let parent = self.state.publication.commits.last().unwrap_or(&self.state.base.commit).clone();
        let repository = self.journal.repository();
        if repository.numstat(&parent, &tree)?.is_empty() {
            let Publication { commits, pushed, .. } = &self.state.publication;
            if let Some(last) = commits.last() {
                // The commit is the same, and its CI may have failed by chance.
                let to = if pushed.as_ref() == Some(last) { Phase::Ci } else { Phase::Push };
                return Ok(Step::new(to, "nothing_changed"));
            }
            let text = "no file was changed";
            return self.red(Failure::new(FailureKind::TargetStillFails, text), "No file was changed.", "", Vec::new());
        }
        let text = masked_text(&self.journal, self.texts(&tree)?.message);
        let commit = repository.commit(&tree, &[&parent], &text, &self.state.base.author, Timestamp::now())?;
        repository.keep(&format!("refs/{}/head", self.state.publication.branch), &commit)?;
        self.state.publication.commits.push(commit.clone());
        Ok(Step::new(Phase::Push, "committed").with(json!({ "commit": commit })))
    }

    pub(super) fn push(&mut self) -> Result<Step, Stop> {
        let publication = &self.state.publication;
        let Some(commit) = publication.commits.last().cloned() else {
            return Err(Failure::new(FailureKind::Forge, "there is no commit to push").into());
        };
        let Publication { commits, pushed, former, .. } = publication;
        let own: Vec<String> = commits.iter().chain(pushed).chain(former).cloned().collect();
        let push =
            Push { from: self.journal.repository().path(), commit: &commit, branch: &publication.branch, own: &own };
        self.of_forge(self.forge.push(&push, &self.control.cancel))?;
        self.state.publication.pushed = Some(commit.clone());
        let context = json!({ "commit": commit, "branch": self.state.publication.branch });
        Ok(Step::new(Phase::PullRequest, "pushed").with(context))
    }

    pub(super) fn pull_request(&mut self) -> Result<Step, Stop> {
        let publication = &self.state.publication;
        let Some(head_commit) = publication.pushed.clone() else {
            return Err(Failure::new(FailureKind::Forge, "no commit was pushed").into());
        };
        let Texts { title, body, .. } = self.texts(&head_commit)?;
        let request = NewPullRequest {
            title: masked_text(&self.journal, title),
            body: masked_text(&self.journal, body),
            base: self.state.base.branch.clone(),
            head: publication.branch.clone(),
            base_commit: self.state.base.commit.clone(),
            head_commit,
        };
        // First a look: the process may have been killed after it opened one.
        let found = self.forge.find(&request.head, &self.control.cancel);
        let pull_request = match self.of_forge(found)? {
            Some(found) => {
                self.of_forge(self.forge.update(&found, &request, &self.control.cancel))?;
                found
            }
            None => self.of_forge(self.forge.open(&request, &self.control.cancel))?,
        };
        let context = json!({ "url": pull_request.url });
        self.state.publication.pull_request = Some(pull_request);
        Ok(Step::new(Phase::Ci, "pull_request").with(context))
    }

    pub(super) fn ci(&mut self) -> Result<Step, Stop> {
        let publication = &self.state.publication;
        let (Some(pull_request), Some(commit)) = (publication.pull_request.clone(), publication.pushed.clone()) else {
            return Err(Failure::new(FailureKind::Forge, "there is no pull request to check").into());
        };
        // The folder of a local forge may have stayed on another machine.
        if self.state.settings.forge == ForgeKind::Local
            && self.of_forge(self.forge.find(&publication.branch, &self.control.cancel))?.is_none()
        {
            self.state.publication.pushed = None;
            return Ok(Step::new(Phase::Push, "pull_request_missing"));
        }
        let has_baseline = self.state.settings.ci_command.is_none() && self.state.before.is_some();
        let before =
            has_baseline.then(|| Baseline { report: self.baseline_of_checks(), redactor: self.journal.redactor() });
        let timeout = self.state.settings.ci_timeout.map(Duration::from_secs_f64);
        let wanted = CiWanted { commit: &commit, timeout, before: before.as_ref() };
        let result = self.forge.ci(&pull_request, &wanted, &self.control.cancel);
        let result = self.of_forge(result)?;
        self.state.publication.ci = ci_result(result.status);
        let context = json!({ "log": result.log_place, "commit": commit });
        match result.status {
            CiStatus::Pass => Ok(Step::new(Phase::Succeeded, "ci_passed").with(context)),
            CiStatus::None => Ok(Step::new(Phase::Succeeded, "no_ci").with(context)),
            CiStatus::TimedOut => {
                let text = format!("the CI did not end within {:?}", timeout.unwrap_or(DEFAULT_CI_TIMEOUT));
                Err(Failure::new(FailureKind::CiTimeout, text).into())
            }
            CiStatus::Cancelled => Err(Stop::Interrupted(None)),
            CiStatus::Fail => {
                let failure = Failure::new(FailureKind::CiFailed, "the CI of the pull request failed");
                let log = neutral(&result.log, self.journal.workspace().folder());
                let shown = about_or_last(&log, None);
                Ok(self.red(failure, "The CI of the pull request failed. Its log:", &log, shown)?.with(context))
            }
        }
    }

    /// Returns the texts of a commit and a pull request. `head` is a commit or a tree.
    fn texts(&self, head: &str) -> Result<Texts, Stop> {
        let state = &self.state;
        let files = self.journal.repository().numstat(&state.base.commit, head)?;
        let files: Vec<String> = files.into_iter().map(|file| file.path).collect();
        let log = state.target.as_ref().and_then(|target| match target {
            Target::Test { log, .. } => log.as_deref(),
            Target::File { .. } => None,
        });
        let target = state.target.as_ref().map(|target| format!("{}: passes", target.name()));
        let suite = state.checks.suite.map(|_| "all tests: no new failures".to_owned());
        let paths: Vec<&str> = files.iter().map(String::as_str).collect();
        let results: Vec<String> = target.into_iter().chain(suite).chain(warnings(state, &paths)).collect();
        let is_command = state.settings.agent_command.is_some();
        let last_text = state.last_text.as_deref().unwrap_or_default();
        let texts = ChangeTexts {
            test: state.target.as_ref().map(Target::name),
            ci_log: log,
            specification: state.settings.specification.as_deref(),
            explanation: if is_command { "" } else { last_text },
            agent_output: is_command.then_some(last_text),
            files: &files,
            results: &results,
            flaky: &state.checks.flaky,
        };
        Ok(texts.texts())
    }

    fn of_forge<T>(&self, result: Result<T, ForgeError>) -> Result<T, Stop> {
        result.map_err(|error| {
            if self.control.cancel.is_cancelled() {
                return Stop::Interrupted(None);
            }
            Failure::new(FailureKind::Forge, with_causes(&error)).into()
        })
    }
}

/// Returns the result of a CI run that has ended.
const fn ci_result(status: CiStatus) -> Option<CheckResult> {
    match status {
        CiStatus::Pass => Some(CheckResult::Pass),
        CiStatus::Fail | CiStatus::TimedOut => Some(CheckResult::Fail),
        CiStatus::None | CiStatus::Cancelled => None,
    }
}

/// The warning of a run in which nothing is compared.
pub(super) const UNGUARDED: &str =
    "the file of the test is not known, and no file with tests was found: a weakened test is not detected";

/// Returns what a person has to look at in a change.
pub(super) fn warnings(state: &RunState, changed: &[&str]) -> Vec<String> {
    let unguarded = state.is_unguarded.then(|| UNGUARDED.to_owned());
    unguarded.into_iter().chain(steering(&state.target_files, changed)).collect()
}

/// Warns of each changed file that may control how the tests run.
fn steering(target_files: &[String], changed: &[&str]) -> Vec<String> {
    let found = changed.iter().filter(|path| controls_tests(Utf8Path::new(path), target_files));
    found.map(|path| format!("may change how the tests run: {path}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_ci_has_no_result() {
        assert_eq!((ci_result(CiStatus::Cancelled), ci_result(CiStatus::None)), (None, None));
        let ended = [CiStatus::Pass, CiStatus::Fail, CiStatus::TimedOut].map(ci_result);
        assert_eq!(ended, [CheckResult::Pass, CheckResult::Fail, CheckResult::Fail].map(Some));
    }

    #[test]
    fn a_new_configuration_is_a_warning_also_where_the_file_of_the_test_is_not_known() {
        let warnings = steering(&[], &["calc.py", "conftest.py", "sub/pyproject.toml"]);
        assert_eq!(
            warnings,
            ["conftest.py", "sub/pyproject.toml"].map(|it| format!("may change how the tests run: {it}"))
        );
    }
}
