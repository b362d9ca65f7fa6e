//! Reads run folders: the runs of a side, the artifacts of one case at a time, and an index of their events. Artifacts are validated,
//! but not judged.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use camino::Utf8Path;
use counterproof_artifact::{
    Answer, Attempt, Case, CaseId, Confirmation, Content, Event, EventBody, EvidenceTarget, Extra, FinalOutput, Href,
    Manifest, Outcome, REQUEST_ASSET_HREF, Run, RunId, RunnerFailure, ToolCall, Usage,
};
use counterproof_store::{MANIFEST_FILE, ReadError, RunReader};
use counterproof_validation::{CheckedCase, Code, Finding, RunFolder};
use rayon::prelude::*;
use serde_json::Value;

use crate::load::call_status;
use crate::load::payload::{self, Payload, Payloads};
use crate::load::turns::{self, TurnRecord};
use crate::values::{text, text_hash};

/// The field of an artifact with the title of the case.
const TITLE_FIELD: &str = "title";

/// Characters of a title. Titles come from the producer and can have any length.
const TITLE_UP_TO: usize = 200;

/// The field with which a producer declares that its events are complete.
const COMPLETE_FIELD: &str = "transcript_complete";

/// A run folder opened for a comparison.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    reader: RunReader,
    manifest: Option<Arc<Manifest>>,
    manifest_is_broken: bool,
    folder: Arc<RunFolder>,
    selected: HashSet<CaseId>,
    /// The cases to compare; `None` for all.
    only: Option<Arc<HashSet<CaseId>>>,
    /// Which cases the agent solved, as far as it is known.
    solved: BTreeMap<CaseId, bool>,
    /// Why the labels of the run cannot be used.
    labels_error: Option<Arc<ReadError>>,
    /// The artifacts in memory, in place of those of the folder.
    held: Option<BTreeMap<CaseId, Artifact>>,
}

/// The artifact of a case on one side. A clone shares the answer.
#[derive(Debug, Clone)]
pub enum Artifact {
    /// There is no file.
    Absent,
    /// The file violates the contract.
    Invalid(Vec<Finding>),
    /// The agent answered.
    Answer(Arc<LoadedAnswer>),
    /// The agent's provider was out of quota or overloaded, and its message is the answer. Never loaded as such: a comparison
    /// decides it from all cases.
    Outage(Arc<LoadedAnswer>),
    /// The runner got no answer.
    Failure(Arc<LoadedFailure>),
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
    /// The results of writes that did nothing although no error marks them: the event, and the words of the result.
    pub silent_failures: HashMap<usize, String>,
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
    /// The answer of each turn, if the case is a conversation.
    pub(crate) turns: Vec<TurnRecord>,
    /// What is known of the processes, if the case is a recorded run.
    pub recorded: Option<RecordedRun>,
}

impl CaseEnvelope {
    /// The answer of each turn of a conversation, with the number of the turn. Empty for a case with a single request.
    pub fn answers_of_turns(&self) -> impl Iterator<Item = (u64, &FinalOutput)> {
        self.turns.iter().map(|record| (record.turn, &record.final_output))
    }
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
            Artifact::Answer(answer) | Artifact::Outage(answer) => Some(&answer.case),
            Artifact::Failure(failure) => Some(&failure.case),
            Artifact::Absent | Artifact::Invalid(_) => None,
        }
    }
}

impl ComparedRun {
    /// Prepares an opened run. An unreadable manifest is not an error here but a finding on the cases that need it. Labels that
    /// cannot be read count as absent; [`ComparedRun::labels_error`] has the reason.
    pub fn new(reader: RunReader) -> Self {
        let (manifest, manifest_is_broken) = match reader.manifest() {
            Ok(manifest) => (manifest, false),
            Err(_) => (None, true),
        };
        let folder = Arc::new(RunFolder::new(reader.folder(), reader.run().version, manifest.as_ref()));
        let selected = reader.run().selected_case_ids.iter().cloned().collect();
        // Labels only add to a comparison, so that unreadable ones must not prevent it.
        let (solved, labels_error) = match reader.labels() {
            Ok(labels) => (labels.map(|labels| labels.solved).unwrap_or_default(), None),
            Err(error) => (BTreeMap::new(), Some(Arc::new(error))),
        };
        let manifest = manifest.map(Arc::new);
        Self { reader, manifest, manifest_is_broken, folder, selected, only: None, solved, labels_error, held: None }
    }

