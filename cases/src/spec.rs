//! The types of a case, and how a document becomes a list of them. Unique ids are checked later, over all files.

use counterproof_artifact::{CaseId, Extra, pointer};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::document::Document;
use crate::fields::{Expect, Fields, ProblemLog, describe};
use crate::load::Problem;

/// One case: an input, and expectations for the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseSpec {
    /// The id, which is also the name of the artifact's file.
    pub id: CaseId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The input of the agent.
    pub input: Input,
    /// The requests of a conversation, in order. Empty for a case with a single request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// The results of tool calls, by the name of the tool.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub tool_results: Map<String, Value>,
    /// The expectations for the answer. In a conversation, they are about the whole.
    #[serde(skip_serializing_if = "Expected::is_empty")]
    pub expected: Expected,
    /// Metadata for filters and groups.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// The name of the suite that the case belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The input of the agent. Its serialised form is the `input` of the request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Input {
    /// The message of the user.
    pub user: String,
    /// Further context for the agent, of any JSON type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// Unknown fields, which are sent to the agent too.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One request of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turn {
    /// The message of the user.
    pub user: String,
    /// The expectations for the calls and the answer of this turn.
    #[serde(skip_serializing_if = "Expected::is_empty")]
    pub expected: Expected,
    /// The results of tool calls in this turn. They precede the results of the case.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub tool_results: Map<String, Value>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Metadata for filters and groups.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Metadata {
    /// Free-form tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The severity of a failure, as free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// The kind of case, as free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Metadata {
    /// Returns true if no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The expectations for the answer to a case. An absent expectation is not evaluated.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Expected {
    /// Action types that the agent must propose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_required: Option<Vec<String>>,
    /// Tools that the agent must call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_required: Option<Vec<String>>,
    /// Tools that the agent must call first, in this order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_sequence: Option<Vec<String>>,
    /// A JSON Schema for the content of the final output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<Value>,
    /// Documents that the agent must retrieve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrieval_required: Option<RetrievalRequired>,
    /// Phrases that the final output must contain. Letter case is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_include: Option<Vec<String>>,
    /// Phrases that the final output must not contain. Letter case is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_not_include: Option<Vec<String>>,
    /// If true, every action above low risk must have evidence that resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_required_for_actions: Option<bool>,
    /// If true, no call may be refused by a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_refused_calls: Option<bool>,
    /// The longest duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_latency_ms: Option<f64>,
    /// The largest number of tool calls and retrievals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// The largest number of input and output tokens together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The highest cost, in the currency that the agent reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Expressions over the answer that must be true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Vec<Expect>>,
    /// If true, all expectations of the case are hard: a single one that new does not meet fails the gate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must: Option<bool>,
    /// Unknown expectations, which are not evaluated.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Expected {
    /// The names of all known expectations.
    pub const KEYS: [&str; 15] = [
        "action_required",
        "tool_required",
        "tool_sequence",
        "json_schema",
        "retrieval_required",
        "must_include",
        "must_not_include",
        "evidence_required_for_actions",
        "no_refused_calls",
        "max_latency_ms",
        "max_steps",
        "max_tokens",
        "max_cost",
        "expect",
        "must",
    ];

    /// Returns true if there is no expectation.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Documents that the agent must retrieve.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RetrievalRequired {
    /// The document ids, in any order.
    pub doc_ids: Vec<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

const CASE_KEYS: [&str; 8] = ["id", "title", "input", "turns", "tool_results", "expected", "metadata", "suite"];

