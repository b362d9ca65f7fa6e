//! The cases of a check: by id, tag and suite, and those that failed in the last check.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};
use counterproof_cases::{CaseSpec, Suite, glob};
use counterproof_evaluator::AddedCase;
use counterproof_store::read_file;
use counterproof_store::write::{self, Durability};
use serde::{Deserialize, Serialize};

use super::args::Args;
use crate::command_error::CommandError;

/// The file of the last check, in the folder of all runs.
const LAST_CHECK: &str = "last-check.json";

/// How many ids a message lists that are near a pattern.
const NEAR: usize = 5;

/// The cases that did not pass in a check.
#[derive(Debug, Serialize, Deserialize)]
struct LastCheck {
    schema_version: String,
    failed: Vec<CaseId>,
}

/// The selected cases.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) cases: Vec<CaseSpec>,
    /// All cases of the file.
    pub(super) all: Vec<CaseSpec>,
    /// Whether cases of the file were left out.
    pub(super) is_partial: bool,
    /// The cases of `--last-failed` that the file does not have.
    pub(super) gone: Vec<CaseId>,
}

impl Selection {
    /// Selects the cases that all of the options name. `changed` are the only cases to consider, if given.
    pub(super) fn new(args: &Args, suite: Suite, changed: Option<&HashSet<CaseId>>) -> Result<Self, CommandError> {
        let total = suite.cases.len();
        for pattern in &args.only {
            if !suite.cases.iter().any(|case| glob::fits(pattern, case.id.as_str())) {
                return Err(no_case(args, pattern, &suite));
            }
        }
        let last_failed = if args.last_failed { Some(read_failed(&args.out)?) } else { None };
        let is_in = |chosen: &[String], has: &dyn Fn(&String) -> bool| chosen.is_empty() || chosen.iter().any(has);
        let is_selected = |case: &CaseSpec| {
            is_in(&args.only, &|pattern| glob::fits(pattern, case.id.as_str()))
                && is_in(&args.tag, &|tag| case.metadata.tags.contains(tag))
                && is_in(&args.suite, &|suite| case.suite.as_deref().is_some_and(|of| is_within(of, suite)))
                && last_failed.as_ref().is_none_or(|failed| failed.contains(&case.id))
                && changed.is_none_or(|changed| changed.contains(&case.id))
        };
        let cases: Vec<CaseSpec> = suite.cases.iter().filter(|case| is_selected(case)).cloned().collect();
        let is_narrowed = !args.only.is_empty() || !args.tag.is_empty() || !args.suite.is_empty();
        if cases.is_empty() && is_narrowed && !args.last_failed && changed.is_none() {
            return Err(CommandError::usage("no case has all of the selected IDs, tags and suites")
                .hint("`counterproof run --side new --dry-run` lists the cases"));
        }
        let exists = |id: &CaseId| suite.cases.iter().any(|case| case.id == *id);
        let gone = last_failed.into_iter().flatten().filter(|id| !exists(id)).collect();
        Ok(Self { is_partial: cases.len() < total, cases, all: suite.cases, gone })
    }

    /// Why there is no case to run.
    pub(super) fn nothing(&self) -> &'static str {
        if self.gone.is_empty() {
            "no case failed in the last check"
        } else {
            "no case that failed in the last check is left"
        }
    }

    pub(super) fn ids(&self) -> HashSet<CaseId> {
        self.cases.iter().map(|case| case.id.clone()).collect()
    }
}

/// Whether a suite is the named one, or below it.
fn is_within(suite: &str, name: &str) -> bool {
    suite.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn no_case(args: &Args, pattern: &str, suite: &Suite) -> CommandError {
    let plain = pattern.replace('*', "");
    let mut near: Vec<&str> =
        suite.cases.iter().map(|case| case.id.as_str()).filter(|id| !plain.is_empty() && id.contains(&plain)).collect();
    if near.is_empty() {
        let ids: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
        near = counterproof_validation::nearest(&plain, &ids).into_iter().collect();
        if near.is_empty() {
            near = ids;
        }
    }
    near.truncate(NEAR);
    let path = args.cases.as_deref().unwrap_or(Utf8Path::new("the cases"));
    CommandError::usage(format!("no case of `{path}` has an ID that matches `{pattern}`"))
        .hint(format!("cases with other IDs are {}", near.join(", ")))
}

fn state_path(runs: &Utf8Path) -> Utf8PathBuf {
    runs.join(LAST_CHECK)
}

fn read_failed(runs: &Utf8Path) -> Result<Vec<CaseId>, CommandError> {
    let path = state_path(runs);
    let text = match read_file::read_text(&path, read_file::MAX_SMALL_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(CommandError::usage(format!("there is no earlier check in `{runs}`"))
                .hint("run `counterproof check` without `--last-failed` first"));
        }
        Err(error) => return Err(CommandError::io(format!("failed to read `{path}`: {error}"))),
    };
    let last: LastCheck = serde_json::from_str(&text).map_err(|error| {
        CommandError::io(format!("`{path}` is not the state of a check: {error}")).hint("remove the file")
    })?;
    Ok(last.failed)
}

/// Writes the cases that did not pass, for `--last-failed`.
pub(super) fn write_failed(runs: &Utf8Path, evaluation: &Evaluation) -> Result<(), CommandError> {
    let failed = evaluation.cases.iter().filter(|case| has_failed(case)).map(|case| case.case_id.clone()).collect();
    let last = LastCheck { schema_version: "last-check.v1".to_owned(), failed };
    write::write_json(&state_path(runs), &last, Durability::Synced).map_err(CommandError::io)
}

/// Whether a case did not meet an expectation, was worse, or got no answer.
fn has_failed(case: &CaseEvaluation) -> bool {
    case.is_unmet_on_new() || case.verdict == Verdict::Regressed || has_no_answer(case)
}

/// Whether new gave no answer that can be judged.
pub(super) fn has_no_answer(case: &CaseEvaluation) -> bool {
    AddedCase::find(case) == Some(AddedCase::Unanswered)
        || matches!(case.verdict, Verdict::Invalid | Verdict::Missing | Verdict::Broken | Verdict::StillBroken)
}