    /// The same run with these cases alone.
    #[must_use]
    pub fn restricted_to(mut self, only: &Arc<HashSet<CaseId>>) -> Self {
        self.only = Some(only.clone());
        self
    }

    /// Returns the reader of the folder, with the run document.
    pub const fn reader(&self) -> &RunReader {
        &self.reader
    }

    /// Returns the manifest of the assets.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_deref()
    }

    /// Whether the agent solved a case, if a label of the run states it.
    pub fn is_solved(&self, case_id: &CaseId) -> Option<bool> {
        self.solved.get(case_id).copied()
    }

    /// Returns why the labels of the run cannot be used.
    pub fn labels_error(&self) -> Option<&ReadError> {
        self.labels_error.as_deref()
    }

    /// Returns all cases that the run selected, then those that only have an artifact on disk.
    pub fn case_ids(&self) -> Result<Vec<CaseId>, ReadError> {
        let mut ids = self.reader.run().selected_case_ids.clone();
        if let Some(held) = &self.held {
            ids.extend(held.keys().filter(|id| !self.selects(id)).cloned());
        } else {
            let on_disk = self.reader.case_ids_on_disk()?.into_iter();
            // A file that the run did not select may have nothing to do with it.
            ids.extend(on_disk.filter(|id| !self.selects(id) && !self.folder.is_foreign(id)));
        }
        if let Some(only) = &self.only {
            ids.retain(|id| only.contains(id));
        }
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
        match &self.held {
            Some(held) => held.get(case_id).cloned().unwrap_or(Artifact::Absent),
            None => self.to_artifact(self.folder.read_case(case_id)),
        }
    }

    fn to_artifact(&self, checked: CheckedCase) -> Artifact {
        let folder = self.reader.folder();
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
            turns: turns::read(&case.extra),
            recorded,
        };
        match case.outcome {
            Outcome::RunnerError(failure) => Artifact::Failure(Arc::new(LoadedFailure { case: envelope, failure })),
            Outcome::Ok(answer) => {
                // Without its manifest, an asset cannot be told from a missing one. Answers without assets are not affected.
                if self.manifest_is_broken && refers_to_assets(&answer) {
                    return Artifact::Invalid(vec![broken_manifest(folder)]);
                }
                // Validation reports refs by their pointers; the comparison looks them up by their indexes.
                let unresolved = unresolved.iter().filter_map(|finding| ref_of(&finding.pointer)).collect();
                let index = EventIndex::new(&answer.events);
                let payloads = Payloads::read(folder, &answer.events);
                let manifest = self.manifest.as_ref().filter(|_| refers_to_assets(&answer)).cloned();
                let mut loaded = LoadedAnswer {
                    case: envelope,
                    answer,
                    payloads,
                    index,
                    unresolved,
                    manifest,
                    silent_failures: HashMap::new(),
                };
                loaded.silent_failures = call_status::silent_failures(&loaded);
                Artifact::Answer(Arc::new(loaded))
            }
        }
    }
}

