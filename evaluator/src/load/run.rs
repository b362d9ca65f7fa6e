//! Reads the artifacts of a run folder, one case at a time. It validates them and does not judge them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use camino::Utf8Path;
use counterproof_artifact::{
    Answer, Attempt, Case, CaseId, EvidenceTarget, Href, Manifest, Outcome, REQUEST_ASSET_HREF, RunnerFailure, Usage,
};
use counterproof_store::{MANIFEST_FILE, ReadError, RunReader};
use counterproof_validation::{Code, Finding, RunFolder};
use serde_json::Value;

use crate::load::index::EventIndex;
use crate::load::payload::{self, Payload, Payloads};
use crate::load::recorded_run::RecordedRun;
use crate::values::text;

/// The field of an artifact with the title of the case.
const TITLE_FIELD: &str = "title";

/// Characters of a title. Titles come from the producer and can have any length.
const TITLE_UP_TO: usize = 200;

/// The field with which a producer declares that its events are complete.
const COMPLETE_FIELD: &str = "transcript_complete";

/// A run folder opened for a comparison.
#[derive(Debug)]
pub struct ComparedRun {
    reader: RunReader,
    manifest: Option<Arc<Manifest>>,
    manifest_is_broken: bool,
    folder: RunFolder,
    selected: HashSet<CaseId>,
    /// Which cases the agent solved, as far as it is known.
    solved: BTreeMap<CaseId, bool>,
    /// Why the labels of the run cannot be used.
    labels_error: Option<ReadError>,
}

/// The artifact of a case on one side.
#[derive(Debug)]
pub enum Artifact {
    /// There is no file.
    Absent,
    /// The file violates the contract.
    Invalid(Vec<Finding>),
    /// The agent answered.
    Answer(Box<LoadedAnswer>),
    /// The runner got no answer.
    Failure(Box<LoadedFailure>),
}

/// An answer with its payloads and an index of its events.
#[derive(Debug)]
pub struct LoadedAnswer {
    /// The fields that answers and failures share.
    pub case: CaseEnvelope,
    /// The answer of the agent.
    pub answer: Answer,
    /// The payloads of its events.
    pub payloads: Payloads,
    /// The positions of its events by id.
    pub index: EventIndex,
    /// The evidence refs that do not resolve: the index of the action, and of the ref within it.
    pub unresolved: HashSet<(usize, usize)>,
    /// The run's manifest, if the answer refers to assets.
    pub manifest: Option<Arc<Manifest>>,
}

impl LoadedAnswer {
    /// Returns the payload of a tool result or the snippets of a retrieval, inline or from an asset.
    pub fn payload(&self, index: usize) -> Option<Payload<'_>> {
        self.payloads.get(index, &self.answer.events.get(index)?.body)
    }
}

/// A runner failure.
#[derive(Debug)]
pub struct LoadedFailure {
    /// The fields that answers and failures share.
    pub case: CaseEnvelope,
    /// Why there is no answer.
    pub failure: RunnerFailure,
}

/// The fields that answers and failures share.
#[derive(Debug, Clone)]
pub struct CaseEnvelope {
    /// The title of the case on one line, if the artifact has one.
    pub title: Option<String>,
    /// The workflow that the case belongs to.
    pub workflow_id: Option<String>,
    /// All attempts.
    pub attempts: Vec<Attempt>,
    /// The tokens and the cost, if the agent reports them.
    pub usage: Option<Usage>,
    /// A link to the request, if it was stored.
    pub request: Option<Href>,
    /// True if the producer declares that the events contain everything that the agent received in addition to its input.
    pub transcript_is_complete: bool,
    /// What is known of the processes, if the case is a recorded run.
    pub recorded: Option<RecordedRun>,
}

impl Artifact {
    /// Returns the answer, if there is one.
    pub fn answer(&self) -> Option<&LoadedAnswer> {
        match self {
            Artifact::Answer(answer) => Some(answer),
            _ => None,
        }
    }

    /// Returns the failure, if there is one.
    pub fn failure(&self) -> Option<&LoadedFailure> {
        match self {
            Artifact::Failure(failure) => Some(failure),
            _ => None,
        }
    }

    /// Returns the fields that answers and failures share.
    pub fn envelope(&self) -> Option<&CaseEnvelope> {
        match self {
            Artifact::Answer(answer) => Some(&answer.case),
            Artifact::Failure(failure) => Some(&failure.case),
            Artifact::Absent | Artifact::Invalid(_) => None,
        }
    }
}

impl ComparedRun {
    /// Prepares an opened run. An unreadable manifest is no error here but a finding on the cases that need it. Labels that
    /// cannot be read count as absent; [`ComparedRun::labels_error`] has the reason.
    pub fn new(reader: RunReader) -> Self {
        let (manifest, manifest_is_broken) = match reader.manifest() {
            Ok(manifest) => (manifest, false),
            Err(_) => (None, true),
        };
        let folder = RunFolder::new(reader.folder(), reader.run().version, manifest.as_ref());
        let selected = reader.run().selected_case_ids.iter().cloned().collect();
        let (solved, labels_error) = match reader.labels() {
            Ok(labels) => (labels.map(|labels| labels.solved).unwrap_or_default(), None),
            Err(error) => (BTreeMap::new(), Some(error)),
        };
        let manifest = manifest.map(Arc::new);
        Self { reader, manifest, manifest_is_broken, folder, selected, solved, labels_error }
    }

