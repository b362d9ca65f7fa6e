//! Expectations that are expressions: the view of an answer that they are evaluated on, and their messages.

use counterproof_artifact::EventBody;
use counterproof_artifact::evaluation::Judgement;
use counterproof_cases::Expect;
use counterproof_expression::{MAX_STEPS, Outcome};
use serde_json::Value;

use crate::load::LoadedAnswer;
use crate::values::text;

/// Maximum number of characters of an expression in a message.
const MAX_SOURCE_CHARS: usize = 120;

/// Maximum number of values of an expression in a message, and of characters of each value and of the part that has it.
const MAX_READINGS: usize = 3;
const MAX_PART_CHARS: usize = 60;
const MAX_VALUE_CHARS: usize = 120;

/// An answer as expressions see it: the fields of the artifact, with payloads from assets inlined.
#[derive(Debug)]
pub(super) struct View {
    final_output: Value,
    proposed_actions: Value,
    events: Value,
}

impl View {
    pub(super) fn new(loaded: &LoadedAnswer) -> Self {
        let answer = &loaded.answer;
        // Serialising our own types cannot fail, so the default is never used.
        let mut events = serde_json::to_value(&answer.events).unwrap_or_default();
        let listed = events.as_array_mut().into_iter().flatten();
        // An expression must not depend on whether a payload is inline or stored as an asset.
        for (index, (event, known)) in listed.zip(&answer.events).enumerate() {
            let field = match &known.body {
                EventBody::ToolResult(result) if result.payload_asset_href.is_some() => "payload_summary",
                EventBody::Retrieval(found) if found.snippets_asset_href.is_some() => "snippets",
                _ => continue,
            };
            if let (Some(payload), Some(event)) = (loaded.payload(index), event.as_object_mut()) {
                event.insert(field.to_owned(), payload.to_value());
            }
        }
        Self {
            final_output: serde_json::to_value(&answer.final_output).unwrap_or_default(),
            proposed_actions: serde_json::to_value(&answer.proposed_actions).unwrap_or_default(),
            events,
        }
    }
}

/// The expectation as text for the report.
pub(super) fn expected(expect: &Expect) -> String {
    let source = format!("`{}`", text::one_line(expect.expression.source(), MAX_SOURCE_CHARS));
    match &expect.name {
        Some(name) => format!("{}: {source}", text::one_line(name, MAX_SOURCE_CHARS)),
        None => source,
    }
}

/// Judges an answer by an expression.
pub(super) fn judge(expect: &Expect, view: &View, input: &Value) -> Judgement {
    let called = match &expect.name {
        // Messages start with the name.
        Some(_) => "it".to_owned(),
        None => format!("`{}`", text::one_line(expect.expression.source(), MAX_SOURCE_CHARS)),
    };
    // In the order of `counterproof_cases::VARIABLES`.
    let variables = [&view.final_output, &view.proposed_actions, &view.events, input];
    match expect.expression.evaluate(&variables) {
        Outcome::True => Judgement::Met("it is true".to_owned()),
        Outcome::False => Judgement::Unmet(match (read(expect, &variables), &expect.name) {
            (None, _) => format!("{called} is false"),
            // The expression is known to be false from the values.
            (Some(found), Some(_)) => found,
            (Some(found), None) => format!("{called} is false: {found}"),
        }),
        Outcome::Failed(why) => Judgement::Unmet(format!("{called} failed: {}", text::one_line(&why.message, 200))),
        Outcome::TooLong => Judgement::Undecided(format!("{called} takes more than {MAX_STEPS} steps")),
    }
}

/// What an expression that is false found: `final_output.content.total is 50`. `None` if it reads no short values.
fn read(expect: &Expect, variables: &[&Value]) -> Option<String> {
    let source = expect.expression.source();
    let found = expect.expression.readings(variables, MAX_READINGS).into_iter().map(|reading| {
        let part = text::one_line(&source[reading.span], MAX_PART_CHARS);
        format!("{part} is {}", text::one_line(&reading.value, MAX_VALUE_CHARS))
    });
    let found: Vec<_> = found.collect();
    (!found.is_empty()).then(|| found.join(", "))
}
