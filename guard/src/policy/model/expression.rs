//! Conditions in CEL over the variables `call` and `run`, and mistakes in them that the language allows.

use std::sync::LazyLock;

use counterproof_expression::{CompileError, EvaluationError, Expression, NeverBoolean, Outcome, Read};
use counterproof_validation::nearest;
use serde_json::{Map, Value, json};

use super::condition::{Doubt, RiskClasses};
use crate::identity::RunIdentity;
use crate::policy::call::{Args, CallFacts};

const VARIABLES: [&str; 2] = ["call", "run"];
pub(crate) const CALL: usize = 0;

pub type InvalidCel = CompileError;

#[derive(Debug, Clone, PartialEq)]
pub struct CelCondition {
    expression: Expression,
    reads_args: bool,
    reads_risk_class: bool,
}

/// The values of the variables for one call, built when the first condition needs them.
#[derive(Debug)]
pub(crate) struct CelInputs<'a> {
    call: &'a CallFacts<'a>,
    run: &'a Value,
    built: Option<Value>,
    risk_classes: usize,
    /// The steps that the expressions of all rules may still take.
    steps: u64,
}

/// Most steps of all expressions for one call: about a tenth of a second. A policy can have thousands of rules, and one expression
/// can take a million steps.
const MAX_STEPS_OF_CALL: u64 = 4_000_000;

impl CelCondition {
    pub fn compile(text: &str) -> Result<Self, Vec<InvalidCel>> {
        // An expression that names an unknown field, or that is never a boolean, is an error too.
        let expression = Expression::compile(text, &VARIABLES).map_err(|error| vec![error])?;
        // A misspelt field has no value at run time, so that the rule would be undecided for every call.
        let mistakes = mistakes(&expression);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let reads = |field: &str| reads(text, field);
        Ok(Self { expression, reads_args: reads("args"), reads_risk_class: reads("risk_class") })
    }

    pub fn source(&self) -> &str {
        self.expression.source()
    }

    pub(crate) fn expression(&self) -> &Expression {
        &self.expression
    }

    pub(crate) fn evaluate(&self, inputs: &mut CelInputs<'_>, classes: &RiskClasses) -> Result<bool, Doubt> {
        // Without the arguments, `has(call.args.x)` would be false, and a rule could be passed by with a large request.
        if self.reads_args && matches!(inputs.call.args, Args::TooLarge) {
            return Err(Doubt::ArgsTooLarge);
        }
        // An undecided tag rule may have added the class: either value could be wrong.
        if self.reads_risk_class && classes.has_possible() {
            return Err(Doubt::RiskClassUncertain);
        }
        let run = inputs.run;
        let mut steps = inputs.steps;
        let outcome = self.expression.evaluate_within(&[inputs.call_value(classes), run], &mut steps);
        inputs.steps = steps;
        match outcome {
            Outcome::True => Ok(true),
            Outcome::False => Ok(false),
            Outcome::Failed(EvaluationError { span, message }) => {
                let part = self.source().get(span).unwrap_or(self.source()).to_owned();
                Err(Doubt::CelFailed { part, message })
            }
            Outcome::TooLong => Err(Doubt::CelTooLong),
        }
    }
}

impl<'a> CelInputs<'a> {
    pub(crate) fn new(call: &'a CallFacts<'a>, run: &'a Value) -> Self {
        Self { call, run, built: None, risk_classes: 0, steps: MAX_STEPS_OF_CALL }
    }

    fn call_value(&mut self, classes: &RiskClasses) -> &Value {
        let call = self.call;
        let certain = classes.certain();
        let is_outdated = self.risk_classes != certain.len();
        self.risk_classes = certain.len();
        // Built for the first condition that needs it: most calls meet no rule with CEL, and the arguments are copied.
        let value = self.built.get_or_insert_with(|| {
            let mut fields = Map::new();
            fields.insert("server_name".to_owned(), call.server_name.into());
            fields.insert("tool_name".to_owned(), call.tool_name.into());
            // Missing and not null for a large request: an expression that reads it must have no value.
            if let Args::Inspected(args) = call.args {
                fields.insert("args".to_owned(), args.clone());
            }
            fields.insert("bytes_in".to_owned(), call.bytes_in.into());
            fields.insert("transport".to_owned(), json!(call.transport));
            fields.insert("risk_class".to_owned(), json!(certain));
            Value::Object(fields)
        });
        if is_outdated {
            value["risk_class"] = json!(certain);
        }
        value
    }
}

pub(crate) fn run_value(run: &RunIdentity) -> Value {
    // Facts that are not known are null, so that comparisons with them are false instead of failing.
    let workload = run.workload.clone().unwrap_or_default();
    json!({
        "agent_id": run.agent_id,
        "client": run.client,
        "env": run.env,
        "principal": run.principal,
        "workload": {
            "user": workload.user, "repo_path": workload.repo_path, "ci_provider": workload.ci_provider,
            "job_id": workload.job_id, "repo": workload.repo, "branch": workload.branch, "namespace": workload.namespace,
            "service_account": workload.service_account, "pod": workload.pod, "labels": workload.labels,
        },
    })
}

