//! `counterproof guard policy explain`: what each rule does with a call.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{Exit, harmless, one_line};
use counterproof_guard::identity::RunIdentity;
use counterproof_guard::mcp::read_sample;
use counterproof_guard::policy::{
    CallFacts, Decision, Engine, Matching, Policy, RequestFacts, RuleStep, SampleCall, Treatment, UnmetSelector,
};
use counterproof_ledger::event::{Mode, PolicyRef, Transport, Workload};
use counterproof_store::read_file;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::command_error::CommandError;
use crate::commands::guard::policy_args;
use crate::streams::Streams;
use crate::streams::to_json;

/// Show what each rule of a policy does with a call, in order, and which one decides.
///
/// The call is read as `guard shim` reads its request. The counters of the rules start empty; `--repeat` makes the same call several
/// times. Exit code 0: the call was explained. 2: the
/// policy or an argument is invalid.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Policy file
    #[arg(value_name = "FILE")]
    policy: Utf8PathBuf,

    /// Name of the server
    #[arg(long, value_name = "NAME")]
    server: String,

    /// Name of the tool
    #[arg(long, value_name = "NAME")]
    tool: String,

    /// Arguments of the call: a JSON object, or `@FILE`
    #[arg(long = "args", value_name = "JSON", default_value = "{}")]
    arguments: CallArgs,

    /// Treat the arguments as too large to be inspected
    #[arg(long = "large-args")]
    are_too_large: bool,

    /// Environment of the run
    #[arg(long, value_name = "NAME", default_value = "unknown", value_parser = ["dev", "ci", "prod", "unknown"])]
    env: String,

    /// Id of the agent
    #[arg(long, value_name = "ID", default_value = "unknown")]
    agent: String,

    /// Kind of client
    #[arg(long, value_name = "NAME", default_value = "unknown", value_parser = ["claude", "codex", "headless", "custom", "unknown"])]
    client: String,

    /// Person or service on whose behalf the agent works
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,

    /// Facts about the job, as in the variable `SUB_WORKLOAD`
    #[arg(long, value_name = "JSON")]
    workload: Option<String>,

    /// Number of equal calls
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: u32,

    /// Time between two calls, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    every: u32,
}

const RUN_OPTIONS: &str = "`--client`, `--env`, `--agent` or `--workload`";

struct Calls {
    first: u32,
    last: u32,
    decision: Decision,
}

pub(super) fn run(args: &Args, is_json: bool, streams: &mut Streams) -> Result<Exit, CommandError> {
    let policy = policy_args::load(&args.policy)?;
    let (policy, identity) = (Arc::new(policy), identity(args)?);
    let request = request(args)?;
    let call = CallFacts {
        server_name: &args.server,
        tool_name: &args.tool,
        args: request.args(),
        args_hash: &request.args_hash,
        bytes_in: request.bytes_in,
        transport: Transport::McpStdio,
    };
    let mut engine = Engine::new(policy.clone(), &identity);
    let (mut calls, mut steps): (Vec<Calls>, Vec<RuleStep>) = (Vec::new(), Vec::new());
    for number in 1..=args.repeat {
        // The clock of the rules is simulated, so `--every` takes no time.
        let now = Duration::from_millis(u64::from(number - 1) * u64::from(args.every));
        let (decision, rules) = engine.explain(&call, now);
        // Only the steps of the last call are listed, but the decisions of all calls.
        steps = rules;
        match calls.last_mut() {
            // Equal decisions in a row share a line, since there can be 100,000 calls.
            Some(last) if last.decision.record == decision.record => last.last = number,
            _ => calls.push(Calls { first: number, last: number, decision }),
        }
    }
    let unmet = policy.selectors.unmet(&identity);
    if is_json {
        let decisions = calls.iter().map(
            |it| json!({"first": it.first, "last": it.last, "decision": it.decision.record, "tags": it.decision.tags}),
        );
        let document = json!({
            "policy": policy.reference(), "mode": policy.mode, "unmet_selector": unmet.map(|unmet| unmet.name),
            "call": {"server_name": args.server, "tool_name": args.tool, "args_hash": request.args_hash, "bytes_in": request.bytes_in},
            "rules": steps, "decisions": decisions.collect::<Vec<Value>>(),
        });
        streams.print_document(&to_json(&document))?;
    } else {
        streams.print_document(&harmless(&format!(
            "{}{}",
            header(&policy),
            text(args, unmet.as_ref(), &steps, &calls)
        )))?;
    }
    Ok(Exit::Done)
}

/// Reads the request of the call as the shim does.
fn request(args: &Args) -> Result<RequestFacts, CommandError> {
    let text = args.arguments.read()?;
    let call = SampleCall { tool_name: &args.tool, args: &text, is_too_large: args.are_too_large };
    read_sample(&call).map_err(|problem| {
        CommandError::usage(format!("{}: {problem}", args.arguments.origin()))
            .hint("the guard refuses such a call in every mode, because parsers disagree on it")
    })
}

fn identity(args: &Args) -> Result<RunIdentity, CommandError> {
    let workload = args.workload.as_deref().map(serde_json::from_str::<Workload>).transpose();
    let workload = workload.map_err(|error| CommandError::usage(format!("`--workload` is invalid: {error}")))?;
    Ok(RunIdentity {
        run_id: "explain".to_owned(),
        agent_id: args.agent.clone(),
        client: named(&args.client)?,
        env: named(&args.env)?,
        principal: args.principal.clone(),
        workload,
    })
}

fn named<T: for<'de> Deserialize<'de>>(name: &str) -> Result<T, CommandError> {
    // The argument parser accepts only names that the types have.
    serde_json::from_value(name.into()).map_err(CommandError::usage)
}

