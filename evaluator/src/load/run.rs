//! Reading: two run folders, and from them the artifacts of one case at a time. What an artifact means is not decided here.

use std::collections::HashSet;
use std::sync::Arc;

use camino::Utf8Path;
use counterproof_artifact::{Answer, Attempt, Case, CaseId, EvidenceTarget, Href, Manifest, Outcome, RunnerFailure};
use counterproof_store::{MANIFEST_FILE, ReadError, RunReader};
use counterproof_validation::{Code, Finding, RunFolder};
use serde_json::Value;

use crate::load::index::EventIndex;
use crate::load::payload::{self, Payload, Payloads};
use crate::values::text;

/// The field of an artifact that says what the case is about.
const TITLE_FIELD: &str = "title";

/// Characters of such a title: it comes from whoever wrote the artifact.
const TITLE_UP_TO: usize = 200;

/// The field of an artifact that leads to the request as it was sent.
const REQUEST_FIELD: &str = "request_asset_href";

/// The field by which a producer declares that nothing is missing from its events.
const COMPLETE_FIELD: &str = "transcript_complete";

/// One of the two runs, opened.
#[derive(Debug)]
pub struct ComparedRun {
    reader: RunReader,
    manifest: Option<Arc<Manifest>>,
    manifest_is_broken: bool,
    folder: RunFolder,
    selected: HashSet<CaseId>,
}

/// What one side has of a case.
#[derive(Debug)]
pub enum Artifact {
    /// No file.
    Absent,
    /// A file that breaks the contract.
    Invalid(Vec<Finding>),
    /// The agent answered.
    Answer(Box<LoadedAnswer>),
    /// The runner got no answer.
    Failure(Box<LoadedFailure>),
}

/// An answer, with what its links lead to.
#[derive(Debug)]
pub struct LoadedAnswer {
    /// The whole artifact's common fields; its outcome is in `answer`.
    pub case: CaseEnvelope,
    /// What the agent answered.
    pub answer: Answer,
    /// What the events brought.
    pub payloads: Payloads,
    /// Where the events are, by what refers to them.
    pub index: EventIndex,
    /// The evidence refs that lead nowhere, by the index of their action and their own.
    pub unresolved: HashSet<(usize, usize)>,
    /// The run's manifest, for what refers to an asset by its id.
    pub manifest: Option<Arc<Manifest>>,
}

impl LoadedAnswer {
    /// The payload of a tool result or the snippets of a retrieval, from the event itself or from the asset it links to.
    pub fn payload(&self, index: usize) -> Option<Payload<'_>> {
        self.payloads.of(index, &self.answer.events.get(index)?.body)
    }
}

/// A runner failure, with the artifact's common fields.
#[derive(Debug)]
pub struct LoadedFailure {
    /// The whole artifact's common fields.
    pub case: CaseEnvelope,
    /// Why there is no answer.
    pub failure: RunnerFailure,
}

/// What both kinds of artifact share.
#[derive(Debug, Clone)]
pub struct CaseEnvelope {
    /// What the case is about, on one line, where the artifact says it.
    pub title: Option<String>,
    /// The workflow that the case belongs to.
    pub workflow_id: Option<String>,
    /// Every try.
    pub attempts: Vec<Attempt>,
    /// The request as it was sent, where it was kept.
    pub request: Option<Href>,
    /// Whether the producer declares that the events hold everything that the agent was given beside its input.
    pub transcript_is_complete: bool,
}

impl Artifact {
    /// The answer, where there is one.
    pub fn answer(&self) -> Option<&LoadedAnswer> {
        match self {
            Artifact::Answer(answer) => Some(answer),
            _ => None,
        }
    }

    /// The failure, where there is one.
    pub fn failure(&self) -> Option<&LoadedFailure> {
        match self {
            Artifact::Failure(failure) => Some(failure),
            _ => None,
        }
    }

    /// The fields that both kinds of artifact share.
    pub fn envelope(&self) -> Option<&CaseEnvelope> {
        match self {
            Artifact::Answer(answer) => Some(&answer.case),
            Artifact::Failure(failure) => Some(&failure.case),
            Artifact::Absent | Artifact::Invalid(_) => None,
        }
    }
}

impl ComparedRun {
    /// Takes an opened run; a manifest that cannot be read is a finding of the cases that need it, not an error here.
    pub fn new(reader: RunReader) -> Self {
        let (manifest, manifest_is_broken) = match reader.manifest() {
            Ok(manifest) => (manifest, false),
            Err(_) => (None, true),
        };
        let folder = RunFolder::new(reader.folder(), reader.run().version, manifest.as_ref());
        let selected = reader.run().selected_case_ids.iter().cloned().collect();
        Self { reader, manifest: manifest.map(Arc::new), manifest_is_broken, folder, selected }
    }

