//! The protocols of HTTP endpoints without an agreed format: `http`, with the mapping of the configuration, and `text`.

use std::borrow::Cow;
use std::sync::Arc;

use counterproof_artifact::{Case, escape_invisible};
use counterproof_cases::CaseSpec;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::answer::{self, Builder, ExecutedBy, ToolCall, ToolResult, arguments};
use super::http_mapping::{CallsMapping, DocumentsMapping, HttpMapping, UsageMapping};
use super::mapping_path::{AnswerPath, Element, ElementPath, Missing};
use super::native::bounded;
use super::protocol::{Protocol, RiskTable};
use super::stream::StreamFormat;
use super::{AnswerContext, ProtocolAdapter, RequestInput, native};
use crate::failure::{Fault, Reason, Violation};

/// The content types that an endpoint is asked for if the mapping has no `stream`.
const ANY: &str = "application/json, */*;q=0.5";

/// An HTTP endpoint that is described by a mapping.
pub(super) struct HttpEndpoint {
    pub(super) mapping: Arc<HttpMapping>,
    pub(super) risk: RiskTable,
}

/// An agent that gets the text of the user, and answers with text.
pub(super) struct TextAgent {
    /// How requests are sent to an endpoint, where it differs from a plain `POST`.
    pub(super) mapping: Arc<HttpMapping>,
}

impl ProtocolAdapter for HttpEndpoint {
    fn path(&self) -> &str {
        self.mapping.url_path()
    }

    fn method(&self) -> Method {
        self.mapping.method.method().clone()
    }

    fn accept(&self) -> &'static str {
        self.mapping.stream.map_or(ANY, StreamFormat::accepted)
    }

    fn check_case(&self, case: &CaseSpec) -> Result<(), String> {
        self.mapping.check_case(case)
    }

    fn request(&self, request_input: RequestInput<'_>) -> Result<Vec<u8>, serde_json::Error> {
        match self.mapping.render(request_input) {
            Some(body) => body,
            // Proxies and servers refuse a body with these methods.
            None if matches!(self.method(), Method::GET | Method::DELETE) => Ok(Vec::new()),
            None => serde_json::to_vec(&json!({"message": request_input.user()})),
        }
    }

    fn answer(&self, body: &[u8], context: AnswerContext<'_>) -> Result<Case, Fault> {
        let (answer, is_stream) = self.parse(body, context.content_type)?;
        self.reject_errors(&answer)?;
        let mut builder = Builder::new(context, &self.risk, None);
        if let Some(documents) = &self.mapping.documents {
            builder.documents(&document_ids(documents, &answer)?);
        }
        if let Some(calls) = &self.mapping.calls {
            // Without a mapping of actions, each call is one.
            let executed_by = if self.mapping.actions.is_none() { ExecutedBy::Caller } else { ExecutedBy::Server };
            add_calls(&mut builder, calls, executed_by, &answer)?;
        }
        if let Some(actions) = &self.mapping.actions {
            for (number, element) in (1..).zip(elements(&actions.path, &answer)?) {
                let (tool, args) = tool_and_arguments(&actions.name, actions.arguments.as_ref(), &element, &answer)?;
                builder.action(&format!("action_{number}"), &tool, &args);
            }
        }
        let output = self.output(&answer)?;
        let usage = self.mapping.usage.as_ref().map(|usage| read_usage(usage, &answer, is_stream));
        let usage = usage.filter(|usage| !usage.is_empty()).map(|usage| ("usage".to_owned(), usage.into()));
        builder.finish(Protocol::Http, output, usage.into_iter().collect())
    }

    fn reads_json(&self, content_type: Option<&str>) -> bool {
        self.stream_format(content_type).is_none()
    }
}

impl HttpEndpoint {
    fn stream_format(&self, content_type: Option<&str>) -> Option<StreamFormat> {
        self.mapping.stream.or_else(|| content_type.and_then(StreamFormat::from_content_type))
    }

    /// Returns the answer, and whether it came as a stream.
    fn parse(&self, body: &[u8], content_type: Option<&str>) -> Result<(Value, bool), Fault> {
        if let Some(format) = self.stream_format(content_type) {
            return Ok((format.parse(body)?, true));
        }
        let answer = serde_json::from_str(native::text(body)?)
            .map_err(|error| Fault::new(Reason::NotJson, format!("the body is not JSON: {error}")))?;
        Ok((answer, false))
    }