/// The ids of all cases: in the baseline's order, then those that only new has.
pub fn pair(baseline: &SideRuns, new: &SideRuns) -> Result<Vec<CaseId>, ReadError> {
    let mut ids = Vec::new();
    let mut known = HashSet::new();
    for id in baseline.case_ids()?.into_iter().chain(new.case_ids()?) {
        if known.insert(id.clone()) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Runs in memory, for many comparisons of the same artifacts or of changed ones.
impl ComparedRun {
    /// Loads all artifacts. Memory grows with their size.
    pub(crate) fn into_memory(mut self) -> Result<Self, ReadError> {
        let ids = self.case_ids()?;
        self.held = Some(ids.into_par_iter().map(|id| (id.clone(), self.load(&id))).collect());
        Ok(self)
    }

    /// A run in memory with another answer to a case. An artifact that then breaks the contract is loaded as an invalid one.
    pub(crate) fn with_case(&self, case: &Case) -> Self {
        let mut run = self.clone();
        // Serialising our own type cannot fail; without its bytes, the artifact would be invalid.
        let bytes = serde_json::to_vec(case).unwrap_or_default();
        let artifact = self.to_artifact(self.folder.check_case(&case.case_id, bytes));
        if let Some(held) = &mut run.held {
            held.insert(case.case_id.clone(), artifact);
        }
        run
    }

    /// The run as one that asked these cases again, to confirm those that looked worse in the run `of`.
    pub(crate) fn as_confirmation(&self, of: &RunId, cases: &[CaseId]) -> Self {
        let mut run = self.clone();
        let confirmation = Confirmation {
            of: of.clone(),
            against: Vec::new(),
            index: None,
            count: None,
            ends_early: None,
            extra: Extra::new(),
        };
        run.reader = self.reader.with_run(Run {
            confirmation: Some(confirmation),
            selected_case_ids: cases.to_vec(),
            ..self.reader.run().clone()
        });
        run.selected = cases.iter().cloned().collect();
        run.held = Some(cases.iter().map(|id| (id.clone(), self.load(id))).collect());
        run
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

/// The runs of one side in the order given. There is at least one.
#[derive(Debug, Clone)]
pub struct SideRuns {
    runs: Vec<ComparedRun>,
}

impl SideRuns {
    /// A side of these runs; `None` if there are none.
    pub fn new(runs: Vec<ComparedRun>) -> Option<Self> {
        (!runs.is_empty()).then_some(Self { runs })
    }

    /// The same runs with these cases alone.
    #[must_use]
    pub fn restricted_to(self, only: &Arc<HashSet<CaseId>>) -> Self {
        Self { runs: self.runs.into_iter().map(|run| run.restricted_to(only)).collect() }
    }

    /// Returns the first run, which represents the side where only one run is used.
    pub fn first(&self) -> &ComparedRun {
        &self.runs[0]
    }

    /// Returns the run with this index.
    pub fn get(&self, index: usize) -> Option<&ComparedRun> {
        self.runs.get(index)
    }

    /// Iterates over all runs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ComparedRun> {
        self.runs.iter()
    }

    /// Returns the share of the runs that did not solve a case, among those whose labels state it; 0 without a label.
    pub(crate) fn labelled_failed(&self, case_id: &CaseId) -> f64 {
        let labels: Vec<bool> = self.runs.iter().filter_map(|run| run.is_solved(case_id)).collect();
        let failed = labels.iter().filter(|solved| !**solved).count();
        // Without a label, no run failed.
        failed as f64 / labels.len().max(1) as f64
    }

    /// Whether a case was added to the cases file after these runs: they recorded the cases that they ran, one of them ran all,
    /// and none has the case.
    pub(crate) fn precede(&self, case_id: &CaseId) -> bool {
        let is_whole = |run: &ComparedRun| {
            let run = run.reader().run();
            let is_selection = run.extra.get("selection").is_some_and(|value| *value == true);
            run.shard.is_none() && run.confirmation.is_none() && !is_selection
        };
        let lacks = |run: &ComparedRun| {
            let digests = run.reader().run().case_digests.as_ref();
            digests.is_some_and(|digests| !digests.contains_key(case_id))
                && !run.selects(case_id)
                && matches!(run.load(case_id), Artifact::Absent)
        };
        self.runs.iter().any(is_whole) && self.runs.iter().all(lacks)
    }

    /// True if the side has more than one run.
    pub const fn is_repeated(&self) -> bool {
        self.runs.len() > 1
    }

    /// Adds runs after the others.
    #[must_use]
    pub(crate) fn with_more(mut self, runs: impl IntoIterator<Item = ComparedRun>) -> Self {
        self.runs.extend(runs);
        self
    }

    /// Returns the cases of all runs: in the order of the first run, then those that only later runs have.
    pub fn case_ids(&self) -> Result<Vec<CaseId>, ReadError> {
        let mut ids = Vec::new();
        let mut known = HashSet::new();
        for run in &self.runs {
            ids.extend(run.case_ids()?.into_iter().filter(|id| known.insert(id.clone())));
        }
        Ok(ids)
    }
}

impl From<ComparedRun> for SideRuns {
    fn from(run: ComparedRun) -> Self {
        Self { runs: vec![run] }
    }
}

/// The positions of an answer's events by id. If two events have the same id, the first one counts.
#[derive(Debug, Default)]
pub struct EventIndex {
    calls: Positions,
    results: Positions,
    documents: Positions,
    ids: Positions,
    events: usize,
}

impl EventIndex {
    /// Indexes the events.
    pub fn new(events: &[Event]) -> Self {
        let mut index = Self { events: events.len(), ..Self::default() };
        for (position, event) in events.iter().enumerate() {
            match &event.body {
                EventBody::ToolCall(call) => index.calls.insert(&call.call_id, position),
                EventBody::ToolResult(result) => index.results.insert(&result.call_id, position),
                EventBody::Retrieval(found) => {
                    found.doc_ids.iter().for_each(|id| index.documents.insert(id, position));
                }
                EventBody::FinalOutput(_) | EventBody::Unknown { .. } => {}
            }
            for key in ["event_id", "id"] {
                if let Some(id) = event.extra().get(key).and_then(|value| value.as_str()) {
                    index.ids.insert(id, position);
                }
            }
        }
        for positions in [&mut index.calls, &mut index.results, &mut index.documents, &mut index.ids] {
            positions.sort();
        }
        index
    }

    /// Returns the call with this id.
    pub fn call<'a>(&self, events: &'a [Event], call_id: &str) -> Option<&'a ToolCall> {
        events.get(self.call_position(call_id)?)?.tool_call()
    }

    /// Returns the position of the call with this id.
    pub fn call_position(&self, call_id: &str) -> Option<usize> {
        self.calls.find(call_id)
    }

    /// Returns the position of the event that an evidence ref points at. `None` for assets and for unresolved refs.
    pub fn find(&self, target: &EvidenceTarget) -> Option<usize> {
        match target {
            EvidenceTarget::ToolResult { call_id } => self.results.find(call_id),
            EvidenceTarget::RetrievalDoc { doc_id } => self.documents.find(doc_id),
            EvidenceTarget::Event { id } => match event_position(id) {
                Some(position) => (position < self.events).then_some(position),
                None => self.ids.find(id),
            },
            EvidenceTarget::Asset { .. } => None,
        }
    }
}

/// Positions by hashed id. The hashes are keyed, so that no agent can construct colliding ids.
#[derive(Debug, Default)]
struct Positions(Vec<(u64, usize)>);

impl Positions {
    fn insert(&mut self, id: &str, position: usize) {
        self.0.push((text_hash(id), position));
    }

    /// Sorts the ids for binary search and keeps the first position of each.
    fn sort(&mut self) {
        self.0.sort_unstable();
        // The positions of an id are sorted too, so the first event with it stays.
        self.0.dedup_by_key(|(id, _)| *id);
    }

    fn find(&self, id: &str) -> Option<usize> {
        let hash = text_hash(id);
        let found = self.0.binary_search_by_key(&hash, |(id, _)| *id).ok()?;
        Some(self.0[found].1)
    }
}

/// Parses the contract's address of an event within its artifact: `events[3]`.
fn event_position(id: &str) -> Option<usize> {
    id.strip_prefix("events[")?.strip_suffix(']')?.parse().ok()
}

/// The field of an artifact with the facts of a recorded run.
const FIELD: &str = "recorded_run";

/// The kind of a source that records the calls of a server: a shim or a proxy of the guard.
const SERVER: &str = "server";

/// Maximum number of characters of a status, and of the end of an agent.
const STATUS_CHARS: usize = 40;
const AGENT_CHARS: usize = 120;

/// The status of a run that ended as it should.
const SUCCEEDED: &str = "SUCCEEDED";

/// A recorded run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRun {
    /// True if a guard recorded the calls of a server, and can thus have refused some.
    pub has_guard: bool,
    /// How it ended: `FAILED (agent: exit code 1)`.
    pub ending: Option<String>,
    /// False if its status is known and not the one of a success.
    pub succeeded: bool,
}

