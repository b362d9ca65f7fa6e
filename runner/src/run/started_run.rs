//! The start of a run: a new folder, or the folder of a run that an earlier process did not finish.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use camino::Utf8Path;
use counterproof_artifact::{CaseId, Run, Usage};
use counterproof_cases::CaseSpec;
use counterproof_redaction::Redactor;
use counterproof_store::{RunReader, RunWriter};
use serde_json::json;

use super::execute::{ResumeError, RunError};
use crate::environment::{Checkout, Moment};
use crate::event::Counts;
use crate::folder::{changes, claim, counts_of, salvage_assets, until_taken_over, was_skipped};
use crate::policy::RunShard;
use crate::record::{NewRun, Selection, reached_agent, resumed};
use crate::settings::{Settings, Start};

/// A run folder with the cases that are left to run.
pub(super) struct StartedRun<'a> {
    pub(super) folder: RunWriter,
    pub(super) document: Run,
    /// The cases to run, in order.
    pub(super) cases: Vec<&'a CaseSpec>,
    /// The counts of the cases that are already complete.
    pub(super) counts: Counts,
    /// The cases to run that have an artifact. It is deleted just before the case runs, and its counts are subtracted.
    pub(super) reruns: HashMap<CaseId, Counts>,
    /// What the cases that the earlier processes ran used. `None` for a case that does not report it.
    pub(super) used: Vec<Option<Usage>>,
    /// How long the earlier processes of the run took.
    pub(super) earlier: Duration,
}

/// What a run is started with.
pub(super) struct RunInputs<'a, 'run> {
    pub(super) settings: &'run Settings,
    pub(super) cases: &'a [CaseSpec],
    pub(super) checkout: Option<&'run Checkout>,
    pub(super) redactor: &'run Redactor,
    pub(super) start: Moment,
}

/// Which cases of an unfinished run to run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResumeScope {
    Missing,
    MissingAndFailed,
}

impl<'a> StartedRun<'a> {
    /// Claims the shard of a run that takes over, and returns the settings of the attempt.
    pub(super) fn claimed(inputs: &RunInputs<'a, '_>, shard: &RunShard) -> Result<Settings, RunError> {
        let settings = inputs.settings;
        let selection = Selection::new(inputs.cases, Some(shard));
        let parent = settings.out.join(settings.side.as_str());
        let fresh = inputs.document(&selection, &parent.join(settings.run_id.as_str()));
        let run_id = claim(&parent, shard, &fresh, settings.copy.as_deref())?;
        let start = Start::Resume { retry_errors: false, or_create: false };
        Ok(Settings { run_id, start, ..settings.clone() })
    }

    /// Creates the run folder, or reopens it.
    pub(super) fn open(inputs: &RunInputs<'a, '_>) -> Result<Self, RunError> {
        let settings = inputs.settings;
        let selection = Selection::new(inputs.cases, settings.shard.as_ref());
        let path = settings.out.join(settings.side.as_str()).join(settings.run_id.as_str());
        let scope = match settings.start {
            // Without `or_create`, a missing folder is an error of `reopen`.
            Start::Resume { retry_errors, or_create } if path.is_dir() || !or_create => {
                if retry_errors {
                    ResumeScope::MissingAndFailed
                } else {
                    ResumeScope::Missing
                }
            }
            _ => {
                let folder = RunWriter::create(&settings.out, settings.side, &settings.run_id)?;
                let folder = folder.copied_to(settings.copy.clone());
                folder.claim_copy()?;
                let folder = until_taken_over(folder, settings.shard.as_ref(), &settings.run_id);
                let document = inputs.document(&selection, folder.folder());
                // Before the first request, so that a run that is killed at any time can be resumed.
                folder.write_run(&document)?;
                return Ok(Self::new(folder, document, selection));
            }
        };
        let folder = RunWriter::reopen(path, settings.side).map_err(ResumeError::from)?;
        let folder = folder.copied_to(settings.copy.clone());
        let folder = until_taken_over(folder, settings.shard.as_ref(), &settings.run_id);
        // Before anything is removed from the folder.
        folder.check_lease()?;
        let fresh = inputs.document(&selection, folder.folder());
        let run = Self::resume(folder, fresh, selection, scope)?;
        run.folder.write_run(&run.document)?;
        Ok(run)
    }

