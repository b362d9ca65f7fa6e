//! Compares the fast path with the slow path, on valid and on invalid answers.

use camino::Utf8Path;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::sample_answers::{ASSET, changed, full};
use super::*;
use crate::finding::Findings;
use crate::parse;
use crate::validate_case;
use counterproof_artifact::{Outcome, Side};

/// A run folder with the assets that a full answer links to.
struct Kit {
    folder: RunFolder,
    _temporary: tempfile::TempDir,
}

impl Kit {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(temporary.path()).unwrap();
        counterproof_store::write::create_folder(&path.join("assets")).unwrap();
        counterproof_store::write::write(&path.join("assets/x"), ASSET, counterproof_store::write::Durability::Cached)
            .unwrap();
        Self { folder: RunFolder::new(path, Side::New, None), _temporary: temporary }
    }

    /// Parses a text on the slow path. Returns `Some` for an answer without findings.
    fn slow_path(&self, text: &str) -> Option<Case> {
        let mut findings = Findings::new(Utf8Path::new("a.json"));
        let document = parse::parse(text.as_bytes(), &mut findings)?;
        let is_case = validate_case::check_in(&document, "a", &self.folder, &mut findings) && findings.is_empty();
        let case = is_case.then(|| serde_json::from_value::<Case>(document).unwrap());
        case.filter(|case| matches!(case.outcome, Outcome::Ok(_)))
    }

    /// Runs both paths. Equal answers also have their unknown fields in the same order.
    fn both(&self, text: &str) -> Option<Case> {
        let (fast, slow) = (parse_answer(text, "a", &self.folder), self.slow_path(text));
        assert_eq!(fast, slow, "{text}");
        assert_eq!(serde_json::to_string(&fast).unwrap(), serde_json::to_string(&slow).unwrap());
        fast
    }
}

#[test]
fn a_full_answer_takes_the_fast_path() {
    assert!(Kit::new().both(&full().to_string()).is_some());
    assert!(Kit::new().both(&serde_json::to_string_pretty(&full()).unwrap()).is_some());
}

#[test]
fn an_answer_that_violates_a_rule_takes_the_slow_path() {
    let kit = Kit::new();
    for (pointer, value) in [
        ("/case_id", "b"),
        ("/case_id", "../a"),
        ("/version", "baseline"),
        ("/attempts/0/started_at", "noon"),
        ("/events/2/call_id", "c2"),
        ("/events/0/call_id", "c2"),
        ("/events/1/payload_asset_href", "x"),
        ("/events/1/payload_asset_href", "assets/y"),
        ("/events/3/snippets_asset_href", "assets/../x"),
        ("/request_asset_href", "assets/../x"),
        ("/request_asset_href", "assets/y"),
        ("/request_asset_href", "run.json"),
        ("/proposed_actions/0/evidence_refs/0/call_id", "c2"),
        ("/proposed_actions/0/evidence_refs/1/doc_id", "e"),
        ("/proposed_actions/0/evidence_refs/2/id", "events[6]"),
        ("/proposed_actions/0/evidence_refs/3/id", "e6"),
        ("/proposed_actions/0/evidence_refs/4/id", "assets/y"),
    ] {
        let mut document = full();
        *document.pointer_mut(pointer).unwrap() = value.into();
        assert_eq!(kit.both(&document.to_string()), None, "{pointer}");
    }
    let mut document = full();
    for list in ["/events", "/proposed_actions"] {
        let items = document.pointer_mut(list).unwrap().as_array_mut().unwrap();
        items.push(items[0].clone());
        assert_eq!(kit.both(&document.to_string()), None, "{list}");
    }
}

#[test]
fn an_object_with_very_many_fields_takes_the_slow_path() {
    let mut document = full();
    for index in 0..100 {
        document["events"][5][format!("field_{index}")] = index.into();
    }
    let text = document.to_string();
    assert!(Kit::new().slow_path(&text).is_some() && read(&text).is_none());
}

#[test]
fn both_paths_have_the_same_depth_limit() {
    let kit = Kit::new();
    for depth in 110..140 {
        let text = full().to_string().replacen("[1]", &format!("{}{}", "[".repeat(depth), "]".repeat(depth)), 1);
        kit.both(&text);
    }
}

/// Collects the pointers of all objects that have a field.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| objects(item, &format!("{at}/{i}"), found));
        }
        Value::Object(fields) => {
            found.extend((!fields.is_empty()).then(|| at.to_owned()));
            fields
                .iter()
                .for_each(|(key, value)| objects(value, &counterproof_artifact::pointer::child(at, key), found));
        }
        _ => {}
    }
}

#[test]
fn a_duplicate_key_at_any_depth_takes_the_slow_path() {
    let (kit, mut places) = (Kit::new(), Vec::new());
    objects(&full(), "", &mut places);
    assert!(places.len() > 15);
    for place in places {
        let mut document = full();
        let fields = document.pointer_mut(&place).unwrap().as_object_mut().unwrap();
        let (key, value) = fields.iter().next().map(|(key, value)| (key.clone(), value.clone())).unwrap();
        fields.insert("the same".to_owned(), value);
        let text = document.to_string().replacen("\"the same\"", &format!("\"{key}\""), 1);
        assert_eq!(kit.both(&text), None, "{place}");
    }
}

/// Runs both paths on generated texts in one folder.
fn both_agree(texts: impl Strategy<Value = String>) {
    let kit = Kit::new();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(2000));
    let agree = |text: String| {
        kit.both(&text);
        Ok(())
    };
    runner.run(&texts, agree).unwrap();
}

#[test]
fn both_paths_agree_on_changed_answers() {
    both_agree(changed().prop_map(|document| document.to_string()));
}

#[test]
fn both_paths_agree_on_changed_texts() {
    let change = (any::<prop::sample::Index>(), 0..3usize, "[\\[\\]{}\",:\\\\a1.e +-]{0,2}");
    both_agree(change.prop_map(|(place, bytes, put)| {
        let mut text = full().to_string();
        let at = place.index(text.len());
        text.replace_range(at..(at + bytes).min(text.len()), &put);
        text
    }));
}
