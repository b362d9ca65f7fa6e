//! Mistakes in conditions that the language allows: fields that no call and no run has, and values that are never booleans.

use std::sync::LazyLock;

use counterproof_expression::{CompileError, Expression, NeverBoolean, Read};
use counterproof_validation::nearest;
use serde_json::{Value, json};

/// The fields of `call`, as the documentation lists them.
pub(super) const CALL_FIELDS: [&str; 6] = ["server_name", "tool_name", "args", "bytes_in", "transport", "risk_class"];

/// The fields of `run`.
pub(super) const RUN_FIELDS: [&str; 5] = ["agent_id", "client", "env", "principal", "workload"];

/// The fields of `run.workload`.
pub(super) const WORKLOAD_FIELDS: [&str; 10] =
    ["user", "repo_path", "ci_provider", "job_id", "repo", "branch", "namespace", "service_account", "pod", "labels"];

/// The types of the fields that always have the same type: `call` and `run`.
static SHAPES: LazyLock<[Value; 2]> = LazyLock::new(|| {
    [
        json!({"server_name": "", "tool_name": "", "args": {}, "bytes_in": 0, "transport": "", "risk_class": []}),
        json!({"agent_id": "", "client": "", "env": "", "workload": {"labels": {}}}),
    ]
});

/// Returns the mistakes of an expression over `call` and `run`.
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
    use counterproof_expression::Expression;

    use super::mistakes;

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
            ("call.?tags.orValue([]) == []", "`call` has no field `tags` <- tags"),
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