/// The cases and problems of a document.
#[derive(Debug, Default)]
pub(crate) struct Interpreted {
    /// The valid cases, each with the pointer to its object.
    pub(crate) cases: Vec<(CaseSpec, String)>,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

/// Reads the cases of a document: a list of cases, an object with a list named `cases`, or a single case.
pub(crate) fn interpret(document: &Document, value: Value) -> Interpreted {
    let mut found = Interpreted::default();
    let mut refuse = |pointer: &str, value: &Value, expected: &str| {
        let mut log = ProblemLog::new(document, None);
        let remedy = "write the cases as a list";
        log.error(pointer, format!("found {}; expected {expected}", describe(value)), remedy);
        found.errors.append(&mut log.errors);
    };
    let (items, parent) = match value {
        // A YAML file that has only comments.
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
                    let message = format!("the list of cases is named `{key}`; expected `cases`");
                    let mut log = ProblemLog::new(document, None);
                    log.error(&pointer::child("", key), message, "rename it to `cases`");
                    found.errors.append(&mut log.errors);
                    return found;
                }
                None => (vec![Value::Object(map)], None),
            },
        },
        other => {
            refuse("", &other, "a list of cases, or an object with a list named `cases`");
            return found;
        }
    };
    for (index, item) in items.into_iter().enumerate() {
        let pointer = parent.as_ref().map(|parent| pointer::child(parent, &index.to_string())).unwrap_or_default();
        let Value::Object(map) = item else {
            let mut log = ProblemLog::new(document, None);
            let message = format!("found {}; expected a case, which is an object", describe(&item));
            log.error(&pointer, message, "write an object with an `id` and an `input`");
            found.errors.append(&mut log.errors);
            continue;
        };
        // Read before `case` consumes the fields: messages name a case even if its id is invalid.
        let mut log = ProblemLog::new(document, written_id(&map));
        let spec = case(Fields::new(map, pointer.clone(), &mut log));
        let ProblemLog { mut errors, mut warnings, .. } = log;
        // A case with an error is left out: without an invalid expectation, it would be less strict than it is written.
        if let (Some(spec), true) = (spec, errors.is_empty()) {
            found.cases.push((spec, pointer));
        }
        // Fields are read in the order of the types, and reported in the order of the file.
        errors.sort_by_key(|problem| problem.position);
        warnings.sort_by_key(|problem| problem.position);
        found.errors.append(&mut errors);
        found.warnings.append(&mut warnings);
    }
    found
}

/// Returns the name of a list of objects, in an object that is not a case. Other tools name the list of cases differently.
fn other_list(map: &Map<String, Value>) -> Option<&str> {
    // A case can contain lists of objects too.
    if map.keys().any(|key| ["id", "case_id", "input"].contains(&key.as_str())) {
        return None;
    }
    let is_list = |value: &Value| value.as_array().is_some_and(|items| items.iter().any(Value::is_object));
    map.iter().find(|(_, value)| is_list(value)).map(|(key, _)| key.as_str())
}