fn header(policy: &Policy) -> String {
    let PolicyRef { policy_id, policy_version, .. } = policy.reference();
    let (mode, effect) = effect_of(policy.mode);
    format!("Policy `{policy_id}`, version {policy_version}, mode {mode}: {effect}.\n\n")
}

fn text(args: &Args, unmet: Option<&UnmetSelector>, steps: &[RuleStep], calls: &[Calls]) -> String {
    let mut text = String::new();
    if let Some(selector) = unmet {
        let _ = writeln!(
            text,
            "The policy is not for this run: selector {selector}.\nDescribe another run with {RUN_OPTIONS}.\n"
        );
    } else if !steps.is_empty() {
        let call = if args.repeat > 1 { format!("call {}", args.repeat) } else { "the call".to_owned() };
        let _ = writeln!(text, "Rules for {call}, in order:\n");
        let column = |text: &str| one_line(text, 40);
        let widest = steps.iter().map(|step| column(step.rule_id.as_str()).chars().count()).max().unwrap_or(0);
        for (index, step) in steps.iter().enumerate() {
            let (id, kind) = (column(step.rule_id.as_str()), step.kind.name());
            let _ = writeln!(text, "{:>4}  {id:<widest$}  {kind:<10}  {}", index + 1, describe(step));
        }
        text.push('\n');
    }
    for Calls { first, last, decision } in calls {
        let record = &decision.record;
        let which = match (args.repeat, first == last) {
            (1, _) => "decision".to_owned(),
            (_, true) => format!("call {first}"),
            (_, false) => format!("calls {first} to {last}"),
        };
        let by = record.rule_id.as_deref().map(|id| format!(" by rule `{id}`")).unwrap_or_default();
        let explain = &record.explain;
        let _ = writeln!(text, "{which}: {}{by} ({}): {}", record.action.name(), explain.reason_code, explain.summary);
        // A policy that is not for the run decides the same in every mode.
        let observed = record.observed.as_ref().filter(|observed| observed.reason_code != explain.reason_code);
        if let Some(observed) = observed {
            let by = observed.rule_id.as_deref().map(|id| format!(" by rule `{id}`")).unwrap_or_default();
            let _ =
                writeln!(text, "  the rules would decide {}{by} ({})", observed.action.name(), observed.reason_code);
        }
        if let Some(hint) = &record.hint {
            let _ = writeln!(text, "  hint: {}", hint.hint_text);
        }
        if let Some(backoff_ms) = record.backoff_ms {
            let _ = writeln!(text, "  backoff: {backoff_ms} ms");
        }
    }
    text
}

fn describe(step: &RuleStep) -> String {
    let effect = step.effect.as_deref().unwrap_or_default();
    match &step.matching {
        Matching::Disabled => "disabled".to_owned(),
        Matching::NotReached => "not reached: an earlier rule ended the evaluation".to_owned(),
        Matching::No { condition, reason } => format!("no match: {}: {reason}", within_match(condition)),
        Matching::Yes { conditions } if conditions.is_empty() => format!("matches every call: {effect}"),
        Matching::Yes { conditions } => {
            let met: Vec<&str> = conditions.iter().map(|condition| within_match(condition)).collect();
            format!("match ({}): {effect}", met.join(", "))
        }
        Matching::Undecided { condition, reason, treated } => {
            let way = match treated {
                Treatment::Strict => "stricter",
                Treatment::Lenient => "more lenient",
            };
            let condition = within_match(condition);
            format!("undecided: {condition}: {reason}; treated in the {way} way (see `defaults`): {effect}")
        }
    }
}

/// Returns the name of a condition within the field `match`.
fn within_match(condition: &str) -> &str {
    condition.strip_prefix("match.").unwrap_or(condition)
}

const fn effect_of(mode: Mode) -> (&'static str, &'static str) {
    match mode {
        Mode::Observe => ("observe", "every call is allowed, and recorded with what the rules would decide"),
        Mode::Guardrails => ("guardrails", "the rules decide"),
        Mode::Control => ("control", "the rules decide, and REJECT_WITH_HINT replaces BLOCK"),
    }
}

/// The arguments of a call: `{…}`, or `@FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallArgs {
    Text(String),
    File(Utf8PathBuf),
}

impl FromStr for CallArgs {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.strip_prefix('@') {
            Some(path) => Self::File(path.into()),
            None => Self::Text(text.to_owned()),
        })
    }
}

impl CallArgs {
    /// Reads the JSON text of the arguments, which must be an object.
    pub(super) fn read(&self) -> Result<String, CommandError> {
        let text = match self {
            Self::Text(text) => text.clone(),
            Self::File(path) => read(path)?,
        };
        let origin = self.origin();
        match serde_json::from_str::<Value>(&text) {
            // The text, not the value: a parsed value hides duplicate keys, for which the guard refuses a call.
            Ok(value) if value.is_object() => Ok(text),
            Ok(_) => Err(CommandError::usage(format!("{origin} is not a JSON object"))
                .hint("the arguments of a tool are an object, such as {\"path\": \"a\"}")),
            Err(error) => Err(CommandError::usage(format!("{origin} is not JSON: {error}"))
                .hint("put the JSON in single quotes, or pass `--args @FILE`")),
        }
    }

    pub(super) fn origin(&self) -> String {
        match self {
            Self::Text(_) => "`--args`".to_owned(),
            Self::File(path) => format!("`{path}`"),
        }
    }
}

fn read(path: &Utf8Path) -> Result<String, CommandError> {
    read_file::read_text_argument(path, read_file::MAX_LARGE_BYTES)
        .map_err(|error| CommandError::io(format!("cannot read `{path}`: {error}")))
}
