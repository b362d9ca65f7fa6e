//! Rules for an artifact: ids of calls and actions are unique, every result belongs to a call, evidence refs resolve, and a runner failure
//! has its body.
//!
//! Ids are looked up in an index: the cost is linear in the number of refs and events.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::Href;
use serde_json::Value;

use super::assets;
use crate::Code;
use crate::document::items;
use crate::finding::{Findings, quote};
use crate::run_folder::{RecordedValue, RunFolder};

pub(crate) fn check_call_ids(document: &Value, findings: &mut Findings) {
    let calls = events(document, "tool_call");
    unique(calls, "events", Code::DuplicateCallId, "call_id", findings);
    let actions = items(document, "proposed_actions").map(|(index, action)| (index, &action["action_id"]));
    unique(actions, "proposed_actions", Code::DuplicateActionId, "action_id", findings);

    let calls: HashMap<&str, usize> = ids(events(document, "tool_call")).map(|(index, id)| (id, index)).collect();
    for (index, id) in ids(events(document, "tool_result")) {
        if !calls.contains_key(id) {
            let message = format!("no `tool_call` among the events has the `call_id` {}", quote(id));
            findings.add(
                Code::ResultWithoutCall,
                format!("/events/{index}/call_id"),
                message,
                "the `call_id` of a `tool_call` in the same artifact",
            );
        }
    }
}

/// Returns the index and the `call_id` of each event of a type.
fn events<'a>(document: &'a Value, kind: &'static str) -> impl Iterator<Item = (usize, &'a Value)> {
    items(document, "events")
        .filter(move |(_, event)| event["type"] == kind)
        .map(|(index, event)| (index, &event["call_id"]))
}

fn ids<'a>(values: impl Iterator<Item = (usize, &'a Value)>) -> impl Iterator<Item = (usize, &'a str)> {
    values.filter_map(|(index, value)| Some((index, value.as_str()?)))
}

fn unique<'a>(
    values: impl Iterator<Item = (usize, &'a Value)>,
    list: &str,
    code: Code,
    field: &str,
    findings: &mut Findings,
) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (index, id) in ids(values) {
        if let Some(earlier) = first.get(id) {
            let message = format!("the `{field}` {} is already used at `/{list}/{earlier}`", quote(id));
            findings.add(code, format!("/{list}/{index}/{field}"), message, "a unique id");
        } else {
            first.insert(id, index);
        }
    }
}

/// The ids of an artifact that evidence refs can name.
#[derive(Debug, Default)]
struct EvidenceTargets<'a> {
    results: HashSet<&'a str>,
    documents: HashSet<&'a str>,
    event_ids: HashSet<&'a str>,
    events: usize,
    hrefs: HashSet<&'a str>,
}

/// The fields that can hold the id of an event.
const EVENT_IDS: [&str; 2] = ["event_id", "id"];

impl<'a> EvidenceTargets<'a> {
    fn from_document(document: &'a Value) -> Self {
        let mut targets = EvidenceTargets::default();
        for (index, event) in items(document, "events") {
            targets.events = index + 1;
            targets.event_ids.extend(EVENT_IDS.iter().filter_map(|key| event[key].as_str()));
            match event["type"].as_str() {
                Some("tool_result") => {
                    targets.results.extend(event["call_id"].as_str());
                    targets.hrefs.extend(event["payload_asset_href"].as_str());
                }
                Some("retrieval") => {
                    targets.documents.extend(items(event, "doc_ids").filter_map(|(_, id)| id.as_str()));
                    targets.hrefs.extend(event["snippets_asset_href"].as_str());
                }
                _ => {}
            }
        }
        targets
    }

    /// True if a ref of this kind and id resolves. Without a folder, refs to assets count as resolved.
    fn has(&self, kind: &str, id: &str, folder: Option<&RunFolder>) -> bool {
        match kind {
            "tool_result" => self.results.contains(id),
            "retrieval_doc" => self.documents.contains(id),
            "event" => self.has_event(id),
            // An href of an event resolves even if its file is missing: the event has the finding.
            _ => self.hrefs.contains(id) || folder.is_none_or(|folder| has_asset(folder, id)),
        }
    }

    fn has_event(&self, id: &str) -> bool {
        // The brackets alone make no index: `events[x]` can be the id of an event.
        let index = id.strip_prefix("events[").and_then(|rest| rest.strip_suffix(']'));
        match index.and_then(|index| index.parse::<usize>().ok()) {
            Some(index) => index < self.events,
            None => self.event_ids.contains(id),
        }
    }
}

/// Checks every ref. Without a folder, refs to assets are not checked.
pub(crate) fn check_evidence(document: &Value, folder: Option<&RunFolder>, findings: &mut Findings) {
    let mut targets = None;
    for (action_index, action) in items(document, "proposed_actions") {
        for (index, evidence) in items(action, "evidence_refs") {
            // Built at the first ref: without one, the pass over all events is not needed.
            let targets = targets.get_or_insert_with(|| EvidenceTargets::from_document(document));
            let Some(kind) = evidence["kind"].as_str() else { continue };
            let (field, what) = match kind {
                "tool_result" => ("call_id", "a `tool_result` with this `call_id`"),
                "retrieval_doc" => ("doc_id", "a `retrieval` with this document"),
                "event" => ("id", "an event at this index, such as `events[3]`, or with this id"),
                "asset" => (
                    "id",
                    "an `asset_id` or href of the manifest whose file is the one that it lists, or a file under `assets/`",
                ),
                _ => continue,
            };
            let Some(id) = evidence[field].as_str() else { continue };
            if !targets.has(kind, id, folder) {
                let pointer = format!("/proposed_actions/{action_index}/evidence_refs/{index}/{field}");
                findings.add(Code::EvidenceUnresolved, pointer, format!("{} does not resolve", quote(id)), what);
            }
        }
    }
}

/// True if the id is in the manifest or is an href, and its file exists with the recorded size and digest.
fn has_asset(folder: &RunFolder, id: &str) -> bool {
    let href = folder.listed_href(id).unwrap_or(id);
    let has_recorded_values = |href: &Href| {
        folder.listed_values(href).all(|recorded| match recorded {
            RecordedValue::Size(expected) => folder.measure(href).is_ok_and(|size| size == expected),
            RecordedValue::Digest(expected) => folder.digest(href).is_ok_and(|digest| digest == expected),
        })
    };
    // A file that has changed since it was recorded is not evidence.
    href.parse::<Href>()
        .is_ok_and(|href| assets::is_asset(&href) && folder.measure(&href).is_ok() && has_recorded_values(&href))
}

/// Checks the links of a failure to its body and to the metadata of the body.
pub(crate) fn check_failure(document: &Value, folder: Option<&RunFolder>, findings: &mut Findings) {
    let failure = &document["runner_failure"];
    let body = &failure["full_body_saved_to"];
    if failure["body_snippet"].is_string() && body.is_null() {
        findings.add(
            Code::SnippetWithoutBody,
            // Points at a null rather than at the whole failure.
            if failure.get("full_body_saved_to").is_some() {
                "/runner_failure/full_body_saved_to"
            } else {
                "/runner_failure"
            },
            "`body_snippet` has a value, but `full_body_saved_to` has none",
            "the href of the whole body, under `assets/`",
        );
    }
    for field in ["full_body_saved_to", "full_body_meta_saved_to"] {
        let pointer = format!("/runner_failure/{field}");
        let href = assets::parse_asset(&failure[field], &pointer, findings);
        if let (Some(href), Some(folder)) = (href, folder) {
            assets::check_target(&href, &pointer, None, folder, findings);
        }
    }
}