    fn new(folder: RunWriter, document: Run, selection: Selection<'a>) -> Self {
        let counts = Counts { selected: selection.cases.len(), ..Counts::default() };
        let cases = selection.cases;
        Self { folder, document, cases, counts, reruns: HashMap::new(), used: Vec::new(), earlier: Duration::ZERO }
    }

    /// Determines the cases that are left. `fresh` is the document that a new run would start with.
    fn resume(
        folder: RunWriter,
        fresh: Run,
        selection: Selection<'a>,
        scope: ResumeScope,
    ) -> Result<Self, ResumeError> {
        let selected: BTreeSet<CaseId> = fresh.selected_case_ids.iter().cloned().collect();
        let reader = match RunReader::open(folder.folder()) {
            Ok(reader) => reader,
            // The earlier process was killed before it wrote `run.json`, so before its first request.
            Err(error) if error.is_missing() && !selected.iter().any(|id| has_artifact(&folder, id)) => {
                return Ok(Self::new(folder, fresh, selection));
            }
            Err(error) => return Err(error.into()),
        };
        let started = reader.run();
        // Before anything is removed from the folder: a run with other settings must stay as it is.
        let changes = changes(started, &fresh);
        if !changes.is_empty() {
            return Err(ResumeError::Changed { run: Box::new(started.clone()), changes });
        }

        let mut counts = Counts { selected: selected.len(), ..Counts::default() };
        let (mut complete, mut reruns) = (BTreeSet::new(), HashMap::new());
        let (mut left, mut used) = (Vec::new(), Vec::new());
        for case in selection.cases {
            let artifact = match reader.read_case(&case.id) {
                Ok(artifact) => artifact,
                Err(error) if error.is_missing() => {
                    left.push(case);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            complete.insert(case.id.clone());
            let case_counts = counts_of(&artifact);
            counts.add(&case_counts);
            if artifact.attempts.iter().flatten().any(reached_agent) {
                used.push(artifact.usage.clone());
            }
            let is_rerun = scope == ResumeScope::MissingAndFailed && case_counts.failed > 0;
            // A skipped case was never sent, so every resume runs it.
            if was_skipped(&artifact) || is_rerun {
                reruns.insert(case.id.clone(), case_counts);
                left.push(case);
            } else {
                counts.already_complete += 1;
            }
        }
        salvage_assets(&folder, &reader, &selected, &complete)?;
        let earlier = duration(started);
        let mut document = resumed(started.clone(), &fresh);
        if !left.is_empty() {
            add_resume_entry(&mut document, &fresh, left.len());
        }
        Ok(Self { folder, document, cases: left, counts, reruns, used, earlier })
    }
}

impl RunInputs<'_, '_> {
    fn document(&self, selection: &Selection<'_>, folder: &Utf8Path) -> Run {
        let Self { settings, checkout, redactor, start, .. } = *self;
        NewRun { settings, selection, checkout, folder, redactor, start }.document()
    }
}

/// Adds this resume to the list of resumes in `run.json`.
fn add_resume_entry(document: &mut Run, fresh: &Run, cases: usize) {
    let mut entry = json!({"at": fresh.generated_at, "runner_version": fresh.runner_version, "cases": cases});
    if let Some(commit) = &fresh.repo_commit {
        entry["repo_commit"] = commit.as_str().into();
        entry["dirty"] = fresh.dirty.unwrap_or_default().into();
    }
    let resumes = document.extra.entry("resumes").or_insert_with(|| json!([]));
    if let Some(resumes) = resumes.as_array_mut() {
        resumes.push(entry);
    }
}

/// Returns the recorded duration of a run; zero without one.
fn duration(run: &Run) -> Duration {
    let millis = run.stats.as_ref().and_then(|stats| stats.duration_ms.as_ref());
    // A process that was killed recorded no duration.
    millis.map_or(Duration::ZERO, |millis| {
        Duration::try_from_secs_f64(millis.as_f64() / 1000.0).unwrap_or(Duration::ZERO)
    })
}

fn has_artifact(folder: &RunWriter, case: &CaseId) -> bool {
    folder.folder().join(format!("{case}.json")).exists()
}