    fn reject_errors(&self, answer: &Value) -> Result<(), Fault> {
        let Some(path) = &self.mapping.error else { return Ok(()) };
        // An answer without the field has no error. An expression that fails is a mistake of the configuration.
        let found = match path.find(answer) {
            Err(missing) if path.is_expression() => return Err(not_found(&missing)),
            found => found.unwrap_or_default(),
        };
        match found.iter().find(|found| is_error(&found.value)) {
            Some(error) => {
                let text = bounded(&escape_invisible(&text_of(&error.value)));
                Err(Fault::new(Reason::AgentError, format!("the agent answered with an error: {text}")))
            }
            None => Ok(()),
        }
    }

    /// Returns the final output. Several texts are joined.
    fn output(&self, answer: &Value) -> Result<Value, Fault> {
        let Some(path) = &self.mapping.output else {
            return Err(Fault::new(Reason::MappingFailed, "`output` of the mapping is not set"));
        };
        let mut found = path.find(answer).map_err(|missing| not_found(&missing))?;
        if found.len() == 1
            && let Some(only) = found.pop()
        {
            let value = only.value.into_owned();
            return Ok(match value {
                content @ Value::Object(_) => json!({"content_type": "json", "content": content}),
                value => json!({"content_type": "text", "content": text_of(&value)}),
            });
        }
        // Other events of a stream may have a null or a number in the same place.
        let joined: String = found.iter().filter_map(|found| found.value.as_str()).collect();
        Ok(json!({"content_type": "text", "content": joined}))
    }
}

impl ProtocolAdapter for TextAgent {
    fn path(&self) -> &str {
        self.mapping.url_path()
    }

    fn method(&self) -> Method {
        self.mapping.method.method().clone()
    }

    fn content_type(&self) -> &'static str {
        if self.mapping.body.is_some() { "application/json" } else { "text/plain; charset=utf-8" }
    }

    fn accept(&self) -> &'static str {
        "text/plain, */*;q=0.5"
    }

    fn check_case(&self, case: &CaseSpec) -> Result<(), String> {
        self.mapping.check_case(case)
    }

    fn request(&self, request_input: RequestInput<'_>) -> Result<Vec<u8>, serde_json::Error> {
        self.mapping.render(request_input).unwrap_or_else(|| Ok(request_input.user().as_bytes().to_vec()))
    }

    fn answer(&self, body: &[u8], context: AnswerContext<'_>) -> Result<Case, Fault> {
        let text = native::text(body)?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let risk = RiskTable::default();
        let output = json!({"content_type": "text", "content": text});
        Builder::new(context, &risk, None).finish(Protocol::Text, output, Map::new())
    }

    fn reads_json(&self, _content_type: Option<&str>) -> bool {
        false
    }
}

impl HttpMapping {
    fn url_path(&self) -> &str {
        self.path.as_ref().map_or("", |path| path.as_str())
    }

    fn check_case(&self, case: &CaseSpec) -> Result<(), String> {
        self.body.as_ref().map_or(Ok(()), |body| body.check(case))
    }

    /// Returns the body of a request; `None` without a template.
    fn render(&self, request_input: RequestInput<'_>) -> Option<Result<Vec<u8>, serde_json::Error>> {
        let body = self.body.as_ref()?.render(request_input);
        Some(body.map_err(serde::ser::Error::custom).and_then(|body| serde_json::to_vec(&body)))
    }
}

/// Adds the calls of an answer, and their results.
fn add_calls(builder: &mut Builder<'_>, mapping: &CallsMapping, by: ExecutedBy, answer: &Value) -> Result<(), Fault> {
    for element in elements(&mapping.path, answer)? {
        let ReadCall { tool, args, id, result, error } = ReadCall::read(mapping, &element, answer)?;
        let tool = tool.into();
        let call = ToolCall { pointer: &element.label, call_id: id.as_deref(), tool: &tool, arguments: &args };
        builder.call(call, by, Map::new())?;
        let Some(call_id) = builder.latest_call().map(str::to_owned) else { continue };
        if result.is_some() || error.is_some() {
            let is_error = error.is_some();
            // `true` says that there is an error, and not which one.
            let payload = match error.filter(|error| *error != Value::Bool(true)).or(result) {
                None | Some(Value::Null) => None,
                Some(fields @ Value::Object(_)) => Some(fields),
                Some(other) => Some(text_of(&other).into()),
            };
            builder.result(&call_id, ToolResult { is_error, payload, ..ToolResult::default() });
        }
    }
    Ok(())
}

