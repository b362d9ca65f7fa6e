//! From a document to its cases. Whether their ids are unique is seen later, over all files.

use counterproof_artifact::{CaseId, pointer};
use serde_json::{Map, Value};

use crate::document::Document;
use crate::fields::{Fields, Log, kind};
use crate::problem::Problem;
use crate::spec::{CaseSpec, Expected, Input, Metadata, RetrievalRequired};

const CASE_KEYS: [&str; 6] = ["id", "title", "input", "expected", "metadata", "suite"];

/// What a document says.
#[derive(Debug, Default)]
pub(crate) struct Interpreted {
    /// The cases that are in order, each with the pointer to its object.
    pub(crate) cases: Vec<(CaseSpec, String)>,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

/// Reads the cases of a document: a list of them, an object with a list called `cases`, or one case alone.
pub(crate) fn interpret(document: &Document, value: Value) -> Interpreted {
    let mut found = Interpreted::default();
    let mut refuse = |pointer: &str, value: &Value, expected: &str| {
        let mut log = Log::new(document, None);
        let remedy = "put the cases between [ and ]";
        log.error(pointer, format!("there is {}; expected {expected}", kind(value)), remedy);
        found.errors.append(&mut log.errors);
    };
    let (items, parent) = match value {
        // A YAML file of comments alone.
        Value::Null => return found,
        Value::Array(items) => (items, Some(String::new())),
        Value::Object(mut map) => match map.shift_remove("cases") {
            Some(Value::Array(items)) => (items, Some("/cases".to_owned())),
            Some(other) => {
                refuse("/cases", &other, "a list of cases");
                return found;
            }
            None => match other_list(&map) {
                Some(key) => {
                    let message = format!("`{key}` is a list, and the list of cases is called `cases`");
                    let mut log = Log::new(document, None);
                    log.error(&pointer::child("", key), message, "call it `cases`");
                    found.errors.append(&mut log.errors);
                    return found;
                }
                None => (vec![Value::Object(map)], None),
            },
        },
        other => {
            refuse("", &other, "a list of cases, or an object with a list called `cases`");
            return found;
        }
    };
    for (index, item) in items.into_iter().enumerate() {
        let pointer = parent.as_ref().map(|parent| pointer::child(parent, &index.to_string())).unwrap_or_default();
        let Value::Object(map) = item else {
            let mut log = Log::new(document, None);
            let message = format!("there is {}; expected a case, which is an object", kind(&item));
            log.error(&pointer, message, "write an object with an `id` and an `input`");
            found.errors.append(&mut log.errors);
            continue;
        };
        let mut log = Log::new(document, written_id(&map));
        let spec = case(Fields::of_case(map, pointer.clone(), &mut log));
        let Log { mut errors, mut warnings, .. } = log;
        if let (Some(spec), true) = (spec, errors.is_empty()) {
            found.cases.push((spec, pointer));
        }
        // Fields are read in the order of the types; they are told in the order of the file.
        errors.sort_by_key(|problem| problem.position);
        warnings.sort_by_key(|problem| problem.position);
        found.errors.append(&mut errors);
        found.warnings.append(&mut warnings);
    }
    found
}

/// What other tools call the list of cases, in an object that is no case itself.
fn other_list(map: &Map<String, Value>) -> Option<&str> {
    if map.keys().any(|key| ["id", "case_id", "input"].contains(&key.as_str())) {
        return None;
    }
    let is_list = |value: &Value| value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
    map.iter().find(|(_, value)| is_list(value)).map(|(key, _)| key.as_str())
}

/// The id as it stands there, good or not, to name the case by.
fn written_id(map: &Map<String, Value>) -> Option<String> {
    match map.get("id").or_else(|| map.get("case_id"))? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// Nothing where a required field is missing or wrong, which the log then tells.
fn case(mut fields: Fields<'_, '_>) -> Option<CaseSpec> {
    let id = id(&mut fields);
    let title = fields.text("title");
    let input = if fields.has("input") {
        fields.object("input", "{user: Where is my money?}").and_then(input)
    } else {
        fields.missing("input", "write an `input` with the text of the `user`");
        None
    };
    let expected = fields.object("expected", "{must_include: [refund]}").map(expected).unwrap_or_default();
    let metadata = fields.object("metadata", "{tags: [refund]}").map(metadata).unwrap_or_default();
    let suite = fields.text("suite");
    let extra = fields.rest_misspelt(&CASE_KEYS);
    Some(CaseSpec { id: id?, title, input: input?, expected, metadata, suite, extra })
}

/// `id`, or `case_id` as other tools call it.
fn id(fields: &mut Fields<'_, '_>) -> Option<CaseId> {
    let key = if fields.has("id") { "id" } else { "case_id" };
    if !fields.has(key) {
        fields.missing("id", "give the case an `id` that no other case has");
        return None;
    }
    let id = fields.text(key)?;
    match id.parse() {
        Ok(id) => Some(id),
        Err(error) => {
            let message = format!("`{key}` cannot name a file: {error}");
            fields.wrong(key, message, "write an id of letters, digits, `_` and `-`");
            None
        }
    }
}

fn input(mut fields: Fields<'_, '_>) -> Option<Input> {
    if !fields.has("user") {
        fields.missing("user", "write what the user says");
    }
    let user = fields.text("user");
    let context = fields.any("context");
    Some(Input { user: user?, context, extra: fields.rest() })
}

fn metadata(mut fields: Fields<'_, '_>) -> Metadata {
    Metadata {
        tags: fields.texts("tags").unwrap_or_default(),
        severity: fields.text("severity"),
        kind: fields.text("kind"),
        extra: fields.rest(),
    }
}

fn expected(mut fields: Fields<'_, '_>) -> Expected {
    Expected {
        action_required: fields.texts("action_required"),
        tool_required: fields.texts("tool_required"),
        tool_sequence: fields.texts("tool_sequence"),
        json_schema: fields.schema("json_schema"),
        retrieval_required: fields.object("retrieval_required", "{doc_ids: [policy-7]}").and_then(retrieval_required),
        must_include: fields.texts("must_include"),
        must_not_include: fields.texts("must_not_include"),
        evidence_required_for_actions: fields.boolean("evidence_required_for_actions"),
        expect: fields.expressions("expect"),
        extra: fields.rest_unknown("expectation", &Expected::KEYS),
    }
}

fn retrieval_required(mut fields: Fields<'_, '_>) -> Option<RetrievalRequired> {
    if !fields.has("doc_ids") {
        fields.missing("doc_ids", "list the ids of the documents");
    }
    let doc_ids = fields.texts("doc_ids");
    Some(RetrievalRequired { doc_ids: doc_ids?, extra: fields.rest_unknown("field", &["doc_ids"]) })
}
