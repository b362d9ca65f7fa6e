//! `counterproof try`: runs one case that is not recorded, and shows what the configuration finds in the answer.

use camino::Utf8Path;
use clap::ValueEnum;
use counterproof_artifact::{
    Answer, Case, Content, Event, EventBody, Exit, Extra, Outcome, RunnerFailure, Side, ToolStatus, harmless,
};
use counterproof_cases::{CaseSpec, Expected, Input, Metadata};
use counterproof_runner::{
    Environment, HttpMapping, Interrupt, MappedAnswer, Protocol, Reason, Settings, Trial, TrialExchange, propose,
    try_once,
};
use serde_json::{Map, Value, json};

use crate::command_error::CommandError;
use crate::commands::run::run_error;
use crate::layers::Layers;
use crate::request_args::{RequestArgs, RunPaths};
use crate::side_agent::SideAgent;
use crate::signals::on_signal;
use crate::streams::{Streams, to_json};

/// How much of an answer is shown to a person, in bytes.
const MAX_SHOWN_BYTES: usize = 16 * 1024;

/// Send one message to the agent, and show the answer and what the configuration finds in it.
///
/// Runs the message as `check` runs a case without `tool_results`, with the tools of `[[tools]]` and `[[mcp]]`, but sends no
/// request again after a failure. For what `[side.new.http]` does not map, or maps to a place that the answer does not have,
/// proposes lines to paste into that table. Writes nothing.
///
/// Exit code 0: the text of the answer was found, or a line that finds it is proposed. 1: neither. 2: the arguments or the
/// configuration are invalid. 3: the agent could not be started or reached.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The message of the user
    #[arg(long, value_name = "TEXT")]
    input: String,

    /// The context of the request, as JSON
    #[arg(long, value_name = "JSON", value_parser = json_value)]
    context: Option<Value>,

    /// Side of the configuration whose agent is asked
    #[arg(long, value_name = "baseline|new", default_value = "new")]
    side: Side,

    /// Output format
    #[arg(long, value_enum, value_name = "human|json", hide_possible_values = true, default_value = "human")]
    format: Format,

    #[command(flatten)]
    request: RequestArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Human,
    Json,
}

fn json_value(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))
}

/// What a first look at an answer shows.
struct Look {
    /// The answer as JSON; a text if it is not JSON.
    answer: Value,
    mapped: MappedAnswer,
    /// The lines for `[side.*.http]`, or the protocol to use.
    proposed: Map<String, Value>,
    lines: Vec<String>,
}

pub(crate) fn run(args: &Args, layers: &Layers, streams: &mut Streams) -> Result<Exit, CommandError> {
    let interrupt = Interrupt::default();
    let stop = interrupt.clone();
    on_signal(move || stop.trigger()).map_err(CommandError::io)?;
    // The runner needs a run folder; a trial leaves nothing behind.
    let temporary = tempfile::tempdir().map_err(CommandError::io)?;
    let out = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| CommandError::io("the path of the temporary folder is not UTF-8"))?;
    let agent = SideAgent::open(args.side, layers, out, &interrupt, streams)?;
    let run_id = "try".parse().map_err(CommandError::usage)?;
    let paths = RunPaths { cases: Utf8Path::new("cases.yaml"), out };
    let settings = args.request.settings(run_id, &agent, paths, &layers.config)?;
    let trial = try_once(&settings, &case(args)?, Environment { interrupt, ..Environment::from_system() });
    // The end of the agent explains why it did not answer.
    agent.check_alive()?;
    let Some(trial) = trial.map_err(|error| run_error(error, "counterproof try"))? else {
        return Err(CommandError::new(Exit::Interrupted, "interrupted before the answer"));
    };
    let failure = failure(&trial.case);
    if !trial.reached {
        let message = failure.and_then(|failure| failure.error_message.as_deref()).unwrap_or_default();
        let target = settings.target.recorded();
        return Err(CommandError::io(format!("cannot reach the agent at {target}: {message}"))
            .hint("start the agent, or set `base_url` or `start` in `[side.new]` of counterproof.toml"));
    }
    let nothing = TrialExchange::default();
    let last = trial.exchanges.last().unwrap_or(&nothing);
    let look = look(&trial.case, last, &settings, &args.input);
    let has_output = look.mapped.found.contains_key("output")
        || look.proposed.contains_key("output")
        || look.proposed.contains_key("protocol");
    match args.format {
        Format::Json => streams.print_document(&to_json(&document(&trial, last, &look)))?,
        Format::Human => print(&trial, last, &look, &settings, streams)?,
    }
    // The file with its output is removed.
    let lines = if failure.is_some() { agent.last_lines() } else { Vec::new() };
    if !lines.is_empty() {
        streams.log(format_args!("the last lines of the agent:\n  {}", lines.join("\n  ")));
    }
    Ok(if has_output { Exit::Done } else { Exit::Findings })
}