/// What the keys of a mapping find in an answer, each by itself.
#[derive(Debug, Default, PartialEq)]
pub struct MappedAnswer {
    /// The found parts by key.
    pub found: Map<String, Value>,
    /// The keys that find nothing, with the message of the case that fails because of it.
    pub missing: Vec<(&'static str, String)>,
}

impl HttpMapping {
    /// Parses a body as the answer that the paths of the mapping start at, and returns whether it came as a stream.
    pub fn parse_answer(&self, body: &[u8], content_type: Option<&str>) -> Result<(Value, bool), String> {
        let endpoint = HttpEndpoint { mapping: Arc::new(self.clone()), risk: RiskTable::default() };
        endpoint.parse(body, content_type).map_err(|fault| fault.message)
    }

    /// Applies each key to an answer.
    pub fn apply(&self, answer: &Value, is_stream: bool) -> MappedAnswer {
        let mut mapped = MappedAnswer::default();
        let mut add = |key: &'static str, part: Result<Value, Fault>| match part {
            Ok(value) => drop(mapped.found.insert(key.to_owned(), value)),
            Err(fault) => mapped.missing.push((key, fault.message)),
        };
        // A run reads an absent list as an empty one. Here it may be a mistake in the path.
        let list = |path: &AnswerPath, part: Result<Value, Fault>| match path.absence(answer) {
            Some(absence) => Err(Fault::new(Reason::MappingFailed, format!("{absence}; a run reads an empty list"))),
            None => part,
        };
        let endpoint = HttpEndpoint { mapping: Arc::new(self.clone()), risk: RiskTable::default() };
        if self.output.is_some() {
            add("output", endpoint.output(answer).map(|output| output["content"].clone()));
        }
        if let Some(calls) = &self.calls {
            add("calls", list(&calls.path, call_parts(calls, answer)));
        }
        if let Some(actions) = &self.actions {
            let part = |element: &Element<'_>| {
                let (name, args) = tool_and_arguments(&actions.name, actions.arguments.as_ref(), element, answer)?;
                Ok(json!({"name": name, "arguments": args}))
            };
            let parts = elements(&actions.path, answer).and_then(|found| found.iter().map(part).collect());
            add("actions", list(&actions.path, parts));
        }
        if let Some(documents) = &self.documents {
            add("documents", list(&documents.path, document_ids(documents, answer).map(Value::from)));
        }
        if let Some(usage) = &self.usage {
            let found = read_usage(usage, answer, is_stream);
            let none = || Fault::new(Reason::MappingFailed, "no number at its paths");
            add("usage", if found.is_empty() { Err(none()) } else { Ok(found.into()) });
        }
        if self.error.is_some()
            && let Err(fault) = endpoint.reject_errors(answer)
        {
            add("error", Ok(fault.message.into()));
        }
        mapped
    }
}

/// Returns the calls with their names, arguments and results.
fn call_parts(mapping: &CallsMapping, answer: &Value) -> Result<Value, Fault> {
    let part = |element: &Element<'_>| {
        let call = ReadCall::read(mapping, element, answer)?;
        let mut part = json!({"name": call.tool, "arguments": call.args});
        for (key, value) in [("id", call.id.map(Value::from)), ("result", call.result), ("error", call.error)] {
            if let Some(value) = value {
                part[key] = value;
            }
        }
        Ok(part)
    };
    elements(&mapping.path, answer)?.iter().map(part).collect()
}

/// A call as the mapping finds it.
struct ReadCall {
    tool: String,
    args: Value,
    id: Option<String>,
    result: Option<Value>,
    error: Option<Value>,
}