    /// Returns the reader of the folder, with the run document.
    pub const fn reader(&self) -> &RunReader {
        &self.reader
    }

    /// Returns the manifest of the assets.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_deref()
    }

    /// Whether the agent solved a case, where a label of the run states it.
    pub fn is_solved(&self, case_id: &CaseId) -> Option<bool> {
        self.solved.get(case_id).copied()
    }

    /// Returns why the labels of the run cannot be used.
    pub const fn labels_error(&self) -> Option<&ReadError> {
        self.labels_error.as_ref()
    }

    /// Returns all cases that the run selected, then those that only have an artifact on disk.
    pub fn case_ids(&self) -> Result<Vec<CaseId>, ReadError> {
        let mut ids = self.reader.run().selected_case_ids.clone();
        let on_disk = self.reader.case_ids_on_disk()?.into_iter();
        ids.extend(on_disk.filter(|id| !self.selects(id) && !self.folder.is_foreign(id)));
        Ok(ids)
    }

    /// True if the run selected the case.
    pub fn selects(&self, case_id: &CaseId) -> bool {
        self.selected.contains(case_id)
    }

    /// Reads an asset as JSON. `None` if it is missing, is not JSON, or is too large.
    pub fn read_json(&self, href: &Href) -> Option<Value> {
        payload::asset(self.reader.folder(), href).filter(|asset| !asset.is_digest).map(|asset| asset.value)
    }

    /// Reads and validates the artifact of a case.
    pub fn load(&self, case_id: &CaseId) -> Artifact {
        let folder = self.reader.folder();
        let checked = self.folder.read_case(case_id);
        if checked.findings.iter().any(|finding| finding.code == Code::CaseFileMissing) {
            return Artifact::Absent;
        }
        // Unresolved evidence does not make an artifact invalid: it is compared with the other side.
        let (unresolved, broken): (Vec<_>, Vec<_>) =
            checked.findings.into_iter().partition(|finding| finding.code == Code::EvidenceUnresolved);
        match checked.case {
            Some(case) if broken.is_empty() => self.loaded(folder, case, &unresolved),
            _ => Artifact::Invalid(broken),
        }
    }

    fn loaded(&self, folder: &Utf8Path, case: Case, unresolved: &[Finding]) -> Artifact {
        let request = case.extra.get(REQUEST_ASSET_HREF).and_then(|href| href.as_str()?.parse().ok());
        let title = case.extra.get(TITLE_FIELD).and_then(Value::as_str);
        let recorded = RecordedRun::read(&case);
        let envelope = CaseEnvelope {
            title: title.map(|title| text::one_line(title, TITLE_UP_TO)),
            workflow_id: case.workflow_id,
            attempts: case.attempts.unwrap_or_default(),
            usage: case.usage,
            request,
            transcript_is_complete: case.extra.get(COMPLETE_FIELD) == Some(&Value::Bool(true)),
            recorded,
        };
        match case.outcome {
            Outcome::RunnerError(failure) => Artifact::Failure(Box::new(LoadedFailure { case: envelope, failure })),
            Outcome::Ok(answer) => {
                if self.manifest_is_broken && refers_to_assets(&answer) {
                    return Artifact::Invalid(vec![broken_manifest(folder)]);
                }
                let unresolved = unresolved.iter().filter_map(|finding| ref_of(&finding.pointer)).collect();
                let index = EventIndex::new(&answer.events);
                let payloads = Payloads::read(folder, &answer.events);
                let manifest = self.manifest.as_ref().filter(|_| refers_to_assets(&answer)).cloned();
                Artifact::Answer(Box::new(LoadedAnswer {
                    case: envelope,
                    answer,
                    payloads,
                    index,
                    unresolved,
                    manifest,
                }))
            }
        }
    }
}

/// Parses the action and the ref from a pointer such as `/proposed_actions/0/evidence_refs/1/call_id`.
fn ref_of(pointer: &str) -> Option<(usize, usize)> {
    let mut parts = pointer.strip_prefix("/proposed_actions/")?.split('/');
    let action = parts.next()?.parse().ok()?;
    (parts.next()? == "evidence_refs").then_some(())?;
    Some((action, parts.next()?.parse().ok()?))
}

/// The finding for an answer that refers to assets in a run whose manifest is unreadable.
fn broken_manifest(folder: &Utf8Path) -> Finding {
    Finding {
        code: Code::Unreadable,
        file: folder.join(MANIFEST_FILE),
        pointer: String::new(),
        position: None,
        excerpt: None,
        message: format!("cannot read the run's `{MANIFEST_FILE}`, which lists assets that this case uses as evidence"),
        expected: "an assets-manifest.v1 document".to_owned(),
        remedy: "run `counterproof validate` on the run folder to list the errors of the manifest".to_owned(),
    }
}

fn refers_to_assets(answer: &Answer) -> bool {
    let refs = answer.proposed_actions.iter().flat_map(|action| &action.evidence_refs);
    refs.into_iter().any(|evidence| matches!(evidence.target, EvidenceTarget::Asset { .. }))
}
