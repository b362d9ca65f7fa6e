//! Evidence refs resolve: every ref of an action names an event of its artifact or an asset of its run.
//!
//! Ids are looked up in an index: the cost is linear in the number of refs and events.

use std::collections::HashSet;

use serde_json::Value;

use crate::Code;
use crate::excerpt::quote;
use crate::finding::Findings;
use crate::json_value::items;
use crate::rules::hrefs;
use crate::run_folder::{RecordedValue, RunFolder};
use counterproof_artifact::Href;

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

    /// True where a ref of this kind and id resolves. Without a folder, refs to assets count as resolved.
    fn has(&self, kind: &str, id: &str, folder: Option<&RunFolder>) -> bool {
        match kind {
            "tool_result" => self.results.contains(id),
            "retrieval_doc" => self.documents.contains(id),
            "event" => self.has_event(id),
            _ => self.hrefs.contains(id) || folder.is_none_or(|folder| has_asset(folder, id)),
        }
    }

    fn has_event(&self, id: &str) -> bool {
        let index = id.strip_prefix("events[").and_then(|rest| rest.strip_suffix(']'));
        match index.and_then(|index| index.parse::<usize>().ok()) {
            Some(index) => index < self.events,
            None => self.event_ids.contains(id),
        }
    }
}

/// Checks every ref. Without a folder, refs to assets are not checked.
pub(crate) fn check(document: &Value, folder: Option<&RunFolder>, findings: &mut Findings) {
    let mut targets = None;
    for (action_index, action) in items(document, "proposed_actions") {
        for (index, evidence) in items(action, "evidence_refs") {
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

/// True where the id is in the manifest or is an href, and its file exists with the recorded size and digest.
fn has_asset(folder: &RunFolder, id: &str) -> bool {
    let href = folder.listed_href(id).unwrap_or(id);
    let has_recorded_values = |href: &Href| {
        folder.listed_values(href).all(|recorded| match recorded {
            RecordedValue::Size(expected) => folder.measure(href).is_ok_and(|size| size == expected),
            RecordedValue::Digest(expected) => folder.digest(href).is_ok_and(|digest| digest == expected),
        })
    };
    href.parse::<Href>()
        .is_ok_and(|href| hrefs::is_asset(&href) && folder.measure(&href).is_ok() && has_recorded_values(&href))
}