    /// The folder and the run document.
    pub const fn reader(&self) -> &RunReader {
        &self.reader
    }

    /// The assets' manifest.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_deref()
    }

    /// Every case that the run selected, then those whose artifacts only lie on disk.
    pub fn case_ids(&self) -> Result<Vec<CaseId>, ReadError> {
        let mut ids = self.reader.run().selected_case_ids.clone();
        let on_disk = self.reader.case_ids_on_disk()?.into_iter();
        ids.extend(on_disk.filter(|id| !self.selects(id) && !self.folder.is_foreign(id)));
        Ok(ids)
    }

    /// True where the run set out to ask the case.
    pub fn selects(&self, case_id: &CaseId) -> bool {
        self.selected.contains(case_id)
    }

    /// Reads an asset as JSON; `None` where it is not there, is not JSON, or is too large to be taken apart.
    pub fn read_json(&self, href: &Href) -> Option<Value> {
        payload::asset(self.reader.folder(), href).filter(|kept| !kept.is_digest).map(|kept| kept.value)
    }

    /// Reads and checks what the run has of a case.
    pub fn load(&self, case_id: &CaseId) -> Artifact {
        let folder = self.reader.folder();
        let checked = self.folder.read_case(case_id);
        if checked.findings.iter().any(|finding| finding.code == Code::CaseFileMissing) {
            return Artifact::Absent;
        }
        // Evidence that does not resolve is judged against the other side, not as a broken artifact.
        let (unresolved, broken): (Vec<_>, Vec<_>) =
            checked.findings.into_iter().partition(|finding| finding.code == Code::EvidenceUnresolved);
        match checked.case {
            Some(case) if broken.is_empty() => self.loaded(folder, case, &unresolved),
            _ => Artifact::Invalid(broken),
        }
    }

    fn loaded(&self, folder: &Utf8Path, case: Case, unresolved: &[Finding]) -> Artifact {
        let request = case.extra.get(REQUEST_FIELD).and_then(|href| href.as_str()?.parse().ok());
        let title = case.extra.get(TITLE_FIELD).and_then(Value::as_str);
        let envelope = CaseEnvelope {
            title: title.map(|title| text::one_line(title, TITLE_UP_TO)),
            workflow_id: case.workflow_id,
            attempts: case.attempts.unwrap_or_default(),
            request,
            transcript_is_complete: case.extra.get(COMPLETE_FIELD) == Some(&Value::Bool(true)),
        };
        match case.outcome {
            Outcome::RunnerError(failure) => Artifact::Failure(Box::new(LoadedFailure { case: envelope, failure })),
            Outcome::Ok(answer) => {
                if self.manifest_is_broken && refers_to_assets(&answer) {
                    return Artifact::Invalid(vec![broken_manifest(folder)]);
                }
                let unresolved = unresolved.iter().filter_map(|finding| ref_of(&finding.pointer)).collect();
                let index = EventIndex::of(&answer.events);
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

/// The action and the ref that a pointer such as `/proposed_actions/0/evidence_refs/1/call_id` leads to.
fn ref_of(pointer: &str) -> Option<(usize, usize)> {
    let mut parts = pointer.strip_prefix("/proposed_actions/")?.split('/');
    let action = parts.next()?.parse().ok()?;
    (parts.next()? == "evidence_refs").then_some(())?;
    Some((action, parts.next()?.parse().ok()?))
}

/// What refers to assets cannot be judged without the manifest that the run has.
fn broken_manifest(folder: &Utf8Path) -> Finding {
    Finding {
        code: Code::Unreadable,
        file: folder.join(MANIFEST_FILE),
        pointer: String::new(),
        position: None,
        excerpt: None,
        message: format!(
            "the run's `{MANIFEST_FILE}` cannot be read, and the evidence of this case is among the assets"
        ),
        expected: "an assets-manifest.v1 document".to_owned(),
        remedy: "`counterproof validate` tells what is wrong with the manifest".to_owned(),
    }
}

fn refers_to_assets(answer: &Answer) -> bool {
    let refs = answer.proposed_actions.iter().flat_map(|action| &action.evidence_refs);
    refs.into_iter().any(|evidence| matches!(evidence.target, EvidenceTarget::Asset { .. }))
}