/// True unless the text cannot read a field of `call`: each `call` is followed by the name of another field.
fn reads(text: &str, field: &str) -> bool {
    // Without the field, an expression such as `call.all(key, …)` would have a value that is wrong.
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    // By the text and not by the syntax tree: a false yes only makes a rule undecided, a false no could let a call pass.
    let mut words = text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
    if words.any(|word| word == field) {
        return true;
    }
    let starts = text.match_indices("call").filter(|(at, _)| !text[..*at].ends_with(is_word));
    let mut rests = starts.map(|(at, word)| &text[at + word.len()..]).filter(|rest| !rest.starts_with(is_word));
    rests.any(|rest| {
        let name = rest.trim_start().strip_prefix('.').map(str::trim_start).unwrap_or_default();
        let name = name.split(|c: char| !is_word(c)).next().unwrap_or_default();
        !CALL_FIELDS.contains(&name)
    })
}

pub(super) const CALL_FIELDS: [&str; 6] = ["server_name", "tool_name", "args", "bytes_in", "transport", "risk_class"];
pub(super) const RUN_FIELDS: [&str; 5] = ["agent_id", "client", "env", "principal", "workload"];

pub(super) const WORKLOAD_FIELDS: [&str; 10] =
    ["user", "repo_path", "ci_provider", "job_id", "repo", "branch", "namespace", "service_account", "pod", "labels"];

/// The types of the fields that always have the same type: `call` and `run`.
static SHAPES: LazyLock<[Value; 2]> = LazyLock::new(|| {
    [
        json!({"server_name": "", "tool_name": "", "args": {}, "bytes_in": 0, "transport": "", "risk_class": []}),
        json!({"agent_id": "", "client": "", "env": "", "workload": {"labels": {}}}),
    ]
});

pub(super) fn mistakes(expression: &Expression) -> Vec<CompileError> {
    let unknown = expression.reads().into_iter().filter_map(|read| unknown_field(&read));
    let [call, run] = &*SHAPES;
    let other_types = expression.never_boolean(&[call, run]).into_iter().map(|part| never_boolean(&part));
    let mut mistakes: Vec<CompileError> = unknown.chain(other_types).collect();
    mistakes.sort_by_key(|mistake| mistake.span.start);
    mistakes
}

fn unknown_field(read: &Read) -> Option<CompileError> {
    let fields: Vec<&str> = read.path.fields.iter().map(String::as_str).collect();
    let (object, known, name): (&str, &[&str], &str) = match (read.path.variable, &fields[..]) {
        (0, [name]) => ("call", &CALL_FIELDS, name),
        (1, [name]) => ("run", &RUN_FIELDS, name),
        (1, ["workload", name]) => ("run.workload", &WORKLOAD_FIELDS, name),
        _ => return None,
    };
    if known.contains(&name) {
        return None;
    }
    let near = nearest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Some(CompileError {
        span: read.name.clone(),
        message: format!("`{object}` has no field `{name}`{near}"),
        remedy: format!("use one of `{}`", known.join("`, `")),
    })
}

