//! Fast path for all objects of an answer except events: one function for each kind of object.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::event::EventSeed;
use super::fields::{Each, TextSeed, bail, content, content_type, keep, object, put, required, risk, word};
use crate::parse::{ParseBuffers, ValueSeed};
use counterproof_artifact::{
    Answer, Attempt, AttemptOutcome, Case, Count, EvidenceRef, EvidenceTarget, Extra, FailureClass, FinalOutput,
    Outcome, ProposedAction, Usage,
};

/// Defines a seed for an object. `$read` reads the fields one by one.
macro_rules! object_seed {
    ($seed:ident => $value:ty, $read:ident) => {
        #[derive(Clone, Copy)]
        pub(super) struct $seed<'g>(pub(super) &'g ParseBuffers);

        impl<'de> DeserializeSeed<'de> for $seed<'_> {
            type Value = $value;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<$value, D::Error> {
                deserializer.deserialize_map(self)
            }
        }

        impl<'de> Visitor<'de> for $seed<'_> {
            type Value = $value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<$value, A::Error> {
                $read(entries, self.0)
            }
        }
    };
}

object_seed!(CaseSeed => Case, case);
object_seed!(AttemptSeed => Attempt, attempt);
object_seed!(UsageSeed => Usage, usage);
object_seed!(ActionSeed => ProposedAction, action);
object_seed!(EvidenceSeed => EvidenceRef, evidence);
object_seed!(OutputSeed => FinalOutput, output);

fn case<'de, A: MapAccess<'de>>(mut entries: A, buffers: &ParseBuffers) -> Result<Case, A::Error> {
    let (mut schema, mut case_id, mut version, mut status) = (None, None, None, None);
    let (mut workflow_id, mut attempts, mut usage, mut extra) = (None, None, None, Extra::new());
    let (mut proposed_actions, mut events, mut final_output) = (None, None, None);
    while let Some(name) = entries.next_key_seed(TextSeed)? {
        match &*name {
            "schema_version" => put(&mut schema, word(&mut entries, |word| (word == "case.v1").then_some(()))?)?,
            "case_id" => put(&mut case_id, word(&mut entries, |word| word.parse().ok())?)?,
            "version" => put(&mut version, word(&mut entries, |word| word.parse().ok())?)?,
            "status" => put(&mut status, word(&mut entries, |word| (word == "ok").then_some(()))?)?,
            "workflow_id" => put(&mut workflow_id, entries.next_value()?)?,
            "attempts" => put(&mut attempts, entries.next_value_seed(Each(AttemptSeed(buffers)))?)?,
            "usage" => put(&mut usage, entries.next_value_seed(UsageSeed(buffers))?)?,
            "proposed_actions" => put(&mut proposed_actions, entries.next_value_seed(Each(ActionSeed(buffers)))?)?,
            "events" => put(&mut events, entries.next_value_seed(Each(EventSeed(buffers)))?)?,
            "final_output" => put(&mut final_output, entries.next_value_seed(OutputSeed(buffers))?)?,
            "runner_failure" => return Err(bail()),
            _ => keep(&mut extra, name, entries.next_value_seed(ValueSeed(buffers))?)?,
        }
    }
    required(schema.and(status))?;
    Ok(Case {
        case_id: required(case_id)?,
        version: required(version)?,
        workflow_id,
        attempts,
        usage,
        outcome: Outcome::Ok(Answer {
            proposed_actions: required(proposed_actions)?,
            events: required(events)?,
            final_output: required(final_output)?,
        }),
        extra,
    })
}

fn usage<'de, A: MapAccess<'de>>(mut entries: A, buffers: &ParseBuffers) -> Result<Usage, A::Error> {
    let (mut input_tokens, mut output_tokens, mut cached_tokens) = (None, None, None);
    let (mut cost, mut currency, mut extra) = (None, None, Extra::new());
    while let Some(name) = entries.next_key_seed(TextSeed)? {
        match &*name {
            "input_tokens" => put(&mut input_tokens, entries.next_value::<Count>()?)?,
            "output_tokens" => put(&mut output_tokens, entries.next_value::<Count>()?)?,
            "cached_tokens" => put(&mut cached_tokens, entries.next_value::<Count>()?)?,
            "cost" => put(&mut cost, entries.next_value::<f64>()?)?,
            "currency" => put(&mut currency, entries.next_value()?)?,
            _ => keep(&mut extra, name, entries.next_value_seed(ValueSeed(buffers))?)?,
        }
    }
    if cost.is_some_and(|cost| cost < 0.0) {
        return Err(bail());
    }
    Ok(Usage { input_tokens, output_tokens, cached_tokens, cost, currency, extra })
}

