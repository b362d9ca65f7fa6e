//! `counterproof try`: sends one request to the agent, and shows what the configuration finds in the answer.

use camino::Utf8Path;
use clap::ValueEnum;
use counterproof_artifact::{Case, Exit, Extra, Outcome, Side, harmless};
use counterproof_cases::{CaseSpec, Expected, Input, Metadata};
use counterproof_runner::{
    Environment, HttpMapping, Interrupt, MappedAnswer, Protocol, Settings, Trial, propose, try_once,
};
use serde_json::{Map, Value, json};

use crate::command_error::CommandError;
use crate::commands::run::run_error;
use crate::layers::Layers;
use crate::request_args::{RequestArgs, RunPaths};
use crate::side_agent::SideAgent;
use crate::streams::{Streams, to_json};

/// How much of an answer is shown to a person, in bytes.
const MAX_SHOWN_BYTES: usize = 16 * 1024;

/// Send one request to the agent, and show the answer and what the configuration finds in it.
///
/// Uses the same settings as `check`. For what `[side.new.http]` does not map, or maps to a place that the answer does not have,
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
    // The runner needs a run folder; a trial leaves nothing behind.
    let temporary = tempfile::tempdir().map_err(CommandError::io)?;
    let out = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| CommandError::io("the path of the temporary folder is not UTF-8"))?;
    let agent = SideAgent::open(args.side, layers, out, &interrupt, streams)?;
    let run_id = "try".parse().map_err(CommandError::usage)?;
    let paths = RunPaths { cases: Utf8Path::new("cases.yaml"), out };
    let mut settings = args.request.settings(run_id, &agent, paths, &layers.config)?;
    settings.save_requests = false;
    let case = case(args)?;
    let trial = try_once(&settings, &case, &Environment::from_system());
    // The end of the agent explains why it did not answer.
    agent.check_alive()?;
    let trial = trial.map_err(|error| run_error(error, "counterproof try"))?;
    if !trial.reached {
        // An agent that was started and ended says more than a refused connection.
        agent.check_alive()?;
        let message = trial.answer.as_ref().err().map(|failure| failure.message.as_str()).unwrap_or_default();
        let target = settings.target.recorded();
        return Err(CommandError::io(format!("cannot reach the agent at {target}: {message}"))
            .hint("start the agent, or set `base_url` or `start` in `[side.new]` of counterproof.toml"));
    }
    let look = look(&trial, &settings, &args.input);
    let has_output = look.mapped.found.contains_key("output")
        || look.proposed.contains_key("output")
        || look.proposed.contains_key("protocol");
    match args.format {
        Format::Json => streams.print_document(&to_json(&document(&trial, &look)))?,
        Format::Human => print(&trial, &look, &settings, streams)?,
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

/// Applies the mapping to the answer, and proposes what it lacks.
fn look(trial: &Trial, settings: &Settings, user: &str) -> Look {
    let mapping = &*settings.agent.http;
    let content_type = trial.content_type.as_deref();
    let is_success = trial.status.is_none_or(|status| (200..300).contains(&status));
    let parsed = mapping.parse_answer(&trial.body, content_type);
    let is_json = parsed.is_ok();
    let (answer, is_stream) = parsed.unwrap_or_else(|_| (String::from_utf8_lossy(&trial.body).into(), false));
    let mut look = Look { answer, mapped: MappedAnswer::default(), proposed: Map::new(), lines: Vec::new() };
    if settings.protocol != Protocol::Http {
        if let Ok(case) = &trial.answer {
            look.mapped = MappedAnswer { found: parts_of(case), missing: Vec::new() };
            return look;
        }
    } else if is_success && is_json {
        look.mapped = mapping.apply(&look.answer, is_stream);
        if mapping.output.is_none() {
            look.mapped.missing.push(("output", "is not set".to_owned()));
        }
    }
    if !is_success {
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
fn parts_of(case: &Case) -> Map<String, Value> {
    let Outcome::Ok(answer) = &case.outcome else { return Map::new() };
    let calls: Vec<_> = answer
        .events
        .iter()
        .filter_map(|event| event.tool_call())
        .map(|call| json!({"name": call.tool, "arguments": call.args}))
        .collect();
    let actions: Vec<_> = answer
        .proposed_actions
        .iter()
        .map(|action| json!({"name": action.tool_name, "arguments": action.params}))
        .collect();
    let mut parts = Map::new();
    parts.insert("output".to_owned(), json!(answer.final_output.content));
    for (key, list) in [("calls", calls), ("actions", actions)] {
        if !list.is_empty() {
            parts.insert(key.to_owned(), list.into());
        }
    }
    if let Some(usage) = &case.usage {
        parts.insert("usage".to_owned(), json!(usage));
    }
    parts
}

fn document(trial: &Trial, look: &Look) -> Value {
    let missing = look.mapped.missing.iter().map(|(key, message)| json!({"key": key, "message": message}));
    json!({
        "status": trial.status,
        "content_type": trial.content_type,
        "answer": look.answer,
        "mapped": look.mapped.found,
        "missing": missing.collect::<Vec<_>>(),
        "proposed": look.proposed,
        "failure": trial.answer.as_ref().err().map(|failure| {
            json!({"class": failure.class, "error_name": failure.name, "message": failure.message})
        }),
    })
}

fn print(trial: &Trial, look: &Look, settings: &Settings, streams: &mut Streams) -> Result<(), CommandError> {
    let status = trial.status.map_or_else(|| "answer".to_owned(), |status| format!("answer with status {status}"));
    let content_type = trial.content_type.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default();
    let shown = match &look.answer {
        Value::String(answer) => answer.clone(),
        answer => serde_json::to_string_pretty(answer).unwrap_or_default(),
    };
    let mut lines = vec![format!("request to {}:", settings.recorded_url()), indented(&trial.request), String::new()];
    lines.extend([format!("{status}{content_type}:"), indented(&shown)]);
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
    match &trial.answer {
        Err(failure) if look.proposed.is_empty() => {
            streams.log(format_args!("not an answer: {}: {}", failure.name, failure.message));
            if trial.status == Some(404) || trial.status == Some(405) {
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