impl ReadCall {
    fn read(mapping: &CallsMapping, element: &Element<'_>, answer: &Value) -> Result<Self, Fault> {
        let found = |found: Option<Cow<'_, Value>>| found.map(Cow::into_owned);
        let optional = |path: Option<&ElementPath>| match path {
            Some(path) => path.optional(element, answer).map(found).map_err(|missing| not_found(&missing)),
            None => Ok(None),
        };
        let (tool, args) = tool_and_arguments(&mapping.name, mapping.arguments.as_ref(), element, answer)?;
        let error = optional(mapping.error.as_ref())?.filter(is_error);
        let result = match (&mapping.result, &error) {
            // A call that failed may have no result.
            (Some(path), None) => Some(path.find(element, answer).map_err(|missing| not_found(&missing))?.into_owned()),
            (path, _) => optional(path.as_ref()).unwrap_or_default(),
        };
        let id = optional(mapping.id.as_ref())?.filter(|id| !id.is_null()).map(|id| text_of(&id));
        Ok(Self { tool, args, id, result, error })
    }
}

/// Returns the ids of the documents.
fn document_ids(mapping: &DocumentsMapping, answer: &Value) -> Result<Vec<Value>, Fault> {
    let id = |element: Element<'_>| {
        let id = match &mapping.id {
            Some(path) => path.find(&element, answer).map_err(|missing| not_found(&missing))?.into_owned(),
            None => element.value.into_owned(),
        };
        Ok(text_of(&id).into())
    };
    elements(&mapping.path, answer)?.into_iter().map(id).collect()
}

fn elements<'v>(path: &AnswerPath, answer: &'v Value) -> Result<Vec<Element<'v>>, Fault> {
    path.elements(answer).map_err(|missing| not_found(&missing))
}

fn tool_and_arguments(
    name: &ElementPath,
    args: Option<&ElementPath>,
    element: &Element<'_>,
    answer: &Value,
) -> Result<(String, Value), Fault> {
    let tool = name.find(element, answer).map_err(|missing| not_found(&missing))?;
    let Some(tool) = tool.as_str().filter(|tool| !tool.is_empty()) else {
        let message = format!("the tool of {} is {}; expected a text", element.label, native::kind_of(&tool));
        return Err(Fault::new(Reason::MappingFailed, message));
    };
    let args = match args {
        Some(path) => path.find(element, answer).map_err(|missing| not_found(&missing))?.into_owned(),
        None => Value::Null,
    };
    Ok((tool.to_owned(), arguments(&args).0))
}

/// Returns the counts that the paths find. Usage is information, so an absent count does not fail the case.
fn read_usage(mapping: &UsageMapping, answer: &Value, is_stream: bool) -> Map<String, Value> {
    let paths = [
        ("input_tokens", &mapping.input_tokens),
        ("output_tokens", &mapping.output_tokens),
        ("cached_tokens", &mapping.cached_tokens),
        ("cost", &mapping.cost),
    ];
    let mut usage = Map::new();
    for (name, path) in paths {
        let found = path.as_ref().and_then(|path| path.find(answer).ok()).unwrap_or_default();
        let numbers: Vec<&Value> = found.iter().map(|found| &*found.value).filter(|value| value.is_number()).collect();
        // The counts of a stream grow until its end; the counts of a list belong to one step each.
        let total = match numbers.as_slice() {
            [] => continue,
            [.., last] if is_stream || numbers.len() == 1 => (*last).clone(),
            all => match all.iter().map(|count| count.as_u64()).sum::<Option<u64>>() {
                Some(sum) => sum.into(),
                None => all.iter().filter_map(|count| count.as_f64()).sum::<f64>().into(),
            },
        };
        usage.insert(name.to_owned(), total);
    }
    if !answer::is_valid(&Value::Object(usage.clone())) {
        usage.clear();
    }
    usage
}

/// Reports whether the value of an `error` means that there is one.
fn is_error(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value != ""
}

/// Returns a value as text. The texts of content parts are joined.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) if !parts.is_empty() => {
            let text = |part: &Value| part.as_str().or_else(|| part.get("text")?.as_str()).map(str::to_owned);
            let texts: Option<String> = parts.iter().map(text).collect();
            texts.unwrap_or_else(|| value.to_string())
        }
        other => other.to_string(),
    }
}

fn not_found(missing: &Missing) -> Fault {
    let violation = Violation {
        code: Reason::MappingFailed.name(),
        pointer: missing.path.clone(),
        message: missing.problem.clone(),
        expected: "a value at this path of the mapping".to_owned(),
    };
    Fault { violations: vec![violation], ..Fault::new(Reason::MappingFailed, missing.to_string()) }
}

#[cfg(test)]
#[path = "http_endpoint_tests.rs"]
mod tests;
