//! Compares the type of an answer with its schema, on valid and on invalid answers.

use camino::Utf8Path;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::sample_answers::{ASSET, changed, full};
use super::*;
use crate::contract_schema::schema;
use crate::document;
use crate::finding::Findings;
use crate::run_folder::RunFolder;
use crate::validate_case::{self, CaseCheck};
use counterproof_artifact::Side;
use counterproof_artifact::schema::Kind;

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

    /// Returns the case if the text is an answer without findings.
    fn check(&self, text: &str) -> Option<Case> {
        let mut findings = Findings::new(Utf8Path::new("a.json"));
        let document = document::parse(text.as_bytes(), &mut findings)?;
        self.compare_with_schema(&document);
        match validate_case::check_in(&document, "a", &self.folder, &mut findings) {
            CaseCheck::Answer(case) if findings.is_empty() => Some(*case),
            _ => None,
        }
    }

    /// The type accepts exactly the answers that satisfy the schema, apart from ids and links that a rule rejects anyway.
    fn compare_with_schema(&self, document: &Value) {
        let answer = conforming_answer(document);
        let is_valid = schema(Kind::Case).is_valid(document);
        if let Some(case) = &answer {
            assert!(is_valid, "{document}");
            // The same case as on the way over the bytes, with unknown fields in the same order.
            let converted = serde_json::from_value::<Case>(document.clone()).unwrap();
            assert_eq!(serde_json::to_string(case).unwrap(), serde_json::to_string(&converted).unwrap());
        }
        let is_answer = document["status"] == "ok" && document.get("runner_failure").is_none();
        if is_valid && is_answer && answer.is_none() {
            let mut findings = Findings::new(Utf8Path::new("a.json"));
            validate_case::check_in(document, "a", &self.folder, &mut findings);
            assert!(!findings.is_empty(), "{document}");
        }
    }
}

#[test]
fn a_full_answer_is_valid() {
    assert!(Kit::new().check(&full().to_string()).is_some());
    assert!(Kit::new().check(&serde_json::to_string_pretty(&full()).unwrap()).is_some());
}

#[test]
fn an_answer_that_violates_a_rule_has_a_finding() {
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
        assert_eq!(kit.check(&document.to_string()), None, "{pointer}");
    }
    let mut document = full();
    for list in ["/events", "/proposed_actions"] {
        let items = document.pointer_mut(list).unwrap().as_array_mut().unwrap();
        items.push(items[0].clone());
        assert_eq!(kit.check(&document.to_string()), None, "{list}");
    }
}

#[test]
fn null_and_objects_are_not_taken_for_missing_fields_and_words() {
    let mut all = Vec::new();
    objects(&full(), "", &mut all);
    for place in all {
        let keys: Vec<String> = full().pointer(&place).unwrap().as_object().unwrap().keys().cloned().collect();
        for key in keys {
            for change in
                [|_: Value| Value::Null, |word: Value| word.as_str().map_or(word.clone(), |word| json!({ word: null }))]
            {
                let mut document = full();
                let field = &mut document.pointer_mut(&place).unwrap()[&key];
                *field = change(field.take());
                Kit::new().compare_with_schema(&document);
            }
        }
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
fn a_duplicate_key_at_any_depth_is_a_finding() {
    let (kit, mut places) = (Kit::new(), Vec::new());
    objects(&full(), "", &mut places);
    assert!(places.len() > 15);
    for place in places {
        let mut document = full();
        let fields = document.pointer_mut(&place).unwrap().as_object_mut().unwrap();
        let (key, value) = fields.iter().next().map(|(key, value)| (key.clone(), value.clone())).unwrap();
        fields.insert("the same".to_owned(), value);
        let text = document.to_string().replacen("\"the same\"", &format!("\"{key}\""), 1);
        assert_eq!(kit.check(&text), None, "{place}");
    }
}

/// Checks generated texts in one folder.
fn type_and_schema_agree(texts: impl Strategy<Value = String>) {
    let kit = Kit::new();
    let mut runner = TestRunner::new(ProptestConfig::with_cases(2000));
    let agree = |text: String| {
        kit.check(&text);
        Ok(())
    };
    runner.run(&texts, agree).unwrap();
}

#[test]
fn type_and_schema_agree_on_changed_answers() {
    type_and_schema_agree(changed().prop_map(|document| document.to_string()));
}

#[test]
fn type_and_schema_agree_on_changed_texts() {
    let change = (any::<prop::sample::Index>(), 0..3usize, "[\\[\\]{}\",:\\\\a1.e +-]{0,2}");
    type_and_schema_agree(change.prop_map(|(place, bytes, put)| {
        let mut text = full().to_string();
        let at = place.index(text.len());
        text.replace_range(at..(at + bytes).min(text.len()), &put);
        text
    }));
}
