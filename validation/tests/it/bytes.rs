//! Validation of arbitrary bytes and values terminates without a panic.

use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::schema::Kind;
use counterproof_artifact::{Case, FailureMeta, Labels, Manifest, Run};
use counterproof_validation::{validate_case, validate_path};
use proptest::prelude::*;
use serde_json::Value;

use crate::kit::Kit;

/// True where the type of the document can be deserialised from it.
fn has_a_type(document: &Value) -> bool {
    let document = document.clone();
    match document["schema_version"].as_str().and_then(|version| version.parse().ok()) {
        Some(Kind::Run) => serde_json::from_value::<Run>(document).is_ok(),
        Some(Kind::Case) => serde_json::from_value::<Case>(document).is_ok(),
        Some(Kind::FailureMeta) => serde_json::from_value::<FailureMeta>(document).is_ok(),
        Some(Kind::AssetsManifest) => serde_json::from_value::<Manifest>(document).is_ok(),
        Some(Kind::Labels) => serde_json::from_value::<Labels>(document).is_ok(),
        Some(Kind::Evaluation) => serde_json::from_value::<Evaluation>(document).is_ok(),
        None => false,
    }
}

const NAMES: [&str; 6] =
    ["run.json", "answer.json", "failed.json", "assets/manifest.json", "assets/failed.meta.json", "evaluation.json"];

/// A change to the bytes of a valid document.
#[derive(Debug, Clone)]
enum Mutation {
    Cut(prop::sample::Index),
    Flip(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            _ if bytes.is_empty() => {}
            Mutation::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Mutation::Flip(at, mask) => {
                let at = at.index(bytes.len());
                bytes[at] ^= mask;
            }
            Mutation::Insert(at, more) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
        }
    }
}

fn any_mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        1 => index().prop_map(Mutation::Cut),
        4 => (index(), 1..=255_u8).prop_map(|(at, mask)| Mutation::Flip(at, mask)),
        2 => (index(), prop::collection::vec(any::<u8>(), 1..4)).prop_map(|(at, more)| Mutation::Insert(at, more)),
        4 => (index(), "[\\[\\]{}\",:0-9nul\u{202e}]{1,4}").prop_map(|(at, more)| Mutation::Insert(at, more.into_bytes())),
    ]
}

/// Generates any JSON value.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,8}", inner), 0..4).prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

/// Collects the pointers of all values of a document.
fn pointers(value: &Value, path: String, all: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, format!("{path}/{index}"), all);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                pointers(field, format!("{path}/{key}"), all);
            }
        }
        _ => {}
    }
    all.push(path);
}

#[test]
fn arbitrary_bytes_do_not_panic() {
    let kit = Kit::new();
    let valid: Vec<Vec<u8>> = NAMES.iter().map(|name| std::fs::read(kit.path(name)).unwrap()).collect();
    let changes = prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Err),
        9 => prop::collection::vec(any_mutation(), 1..5).prop_map(Ok),
    ];
    proptest!(ProptestConfig::with_cases(300), |(which in 0..NAMES.len(), change in changes)| {
        let mut bytes = valid[which].clone();
        match change {
            Ok(mutations) => mutations.iter().for_each(|mutation| mutation.apply(&mut bytes)),
            Err(other) => bytes = other,
        }
        kit.write(NAMES[which], &bytes);
        let _ = kit.check();
        let _ = validate_path(&kit.path(NAMES[which]));
        kit.write(NAMES[which], &valid[which]);
    });
}

#[test]
fn replaced_values_do_not_panic_and_every_valid_document_deserialises() {
    let kit = Kit::new();
    let valid: Vec<Value> = NAMES.iter().map(|name| kit.read(name)).collect();
    proptest!(ProptestConfig::with_cases(400), |(which in 0..NAMES.len(), at: prop::sample::Index, value in any_json())| {
        let mut document = valid[which].clone();
        let mut all = Vec::new();
        pointers(&document, String::new(), &mut all);
        *document.pointer_mut(&all[at.index(all.len())]).unwrap() = value;
        let _ = validate_case(&document);
        kit.write(NAMES[which], document.to_string().as_bytes());
        let _ = kit.check();
        if validate_path(&kit.path(NAMES[which])).unwrap().findings.is_empty() {
            prop_assert!(has_a_type(&document), "{}", document);
        }
        kit.write(NAMES[which], valid[which].to_string().as_bytes());
    });
}
