//! Writes a run folder: the artifact of each case with its assets, then the manifest and the run document.

use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{
    Answer, Attempt, AttemptOutcome, Case, CaseId, Content, ContentType, Event, EventBody, Extra, FinalOutput,
    FinalOutputEvent, Millis, Outcome, Run, RunId, Side, Stats, ToolCall, ToolResult, ToolStatus,
};
use counterproof_store::write::WriteError;
use counterproof_store::{CreateError, RunWriter, StagedRun};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The longest payload inside a case, as compact JSON in bytes. A longer payload becomes an asset.
const MAX_INLINE_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone)]
pub struct Destination<'a> {
    pub out: &'a Utf8Path,
    pub side: Side,
    pub run_id: &'a RunId,
    /// The name and version of the program that exports.
    pub writer: String,
    /// Whether the agent is declared to do the same in every run.
    pub is_deterministic: bool,
}

/// A run folder under construction. Threads can share it.
#[derive(Debug)]
pub(crate) struct RunBuilder {
    folder: Folder,
    run_id: RunId,
    program: String,
    is_deterministic: bool,
    cases: Mutex<Cases>,
}

#[derive(Debug)]
enum Folder {
    Staged(StagedRun),
    InPlace(RunWriter),
}

#[derive(Debug, Default)]
struct Cases {
    ids: Vec<CaseId>,
    failed: u64,
}

#[derive(Debug)]
pub(crate) struct RunFacts {
    /// What recorded the run, instead of the URL of an agent.
    pub(crate) producer: &'static str,
    /// The cases file, relative to the run folder.
    pub(crate) cases_path: String,
    pub(crate) started_at: Timestamp,
    pub(crate) stats: Extra,
    pub(crate) extra: Extra,
}

impl RunBuilder {
    /// Creates a run folder that appears when it is complete, or not at all.
    pub(crate) fn staged(to: &Destination<'_>) -> Result<Self, CreateError> {
        Ok(Self::new(Folder::Staged(StagedRun::create(to.out, to.side, to.run_id)?), to))
    }

    /// Creates a run folder at its place, for a run that takes long: what is done is there if the run is killed.
    pub(crate) fn in_place(to: &Destination<'_>) -> Result<Self, CreateError> {
        Ok(Self::new(Folder::InPlace(RunWriter::create(to.out, to.side, to.run_id)?), to))
    }

    fn new(folder: Folder, to: &Destination<'_>) -> Self {
        Self {
            folder,
            run_id: to.run_id.clone(),
            program: to.writer.clone(),
            is_deterministic: to.is_deterministic,
            cases: Mutex::default(),
        }
    }

    pub(crate) fn writer(&self) -> &RunWriter {
        match &self.folder {
            Folder::Staged(staged) => staged.writer(),
            Folder::InPlace(writer) => writer,
        }
    }

    pub(crate) fn add_with_assets(&self, mut case: Case) -> Result<(), WriteError> {
        self.writer().move_large_payloads(&mut case, MAX_INLINE_BYTES)?;
        self.add(&case)
    }

    pub(crate) fn add(&self, case: &Case) -> Result<(), WriteError> {
        self.writer().write_case(case)?;
        // After the artifact is written, so that the run document never lists a case without one.
        self.cases.lock().unwrap_or_else(PoisonError::into_inner).push(case);
        Ok(())
    }

    /// Adds a case and lists it at once: after a kill, the folder is a run of what was done.
    pub(crate) fn add_listed(&self, case: &Case, facts: RunFacts) -> Result<(), WriteError> {
        // Held while both documents are written: another thread would list a case before it has an artifact.
        let mut cases = self.cases.lock().unwrap_or_else(PoisonError::into_inner);
        self.writer().write_case(case)?;
        cases.push(case);
        self.write_documents(&cases, facts)
    }

    /// Writes the documents of a run without cases, which [`add_listed`](Self::add_listed) adds.
    pub(crate) fn begin(&self, facts: RunFacts) -> Result<(), WriteError> {
        self.write_documents(&self.cases.lock().unwrap_or_else(PoisonError::into_inner), facts)
    }

