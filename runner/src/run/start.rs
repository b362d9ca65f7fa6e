//! The start of a run: a new folder, or one that an earlier process left unfinished. What is asked then is told in `run`.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use counterproof_artifact::{Case, CaseId, Outcome, Run};
use counterproof_cases::CaseSpec;
use counterproof_redaction::Redactor;
use counterproof_store::write::WriteError;
use counterproof_store::{ReadError, ReopenError, RunReader, RunWriter};
use serde_json::json;

use crate::event::Counts;
use crate::folder::changes::{Changes, changes};
use crate::folder::salvage::{self, SalvageError};
use crate::record::run_document;
use crate::record::selection::Selection;
use crate::run::scheduler::RunError;
use crate::settings::run_settings::{Settings, Start};
use crate::system::checkout::Checkout;
use crate::system::clock::Moment;

/// Why a run could not be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The run folder could not be opened again.
    #[error(transparent)]
    Reopen(#[from] ReopenError),
    /// What is there could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What is of no use could not be removed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Other cases or settings would mix two runs in one folder.
    #[error("the run `{}` was started otherwise: {changes}", run.run_id)]
    Changed {
        /// The run as it was started.
        run: Box<Run>,
        /// What is different now.
        changes: Changes,
    },
}

impl From<SalvageError> for ResumeError {
    fn from(error: SalvageError) -> Self {
        match error {
            SalvageError::Read(error) => error.into(),
            SalvageError::Write(error) => error.into(),
        }
    }
}

/// A run that can be asked.
pub(crate) struct Begun<'a> {
    pub(crate) folder: RunWriter,
    pub(crate) document: Run,
    /// The cases to ask, in their order.
    pub(crate) cases: Vec<&'a CaseSpec>,
    /// What is complete already.
    pub(crate) counts: Counts,
    /// Those of the cases to ask that have an artifact, which goes when they are asked, with what it counts for.
    pub(crate) again: HashMap<CaseId, Counts>,
    /// How long the run took before.
    pub(crate) earlier: Duration,
}

/// Makes the run folder, or opens it again.
pub(crate) fn begin<'a>(
    settings: &Settings,
    cases: &'a [CaseSpec],
    checkout: Option<&Checkout>,
    redactor: &Redactor,
    now: Moment,
) -> Result<Begun<'a>, RunError> {
    let selection = Selection::of(cases, settings.part.as_ref());
    let path = settings.out.join(settings.side.as_str()).join(settings.run_id.as_str());
    let retry_errors = match settings.start {
        Start::Resume { retry_errors, or_new } if path.is_dir() || !or_new => retry_errors,
        _ => {
            let folder = RunWriter::create(&settings.out, settings.side, &settings.run_id)?;
            let document = run_document::started(settings, &selection, checkout, (folder.folder(), redactor), now);
            folder.write_run(&document)?;
            return Ok(Begun::new(folder, document, selection));
        }
    };
    let folder = RunWriter::reopen(path, settings.side).map_err(ResumeError::from)?;
    let fresh = run_document::started(settings, &selection, checkout, (folder.folder(), redactor), now);
    let begun = resume(folder, fresh, selection, retry_errors)?;
    begun.folder.write_run(&begun.document)?;
    Ok(begun)
}

impl<'a> Begun<'a> {
    fn new(folder: RunWriter, document: Run, selection: Selection<'a>) -> Self {
        let counts = Counts { selected: selection.cases.len(), ..Counts::default() };
        let cases = selection.cases;
        Self { folder, document, cases, counts, again: HashMap::new(), earlier: Duration::ZERO }
    }
}

/// Finds out what is left to do; `fresh` is the document that a new run would start with.
fn resume(
    folder: RunWriter,
    fresh: Run,
    selection: Selection<'_>,
    retry_errors: bool,
) -> Result<Begun<'_>, ResumeError> {
    let selected: BTreeSet<CaseId> = fresh.selected_case_ids.iter().cloned().collect();
    let reader = match RunReader::open(folder.folder()) {
        Ok(reader) => reader,
        // Killed before the document was there, and so before anything was asked.
        Err(error) if error.is_missing() && !selected.iter().any(|id| has_artifact(&folder, id)) => {
            return Ok(Begun::new(folder, fresh, selection));
        }
        Err(error) => return Err(error.into()),
    };
    let started = reader.run();
    let changes = changes(started, &fresh);
    if !changes.is_empty() {
        return Err(ResumeError::Changed { run: Box::new(started.clone()), changes });
    }

    let mut counts = Counts { selected: selected.len(), ..Counts::default() };
    let (mut complete, mut again) = (BTreeSet::new(), HashMap::new());
    let mut left = Vec::new();
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
        let one = count(&artifact);
        counts.add(&one);
        if run_document::is_unasked(&artifact) || (retry_errors && one.failed > 0) {
            again.insert(case.id.clone(), one);
            left.push(case);
        } else {
            counts.kept += 1;
        }
    }
    salvage::assets(&folder, &reader, &selected, &complete)?;

    let earlier = started.stats.as_ref().and_then(|stats| stats.duration_ms.as_ref());
    let earlier = earlier
        .map_or(Duration::ZERO, |span| Duration::try_from_secs_f64(span.as_f64() / 1000.0).unwrap_or(Duration::ZERO));
    let mut document = run_document::restarted(started.clone(), &fresh);
    if !left.is_empty() {
        let mut entry = json!({"at": fresh.generated_at, "runner_version": fresh.runner_version, "cases": left.len()});
        if let Some(commit) = &fresh.repo_commit {
            entry["repo_commit"] = commit.as_str().into();
            entry["dirty"] = fresh.dirty.unwrap_or_default().into();
        }
        let resumes = document.extra.entry("resumes").or_insert_with(|| json!([]));
        if let Some(resumes) = resumes.as_array_mut() {
            resumes.push(entry);
        }
    }
    Ok(Begun { folder, document, cases: left, counts, again, earlier })
}

fn has_artifact(folder: &RunWriter, case: &CaseId) -> bool {
    folder.folder().join(format!("{case}.json")).exists()
}

/// What one artifact counts for.
fn count(artifact: &Case) -> Counts {
    let attempts = artifact.attempts.as_ref().map_or(0, Vec::len);
    let failed = usize::from(matches!(artifact.outcome, Outcome::RunnerError(_)));
    Counts { answered: 1 - failed, failed, retried: usize::from(attempts > 1), attempts, ..Counts::default() }
}