fn case(args: &Args) -> Result<CaseSpec, CommandError> {
    Ok(CaseSpec {
        id: "try".parse().map_err(CommandError::usage)?,
        title: None,
        input: Input { user: args.input.clone(), context: args.context.clone(), extra: Extra::new() },
        turns: Vec::new(),
        tool_results: serde_json::Map::new(),
        expected: Expected::default(),
        metadata: Metadata::default(),
        suite: None,
        extra: Extra::new(),
    })
}

fn failure(case: &Case) -> Option<&RunnerFailure> {
    match &case.outcome {
        Outcome::RunnerError(failure) => Some(failure),
        Outcome::Ok(_) => None,
    }
}

/// Applies the mapping to the answer, and proposes what it lacks.
fn look(case: &Case, last: &TrialExchange, settings: &Settings, user: &str) -> Look {
    let mapping = &*settings.agent.http;
    let content_type = last.content_type.as_deref();
    let is_success = last.status.is_none_or(|status| (200..300).contains(&status));
    let parsed = mapping.parse_answer(&last.body, content_type);
    let is_json = parsed.is_ok();
    let (answer, is_stream) = parsed.unwrap_or_else(|_| (String::from_utf8_lossy(&last.body).into(), false));
    let mut look = Look { answer, mapped: MappedAnswer::default(), proposed: Map::new(), lines: Vec::new() };
    if settings.protocol != Protocol::Http {
        if let Outcome::Ok(answer) = &case.outcome {
            look.mapped = MappedAnswer { found: parts_of(case, answer), missing: Vec::new() };
            return look;
        }
    } else if is_success && is_json {
        look.mapped = mapping.apply(&look.answer, is_stream);
        if mapping.output.is_none() {
            look.mapped.missing.push(("output", "is not set".to_owned()));
        }
    }
    // The protocol read an answer that calls a tool; a mapping would not help.
    let lacks_result = failure(case).is_some_and(|it| it.error_name.as_deref() == Some(Reason::NoToolResult.name()));
    if !is_success || lacks_result {
        return look;
    }
    if !is_json {
        // A text is an answer if it is not a page or a broken document.
        let text = look.answer.as_str().unwrap_or_default().trim_start();
        if !text.is_empty() && !text.starts_with(['<', '{', '[']) {
            look.proposed.insert("protocol".to_owned(), "text".into());
            look.lines.push("protocol = \"text\"".to_owned());
        }
        return look;
    }
    let mut proposal = propose(&look.answer, user);
    let is_found = |key: &str| look.mapped.found.contains_key(key);
    keep_missing(&mut proposal, mapping, is_found);
    look.lines = proposal.toml_lines();
    look.proposed = proposal.answer_document();
    look
}

/// Removes from a proposal what the mapping finds already, and an `error` that the mapping has.
fn keep_missing(proposal: &mut HttpMapping, mapping: &HttpMapping, is_found: impl Fn(&str) -> bool) {
    if is_found("output") {
        proposal.output = None;
    }
    if is_found("calls") {
        proposal.calls = None;
    }
    if is_found("actions") {
        proposal.actions = None;
    }
    if is_found("documents") {
        proposal.documents = None;
    }
    if is_found("usage") {
        proposal.usage = None;
    }
    if mapping.error.is_some() {
        proposal.error = None;
    }
}