    pub(crate) fn finish(self, facts: RunFacts) -> Result<Utf8PathBuf, CreateError> {
        self.write_documents(&self.cases.lock().unwrap_or_else(PoisonError::into_inner), facts)?;
        match self.folder {
            // Only now does the folder have its name: until here an error leaves nothing behind.
            Folder::Staged(staged) => staged.publish(),
            Folder::InPlace(writer) => Ok(writer.folder().to_owned()),
        }
    }

    fn write_documents(&self, cases: &Cases, facts: RunFacts) -> Result<(), WriteError> {
        let (mut ids, failed) = (cases.ids.clone(), cases.failed);
        if matches!(self.folder, Folder::InPlace(_)) {
            // Threads add the cases in any order. Sorted, equal runs have equal documents.
            ids.sort_unstable();
        }
        let writer = self.writer();
        let started_at = facts.started_at.to_string();
        // The run document comes last: it states what the folder has.
        writer.write_manifest(&started_at)?;
        let total = ids.len() as u64;
        writer.write_run(&Run {
            base_url: facts.producer.to_owned(),
            cases_path: facts.cases_path,
            selected_case_ids: ids,
            deterministic: self.is_deterministic.then_some(true),
            stats: Some(Stats {
                cases_total: Some(total.into()),
                cases_completed: Some((total - failed).into()),
                cases_failed: Some(failed.into()),
                duration_ms: None,
                extra: facts.stats,
            }),
            extra: facts.extra,
            ..Run::new(self.run_id.clone(), writer.side(), started_at, self.program.clone())
        })
    }
}

impl Cases {
    fn push(&mut self, case: &Case) {
        self.ids.push(case.case_id.clone());
        self.failed += u64::from(matches!(case.outcome, Outcome::RunnerError(_)));
    }
}

/// Builds the outcome of a case: its steps with their times, and the final output as the last event.
pub(crate) fn answer(steps: Vec<(u64, EventBody)>, ended: u64, output: Map<String, Value>) -> Outcome {
    // Both places have the same content, because readers of either must not differ.
    let content = Content::Json(output);
    let last = FinalOutputEvent { content_type: ContentType::Json, content: content.clone(), extra: Extra::new() };
    let events = steps.into_iter().chain([(ended, EventBody::FinalOutput(last))]);
    Outcome::Ok(Answer {
        proposed_actions: Vec::new(),
        events: events.map(|(ts, body)| Event { ts: ts.into(), body }).collect(),
        final_output: FinalOutput {
            content_type: ContentType::Json,
            output_hash: Some(content.short_hash()),
            content,
            redactions_applied: None,
            extra: Extra::new(),
        },
    })
}

/// Builds the only attempt of a case. A recorded case has no retries.
pub(crate) fn attempt(started_at: Timestamp, latency: Option<u64>, outcome: &Outcome) -> Attempt {
    let (outcome, error_class) = match outcome {
        Outcome::Ok(_) => (AttemptOutcome::Ok, None),
        Outcome::RunnerError(failure) => (AttemptOutcome::RunnerError, Some(failure.class)),
    };
    Attempt {
        attempt: 1_u64.into(),
        started_at: started_at.to_string(),
        latency_ms: latency.map(Into::into),
        outcome,
        error_class,
        extra: Extra::new(),
    }
}

pub(crate) fn tool_call(call_id: String, tool: String, args: Map<String, Value>) -> ToolCall {
    ToolCall {
        call_id,
        action_id: None,
        tool,
        args,
        risk_level: None,
        risk_tags: None,
        annotations: None,
        extra: Extra::new(),
    }
}

pub(crate) fn tool_result(
    call_id: String,
    status: ToolStatus,
    latency_ms: Millis,
    payload: Option<Content>,
) -> ToolResult {
    ToolResult {
        call_id,
        action_id: None,
        status,
        latency_ms,
        payload_summary: payload,
        payload_asset_href: None,
        payload_asset_sha256: None,
        extra: Extra::new(),
    }
}

/// Returns a time in milliseconds since 1970, the earliest time of an artifact.
pub(crate) fn millis(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).unwrap_or_default()
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        // No caller passes another value.
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}