fn attempt<'de, A: MapAccess<'de>>(mut entries: A, buffers: &ParseBuffers) -> Result<Attempt, A::Error> {
    let (mut attempt, mut started_at, mut latency_ms, mut outcome) = (None, None, None, None);
    let (mut error_class, mut extra) = (None, Extra::new());
    while let Some(name) = entries.next_key_seed(TextSeed)? {
        match &*name {
            "attempt" => put(&mut attempt, entries.next_value::<Count>()?)?,
            "started_at" => put(&mut started_at, entries.next_value()?)?,
            "latency_ms" => put(&mut latency_ms, entries.next_value()?)?,
            "outcome" => put(&mut outcome, word(&mut entries, attempt_outcome)?)?,
            "error_class" => put(&mut error_class, word(&mut entries, failure_class)?)?,
            _ => keep(&mut extra, name, entries.next_value_seed(ValueSeed(buffers))?)?,
        }
    }
    let (attempt, outcome) = (required(attempt)?, required(outcome)?);
    if attempt.get() == 0 || (error_class.is_some() && outcome == AttemptOutcome::Ok) {
        return Err(bail());
    }
    Ok(Attempt { attempt, started_at: required(started_at)?, latency_ms, outcome, error_class, extra })
}

fn attempt_outcome(word: &str) -> Option<AttemptOutcome> {
    match word {
        "ok" => Some(AttemptOutcome::Ok),
        "runner_error" => Some(AttemptOutcome::RunnerError),
        _ => None,
    }
}

fn failure_class(word: &str) -> Option<FailureClass> {
    FailureClass::ALL.into_iter().find(|class| class.as_str() == word)
}

fn action<'de, A: MapAccess<'de>>(mut entries: A, buffers: &ParseBuffers) -> Result<ProposedAction, A::Error> {
    let (mut action_id, mut action_type, mut tool_name, mut params) = (None, None, None, None);
    let (mut risk_level, mut risk_tags, mut evidence_refs, mut extra) = (None, None, None, Extra::new());
    while let Some(name) = entries.next_key_seed(TextSeed)? {
        match &*name {
            "action_id" => put(&mut action_id, entries.next_value()?)?,
            "action_type" => put(&mut action_type, entries.next_value()?)?,
            "tool_name" => put(&mut tool_name, entries.next_value()?)?,
            "params" => put(&mut params, object(&mut entries, buffers)?)?,
            "risk_level" => put(&mut risk_level, word(&mut entries, risk)?)?,
            "risk_tags" => put(&mut risk_tags, entries.next_value()?)?,
            "evidence_refs" => put(&mut evidence_refs, entries.next_value_seed(Each(EvidenceSeed(buffers)))?)?,
            _ => keep(&mut extra, name, entries.next_value_seed(ValueSeed(buffers))?)?,
        }
    }
    Ok(ProposedAction {
        action_id: required(action_id)?,
        action_type: required(action_type)?,
        tool_name: required(tool_name)?,
        params: required(params)?,
        risk_level: required(risk_level)?,
        risk_tags: required(risk_tags)?,
        evidence_refs: required(evidence_refs)?,
        extra,
    })
}

fn evidence<'de, A: MapAccess<'de>>(mut entries: A, buffers: &ParseBuffers) -> Result<EvidenceRef, A::Error> {
    let (mut kind, mut call_id, mut doc_id, mut id, mut extra) = (None, None, None, None, Extra::new());
    while let Some(name) = entries.next_key_seed(TextSeed)? {
        match &*name {
            "kind" => put(&mut kind, entries.next_value_seed(TextSeed)?)?,
            "call_id" => put(&mut call_id, entries.next_value()?)?,
            "doc_id" => put(&mut doc_id, entries.next_value()?)?,
            "id" => put(&mut id, entries.next_value()?)?,
            _ => keep(&mut extra, name, entries.next_value_seed(ValueSeed(buffers))?)?,
        }
    }
    let target = match (required(kind)?.as_ref(), call_id, doc_id, id) {
        ("tool_result", Some(call_id), None, None) => EvidenceTarget::ToolResult { call_id },
        ("retrieval_doc", None, Some(doc_id), None) => EvidenceTarget::RetrievalDoc { doc_id },
        ("event", None, None, Some(id)) => EvidenceTarget::Event { id },
        ("asset", None, None, Some(id)) => EvidenceTarget::Asset { id },
        _ => return Err(bail()),
    };
    Ok(EvidenceRef { target, extra })
}

fn output<'de, A: MapAccess<'de>>(mut entries: A, buffers: &ParseBuffers) -> Result<FinalOutput, A::Error> {
    let (mut kind, mut text, mut output_hash, mut redactions_applied, mut extra) =
        (None, None, None, None, Extra::new());
    while let Some(name) = entries.next_key_seed(TextSeed)? {
        match &*name {
            "content_type" => put(&mut kind, word(&mut entries, content_type)?)?,
            "content" => put(&mut text, required(content(entries.next_value_seed(ValueSeed(buffers))?))?)?,
            "output_hash" => put(&mut output_hash, entries.next_value()?)?,
            "redactions_applied" => put(&mut redactions_applied, entries.next_value()?)?,
            _ => keep(&mut extra, name, entries.next_value_seed(ValueSeed(buffers))?)?,
        }
    }
    Ok(FinalOutput { content_type: required(kind)?, content: required(text)?, output_hash, redactions_applied, extra })
}
