//! The columns of a file of facts: the only place that knows their names and types. Columns are added at the end and never
//! changed or removed within a version.

use counterproof_artifact::evaluation::UsageCode;

use super::rows::{Row, decision, gate, is_failing};

/// The version of the columns, in the metadata of each file.
pub(super) const SCHEMA: &str = "facts.v1";

/// A column with its values.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) values: Values,
}

/// The values of a column by type; `None` where a value is unknown.
pub(super) enum Values {
    Text(for<'r> fn(&'r Row<'_>) -> Option<&'r str>),
    Texts(for<'r> fn(&'r Row<'_>) -> Vec<&'r str>),
    Boolean(fn(&Row<'_>) -> Option<bool>),
    Integer(fn(&Row<'_>) -> Option<i64>),
    Number(fn(&Row<'_>) -> Option<f64>),
    /// Days since 1970-01-01.
    Date(fn(&Row<'_>) -> Option<i32>),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Time(fn(&Row<'_>) -> Option<i64>),
}

impl Values {
    /// The type as docs/scale.md names it.
    #[cfg(test)]
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Values::Text(_) => "text",
            Values::Texts(_) => "list of text",
            Values::Boolean(_) => "boolean",
            Values::Integer(_) => "int64",
            Values::Number(_) => "double",
            Values::Date(_) => "date",
            Values::Time(_) => "timestamp",
        }
    }
}

const fn column(name: &'static str, values: Values) -> Column {
    Column { name, values }
}

/// All columns, in the order of the file.
pub(super) const COLUMNS: [Column; 41] = [
    column("night", Values::Date(|row| row.comparison.day)),
    column("started", Values::Time(|row| row.comparison.started)),
    column("new_run", Values::Text(|row| Some(&row.comparison.night.new))),
    column(
        "baseline_run",
        Values::Text(|row| Some(row.comparison.night.baseline.as_str()).filter(|_| !row.comparison.is_alone)),
    ),
    column("gate", Values::Text(|row| Some(gate(row.comparison.night.gate)))),
    column("decision", Values::Text(|row| Some(decision(row.comparison.night.decision)))),
    column("evaluator", Values::Text(|row| Some(&row.comparison.evaluator))),
    column("case_id", Values::Text(|row| Some(row.case.evaluation.case_id.as_str()))),
    column("title", Values::Text(|row| row.case.evaluation.title.as_deref())),
    column("suite", Values::Text(|row| row.case.evaluation.suite.as_deref())),
    column("tags", Values::Texts(|row| row.case.evaluation.tags.iter().map(String::as_str).collect())),
    column("rank", Values::Integer(|row| Some(row.case.rank))),
    column("verdict", Values::Text(|row| Some(row.case.evaluation.verdict.as_str()))),
    column("result", Values::Text(|row| Some(row.case.result.label.text()))),
    column("unconfirmed", Values::Boolean(|row| Some(row.case.evaluation.unconfirmed))),
    column("failing", Values::Boolean(|row| is_failing(row.case.result.status))),
    column(
        "reasons",
        Values::Texts(|row| row.case.evaluation.reasons.iter().map(|reason| reason.code.as_str()).collect()),
    ),
    column("reason", Values::Text(|row| Some(row.case.result.reason.as_str()).filter(|reason| !reason.is_empty()))),
    column("severity", Values::Number(|row| Some(row.case.evaluation.severity.as_ref()?.score))),
    column("severity_level", Values::Text(|row| Some(row.case.evaluation.severity_level()?.as_str()))),
    column("risk", Values::Text(|row| Some(row.case.evaluation.risk_level?.as_str()))),
    column("cause", Values::Text(|row| Some(row.case.evaluation.cause.as_ref()?.code.as_str()))),
    column("cause_place", Values::Text(|row| Some(row.case.evaluation.cause.as_ref()?.place.as_str()))),
    column("side", Values::Text(|row| Some(row.side.as_str()))),
    column("run_id", Values::Text(|row| Some(row.run_id?.as_str()))),
    column("run_index", Values::Integer(|row| row.run_index)),
    column("runs", Values::Integer(|row| Some(row.runs))),
    column("commit", Values::Text(|row| row.commit)),
    column("model", Values::Text(|row| row.model)),
    column("answered", Values::Boolean(|row| row.is_answered)),
    column("expectations_met", Values::Integer(|row| Some(row.expectations?.0))),
    column("expectations_unmet", Values::Integer(|row| Some(row.expectations?.1))),
    column("steps", Values::Number(|row| row.usage.as_ref()?.get(UsageCode::Steps))),
    column("writes", Values::Integer(|row| row.writes)),
    column("duration_ms", Values::Number(|row| row.usage.as_ref()?.get(UsageCode::Duration))),
    column("tool_ms", Values::Number(|row| row.usage.as_ref()?.get(UsageCode::ToolTime))),
    column("input_tokens", Values::Number(|row| Some(row.usage.as_ref()?.input_tokens?.value()))),
    column("output_tokens", Values::Number(|row| Some(row.usage.as_ref()?.output_tokens?.value()))),
    column("cached_tokens", Values::Number(|row| Some(row.usage.as_ref()?.cached_tokens?.value()))),
    column("cost", Values::Number(|row| row.usage.as_ref()?.get(UsageCode::Cost))),
    column("currency", Values::Text(|row| row.usage.as_ref()?.currency.as_deref())),
];

/// The schema in the text form of Parquet.
pub(super) fn schema() -> String {
    use std::fmt::Write as _;

    let mut text = String::from("message facts {\n");
    for Column { name, values } in &COLUMNS {
        let _ = match values {
            Values::Text(_) => writeln!(text, "optional binary {name} (STRING);"),
            // Three levels, as the format requires of lists.
            Values::Texts(_) => writeln!(
                text,
                "required group {name} (LIST) {{ repeated group list {{ required binary element (STRING); }} }}"
            ),
            Values::Boolean(_) => writeln!(text, "optional boolean {name};"),
            Values::Integer(_) => writeln!(text, "optional int64 {name};"),
            Values::Number(_) => writeln!(text, "optional double {name};"),
            Values::Date(_) => writeln!(text, "optional int32 {name} (DATE);"),
            Values::Time(_) => writeln!(text, "optional int64 {name} (TIMESTAMP(MICROS,true));"),
        };
    }
    text.push('}');
    text
}