/// Returns the parts of an artifact under the keys of a mapping.
fn parts_of(case: &Case, answer: &Answer) -> Map<String, Value> {
    let result = |id: &str| {
        answer.events.iter().find_map(|event| match &event.body {
            EventBody::ToolResult(result) if result.call_id == id => Some(result),
            _ => None,
        })
    };
    let call = |event: &Event| {
        let call = event.tool_call()?;
        let mut part = json!({"name": call.tool, "arguments": call.args});
        if let Some(result) = result(&call.call_id) {
            let key = if result.status == ToolStatus::Error { "error" } else { "result" };
            part[key] = match &result.payload_summary {
                Some(Content::Text(text)) => text.as_str().into(),
                Some(Content::Json(fields)) => fields.clone().into(),
                None => Value::Null,
            };
        }
        Some(part)
    };
    let calls: Vec<_> = answer.events.iter().filter_map(call).collect();
    let actions: Vec<_> = answer
        .proposed_actions
        .iter()
        .map(|action| json!({"name": action.tool_name, "arguments": action.params}))
        .collect();
    let mut parts = Map::new();
    for (key, list) in [("calls", calls), ("actions", actions)] {
        if !list.is_empty() {
            parts.insert(key.to_owned(), list.into());
        }
    }
    parts.insert("output".to_owned(), json!(answer.final_output.content));
    if let Some(usage) = &case.usage {
        parts.insert("usage".to_owned(), json!(usage));
    }
    parts
}

fn document(trial: &Trial, last: &TrialExchange, look: &Look) -> Value {
    let missing = look.mapped.missing.iter().map(|(key, message)| json!({"key": key, "message": message}));
    json!({
        "status": last.status,
        "content_type": last.content_type,
        "requests": trial.exchanges.len(),
        "answer": look.answer,
        "standard_error": last.standard_error,
        "mapped": look.mapped.found,
        "missing": missing.collect::<Vec<_>>(),
        "proposed": look.proposed,
        "failure": failure(&trial.case).map(|failure| {
            json!({"class": failure.class, "error_name": failure.error_name, "message": failure.error_message})
        }),
    })
}

fn print(
    trial: &Trial,
    last: &TrialExchange,
    look: &Look,
    settings: &Settings,
    streams: &mut Streams,
) -> Result<(), CommandError> {
    let answer = match trial.exchanges.len() {
        0 | 1 => "answer".to_owned(),
        requests => format!("last answer of {requests}"),
    };
    let status = last.status.map(|status| format!(" with status {status}")).unwrap_or_default();
    let content_type = last.content_type.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default();
    let request = trial.exchanges.first().map_or("", |first| &first.request);
    let shown = match &look.answer {
        Value::String(answer) => answer.clone(),
        answer => serde_json::to_string_pretty(answer).unwrap_or_default(),
    };
    let mut lines = vec![format!("request to {}:", settings.recorded_url()), indented(request), String::new()];
    lines.extend([format!("{answer}{status}{content_type}:"), indented(&shown)]);
    if !last.standard_error.is_empty() {
        lines.extend(["\nstandard error:".to_owned(), indented(&last.standard_error)]);
    }
    if !look.mapped.found.is_empty() {
        lines.push("\nmapped:".to_owned());
        lines.extend(look.mapped.found.iter().map(|(key, value)| format!("  {key}: {}", listed(value))));
    }
    if !look.mapped.missing.is_empty() {
        lines.push("\nmissing:".to_owned());
        lines.extend(look.mapped.missing.iter().map(|(key, message)| format!("  {key}: {message}")));
    }
    if !look.lines.is_empty() {
        let table = if look.proposed.contains_key("protocol") { "" } else { ".http" };
        lines.push(format!("\nproposed for [side.{}{table}] in counterproof.toml:\n", settings.side));
    }
    // These follow without indentation, to be pasted.
    lines.extend(look.lines.iter().cloned());
    streams.print_line(harmless(&lines.join("\n")))?;
    match failure(&trial.case) {
        Some(failure) if look.proposed.is_empty() => {
            let name = failure.error_name.as_deref().unwrap_or_default();
            let message = failure.error_message.as_deref().unwrap_or_default();
            streams.log(format_args!("not an answer: {name}: {message}"));
            if last.status == Some(404) || last.status == Some(405) {
                streams.log("hint: set `path` and `method` in `[side.new.http]`; docs/http-agents.md has examples");
            }
        }
        _ => {}
    }
    Ok(())
}

/// Formats a mapped part: a list with one element per line.
fn listed(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => {
            let lines: Vec<_> = items.iter().map(|item| format!("\n    {item}")).collect();
            lines.concat()
        }
        other => other.to_string(),
    }
}

fn indented(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_SHOWN_BYTES.min(text.len()));
    let rest = if end < text.len() { format!("\n  … {} more bytes", text.len() - end) } else { String::new() };
    let lines: Vec<_> = text[..end].lines().map(|line| format!("  {line}")).collect();
    lines.join("\n") + &rest
}