fn never_boolean(part: &NeverBoolean) -> CompileError {
    let NeverBoolean { span, value, taken_by } = part;
    let message = match taken_by {
        Some(operator) => format!("`{operator}` takes a boolean, not {value}"),
        None => format!("the value of the condition is {value}, and never true or false"),
    };
    CompileError { span: span.clone(), message, remedy: "compare the value, for example with `==`".to_owned() }
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::Sha256Digest;
    use counterproof_expression::Expression;
    use counterproof_ledger::event::{AgentClient, Transport, WorkingEnvironment};

    use super::{RUN_FIELDS, WORKLOAD_FIELDS, mistakes, *};

    fn evaluate(text: &str, args: Args<'_>, classes: &RiskClasses) -> Result<bool, Doubt> {
        let hash = Sha256Digest::from_bytes(b"{}");
        let call = CallFacts {
            server_name: "git",
            tool_name: "push",
            args,
            args_hash: &hash,
            bytes_in: 70,
            transport: Transport::McpStdio,
        };
        let run = RunIdentity {
            run_id: "r".to_owned(),
            agent_id: "a".to_owned(),
            client: AgentClient::Codex,
            env: WorkingEnvironment::Ci,
            principal: None,
            workload: None,
        };
        let run = run_value(&run);
        CelCondition::compile(text).unwrap().evaluate(&mut CelInputs::new(&call, &run), classes)
    }

    #[test]
    fn conditions_read_the_call_and_the_run() {
        let args = json!({"branch": "main", "force": true});
        for text in [
            "call.server_name == 'git' && call.tool_name.startsWith('pu')",
            "call.args.branch in ['main', 'master'] && call.args.force",
            "call.bytes_in > 50 && call.transport == 'mcp_stdio'",
            "run.agent_id == 'a' && run.client == 'codex' && run.env == 'ci'",
            "run.principal == null && run.workload.repo == null && size(run.workload.labels) == 0",
            "!has(call.args.tag)",
        ] {
            assert_eq!(evaluate(text, Args::Inspected(&args), &RiskClasses::default()), Ok(true), "{text}");
        }
        let failed = evaluate("call.args.tag == 'x'", Args::Inspected(&args), &RiskClasses::default());
        let doubt = Doubt::CelFailed { part: "call.args.tag".to_owned(), message: "missing field `tag`".to_owned() };
        assert_eq!(failed, Err(doubt));
    }

    #[test]
    fn the_expressions_of_all_rules_share_a_limit_of_steps() {
        let args = json!({"list": (0..900).collect::<Vec<_>>()});
        let hash = Sha256Digest::from_bytes(b"{}");
        let call = CallFacts {
            server_name: "git",
            tool_name: "push",
            args: Args::Inspected(&args),
            args_hash: &hash,
            bytes_in: 70,
            transport: Transport::McpStdio,
        };
        let heavy = "call.args.list.exists(a, call.args.list.filter(b, b > 300).exists(c, false))";
        let heavy = CelCondition::compile(heavy).unwrap();
        let run = Value::Null;
        let mut inputs = CelInputs::new(&call, &run);
        let outcomes: Vec<_> = (0..100).map(|_| heavy.evaluate(&mut inputs, &RiskClasses::default())).collect();
        assert_eq!(outcomes.last(), Some(&Err(Doubt::CelTooLong)));
        assert_eq!(inputs.steps, 0, "the first rules take all steps");
        let simple = CelCondition::compile("true").unwrap();
        assert_eq!(simple.evaluate(&mut inputs, &RiskClasses::default()), Err(Doubt::CelTooLong));
    }

    #[test]
    fn the_fields_of_the_run_are_those_of_its_value() {
        let (run, _) = RunIdentity::from_environment(|_| None);
        let value = run_value(&run);
        let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&value), RUN_FIELDS);
        assert_eq!(names(&value["workload"]), WORKLOAD_FIELDS);
    }

    #[test]
    fn a_condition_that_could_read_arguments_that_are_too_large_is_undecided() {
        for text in ["has(call.args.x)", "call.exists(k, k == 'x')", "size(call) == 6", "call['ar' + 'gs'] == 1"] {
            assert_eq!(evaluate(text, Args::TooLarge, &RiskClasses::default()), Err(Doubt::ArgsTooLarge), "{text}");
        }
        for text in ["call.tool_name == 'push'", "call . bytes_in == 70", "run.env == 'ci'"] {
            assert_eq!(evaluate(text, Args::TooLarge, &RiskClasses::default()), Ok(true), "{text}");
        }
    }

    /// Returns the mistakes, each with the part of the text that it points at.
    fn found(text: &str) -> Vec<String> {
        let expression = Expression::compile(text, &["call", "run"]).unwrap_or_else(|error| panic!("{text}: {error}"));
        mistakes(&expression).iter().map(|it| format!("{} <- {}", it.message, &text[it.span.clone()])).collect()
    }

    #[test]
    fn fields_that_do_not_exist_are_found_at_their_names() {
        for (text, expected) in [
            ("call.serverr == 'git'", "`call` has no field `serverr` <- serverr"),
            ("call . tool_nam == 'x'", "`call` has no field `tool_nam`; did you mean `tool_name`? <- tool_nam"),
            ("has(call.arg.x)", "`call` has no field `arg`; did you mean `args`? <- arg"),
            ("has(call.argz)", "`call` has no field `argz`; did you mean `args`? <- argz"),
            ("call['tool'] == 'a'", "`call` has no field `tool` <- 'tool'"),
            ("run.nope == 1", "`run` has no field `nope` <- nope"),
            (
                "run.workload.branches == 'main'",
                "`run.workload` has no field `branches`; did you mean `branch`? <- branches",
            ),
            ("cel.bind(c, call, c.tool == 'x')", "`call` has no field `tool` <- tool"),
            ("call.`content-type` == 'x'", "`call` has no field `content-type` <- content-type"),
        ] {
            assert_eq!(found(text), [expected], "{text}");
        }
    }

    #[test]
    fn values_that_are_never_booleans_are_found() {
        for (text, expected) in [
            ("1 + 1", "the value of the condition is the result of `+`, and never true or false <- 1 + 1"),
            ("'text'", "the value of the condition is a string, and never true or false <- 'text'"),
            ("call.tool_name", "the value of the condition is a string, and never true or false <- call.tool_name"),
            ("call.bytes_in > 1 && run.env", "`&&` takes a boolean, not a string <- run.env"),
        ] {
            assert_eq!(found(text), [expected], "{text}");
        }
    }

    #[test]
    fn other_texts_have_no_mistakes() {
        for text in [
            "call.server_name == 'git' && call.args.anything.run.nope == 1",
            "call.args['serverr'] == call.bytes_in",
            "run.workload.labels.anything == 'x' && run.workload['repo'] == 'y'",
            "call.exists(key, key == 'x')",
            "call.tool_name == 'call.serverr' // run.nope",
            "call[call.args.key] == 1",
            "[{'nope': 1}].exists(run, run.nope == 1)",
            "call.args.force",
            "run.principal == null || run.principal.startsWith('x')",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