impl RecordedRun {
    /// Reads the facts of a case. Returns `None` for a case that is not a recorded run.
    pub(super) fn read(case: &Case) -> Option<Self> {
        let facts = case.extra.get(FIELD)?;
        let has_guard = facts["sources"].as_array().into_iter().flatten().any(|source| source["kind"] == SERVER);
        let output = match &case.outcome {
            Outcome::Ok(answer) => Some(&answer.final_output.content),
            Outcome::RunnerError(_) => None,
        };
        let field = |name: &str| match output {
            Some(Content::Json(fields)) => fields.get(name).and_then(Value::as_str),
            _ => None,
        };
        let status = field("status");
        let ending = status.map(|status| {
            let agent = field("agent").map(|agent| format!(" (agent: {})", text::one_line(agent, AGENT_CHARS)));
            format!("{}{}", text::one_line(status, STATUS_CHARS), agent.unwrap_or_default())
        });
        Some(Self { has_guard, ending, succeeded: status.is_none_or(|status| status == SUCCEEDED) })
    }
}

const LONGEST_NAME: usize = 80;

/// Most tools per case. An agent that uses more invents their names.
const MOST_TOOLS: usize = 64;

/// Returns the names of the tools that answers called or proposed, sorted.
pub(crate) fn tool_names<'a>(artifacts: impl IntoIterator<Item = &'a Artifact>) -> Vec<String> {
    let answers = artifacts.into_iter().filter_map(Artifact::answer);
    let names: BTreeSet<&str> = answers
        .flat_map(|loaded| {
            let called = loaded.answer.events.iter().filter_map(Event::tool_call).map(|call| call.tool.as_str());
            called.chain(loaded.answer.proposed_actions.iter().map(|action| action.tool_name.as_str()))
        })
        .collect();
    // A set first, so that the bound counts distinct names.
    names.into_iter().take(MOST_TOOLS).map(|name| text::one_line(name, LONGEST_NAME)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(recorded: &Value, content: &Value) -> Option<RecordedRun> {
        let case = json!({
            "schema_version": "case.v1", "case_id": "c", "version": "new", "status": "ok", "proposed_actions": [],
            "events": [], "final_output": {"content_type": "json", "content": content}, "recorded_run": recorded,
        });
        RecordedRun::read(&serde_json::from_value(case).unwrap())
    }

    #[test]
    fn only_a_source_of_a_server_is_a_guard() {
        let has_guard = |recorded: &Value| read(recorded, &json!({})).unwrap().has_guard;
        assert!(has_guard(&json!({"sources": [{"kind": "agent"}, {"kind": "server"}]})));
        for recorded in [json!({"sources": [{"kind": "agent"}]}), json!({"sources": []}), json!({}), json!("run-1")] {
            assert!(!has_guard(&recorded), "{recorded}");
        }
    }

    #[test]
    fn the_ending_is_the_status_and_the_end_of_a_failed_agent() {
        let ending = |content: Value| {
            let run = read(&json!({}), &content).unwrap();
            (run.ending.unwrap_or_default(), run.succeeded)
        };
        assert_eq!(ending(json!({"status": "SUCCEEDED"})), ("SUCCEEDED".to_owned(), true));
        let failed = json!({"status": "FAILED", "agent": "exit code 1"});
        assert_eq!(ending(failed), ("FAILED (agent: exit code 1)".to_owned(), false));
        assert_eq!(ending(json!({"status": 7})), (String::new(), true));
    }
}
