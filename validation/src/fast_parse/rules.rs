//! Fast path for the rules that a schema cannot express, on typed answers.

use camino::Utf8Path;

use crate::finding::Findings;
use crate::rules::evidence::EvidenceTargets;
use crate::rules::hrefs::{self, RecordedDigest};
use crate::rules::names;
use crate::run_folder::RunFolder;
use counterproof_artifact::{Answer, Case, Event, EventBody, Href, Outcome, REQUEST_ASSET_HREF, Sha256Digest};
use serde_json::Value;

/// True where no rule is violated.
pub(super) fn all_pass(case: &Case, stem: &str, folder: &RunFolder) -> bool {
    let Outcome::Ok(answer) = &case.outcome else { return false };
    case.case_id.as_str() == stem
        && folder.side().is_none_or(|side| side == case.version)
        && case.attempts.iter().flatten().all(|attempt| names::is_time(&attempt.started_at))
        && steps_agree(answer)
        && evidence_resolves(answer, folder)
        && answer.events.iter().all(|event| link_is_valid(event, folder))
        && request_is_valid(case, folder)
}

/// True where calls and actions are unique and every result belongs to a call.
fn steps_agree(answer: &Answer) -> bool {
    let calls = answer.events.iter().filter_map(|event| match &event.body {
        EventBody::ToolCall(call) => Some(call.call_id.as_str()),
        _ => None,
    });
    let Some(calls) = unique(calls) else { return false };
    let answers = |event: &Event| match &event.body {
        EventBody::ToolResult(result) => calls.binary_search(&result.call_id.as_str()).is_ok(),
        _ => true,
    };
    unique(answer.proposed_actions.iter().map(|action| action.action_id.as_str())).is_some()
        && answer.events.iter().all(answers)
}

/// Returns the ids sorted, or `None` where one occurs twice.
fn unique<'a>(ids: impl Iterator<Item = &'a str>) -> Option<Vec<&'a str>> {
    let mut ids: Vec<_> = ids.collect();
    ids.sort_unstable();
    ids.windows(2).all(|pair| pair[0] != pair[1]).then_some(ids)
}

fn evidence_resolves(answer: &Answer, folder: &RunFolder) -> bool {
    let mut refs = answer.proposed_actions.iter().flat_map(|action| &action.evidence_refs).peekable();
    if refs.peek().is_none() {
        return true;
    }
    let targets = EvidenceTargets::from_events(&answer.events);
    refs.all(|evidence| targets.has(evidence.target.kind(), evidence.target.id(), Some(folder)))
}

/// True where the link of the event, if any, names an existing asset with the recorded properties.
fn link_is_valid(event: &Event, folder: &RunFolder) -> bool {
    match &event.body {
        EventBody::ToolResult(result) => {
            is_valid_link(result.payload_asset_href.as_ref(), result.payload_asset_sha256, folder)
        }
        EventBody::Retrieval(found) => is_valid_link(found.snippets_asset_href.as_ref(), None, folder),
        EventBody::ToolCall(_) | EventBody::FinalOutput(_) | EventBody::Unknown { .. } => true,
    }
}

fn request_is_valid(case: &Case, folder: &RunFolder) -> bool {
    match case.extra.get(REQUEST_ASSET_HREF) {
        None | Some(Value::Null) => true,
        Some(Value::String(href)) => href.parse().is_ok_and(|href| is_valid_link(Some(&href), None, folder)),
        Some(_) => false,
    }
}

fn is_valid_link(href: Option<&Href>, digest: Option<Sha256Digest>, folder: &RunFolder) -> bool {
    let Some(href) = href else { return true };
    let mut findings = Findings::new(Utf8Path::new(""));
    let digest = digest.map(|digest| RecordedDigest { digest, pointer: String::new() });
    hrefs::check_target(href, "", digest, folder, &mut findings);
    hrefs::is_asset(href) && findings.is_empty()
}