/// Returns the id as it is written, valid or not, to name the case in messages.
fn written_id(map: &Map<String, Value>) -> Option<String> {
    match map.get("id").or_else(|| map.get("case_id"))? {
        Value::String(id) => Some(id.clone()),
        // In YAML, an id of digits without quotes is a number.
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// Returns `None` if a required field is missing or invalid. The log then has the problem.
fn case(mut fields: Fields<'_, '_>) -> Option<CaseSpec> {
    let id = id(&mut fields);
    let title = fields.string("title");
    let has_turns = fields.has("turns");
    let turns = fields.objects("turns", "[{user: Where is my money?}]", turn).unwrap_or_default();
    // A case with invalid turns already has an error, and no input of its own.
    let first = has_turns.then(|| turns.first().map(|turn| turn.user.clone()).unwrap_or_default());
    let input = if fields.has("input") {
        fields.object("input", "{user: Where is my money?}").and_then(|fields| input(fields, first))
    } else if let Some(user) = first {
        Some(Input { user, context: None, extra: Extra::new() })
    } else {
        fields.missing("input", "add an `input` with a `user` message");
        None
    };
    let tool_results = tool_results(&mut fields);
    let expected = fields.object("expected", "{must_include: [refund]}").map(expected).unwrap_or_default();
    let metadata = fields.object("metadata", "{tags: [refund]}").map(metadata).unwrap_or_default();
    let suite = fields.string("suite");
    let extra = fields.rest_misspelt(&CASE_KEYS);
    // All fields are read before the first `?`, so that a missing id hides no other problem.
    Some(CaseSpec { id: id?, title, input: input?, turns, tool_results, expected, metadata, suite, extra })
}

/// Reads `id`, or `case_id`, which other tools use.
fn id(fields: &mut Fields<'_, '_>) -> Option<CaseId> {
    let key = if fields.has("id") { "id" } else { "case_id" };
    if !fields.has(key) {
        fields.missing("id", "give the case a unique `id`");
        return None;
    }
    let id = fields.string(key)?;
    match id.parse() {
        Ok(id) => Some(id),
        Err(error) => {
            let message = format!("`{key}` cannot be used as a file name: {error}");
            fields.invalid(key, message, "write an id of letters, digits, `_` and `-`");
            None
        }
    }
}

/// Reads the input. `first` is the message of the first turn, if the case has turns.
fn input(mut fields: Fields<'_, '_>, first: Option<String>) -> Option<Input> {
    if first.is_none() && !fields.has("user") {
        fields.missing("user", "add the message of the user");
    }
    let user = match (fields.string("user"), first) {
        (Some(user), Some(first)) => {
            if user != first {
                let message = "`input.user` is not sent: the case has `turns`, and each turn is a request";
                fields.warn("user", message, "make it the first turn, or remove it");
            }
            Some(first)
        }
        (user, first) => user.or(first),
    };
    let context = fields.any("context");
    // Without a warning about unknown names: every field of the input is sent to the agent.
    Some(Input { user: user?, context, extra: fields.rest() })
}

fn turn(mut fields: Fields<'_, '_>) -> Option<Turn> {
    if !fields.has("user") {
        fields.missing("user", "add the message of the user");
    }
    let user = fields.string("user");
    let expected = fields.object("expected", "{must_include: [refund]}").map(expected).unwrap_or_default();
    let tool_results = tool_results(&mut fields);
    let extra = fields.rest_unknown("field of a turn", &["user", "expected", "tool_results"]);
    Some(Turn { user: user?, expected, tool_results, extra })
}

/// Reads the results of tool calls.
fn tool_results(fields: &mut Fields<'_, '_>) -> Map<String, Value> {
    fields.object("tool_results", "{get_order: {status: paid}}").map(Fields::rest).unwrap_or_default()
}

fn metadata(mut fields: Fields<'_, '_>) -> Metadata {
    Metadata {
        tags: fields.strings("tags").unwrap_or_default(),
        severity: fields.string("severity"),
        kind: fields.string("kind"),
        extra: fields.rest(),
    }
}

fn expected(mut fields: Fields<'_, '_>) -> Expected {
    Expected {
        action_required: fields.strings("action_required"),
        tool_required: fields.strings("tool_required"),
        tool_sequence: fields.strings("tool_sequence"),
        json_schema: fields.schema("json_schema"),
        retrieval_required: fields.object("retrieval_required", "{doc_ids: [policy-7]}").and_then(retrieval_required),
        must_include: fields.strings("must_include"),
        must_not_include: fields.strings("must_not_include"),
        evidence_required_for_actions: fields.boolean("evidence_required_for_actions"),
        no_refused_calls: fields.boolean("no_refused_calls"),
        expect: fields.expressions("expect"),
        max_latency_ms: fields.number("max_latency_ms"),
        max_steps: fields.count("max_steps"),
        max_tokens: fields.count("max_tokens"),
        max_cost: fields.number("max_cost"),
        must: fields.boolean("must"),
        // Last, because it takes all fields that are not read yet.
        extra: fields.rest_unknown("expectation", &Expected::KEYS),
    }
}

fn retrieval_required(mut fields: Fields<'_, '_>) -> Option<RetrievalRequired> {
    if !fields.has("doc_ids") {
        fields.missing("doc_ids", "list the ids of the documents");
    }
    let doc_ids = fields.strings("doc_ids");
    Some(RetrievalRequired { doc_ids: doc_ids?, extra: fields.rest_unknown("field", &["doc_ids"]) })
}
