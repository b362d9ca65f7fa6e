//! What the agents told: the fields of an output that is an object, and the numbers of texts.

use counterproof_artifact::{Content, EventBody, Sides};

use super::SeverityPart;
use super::distances::share_changed;
use crate::diff::output::OutputChange;
use crate::grounding;
use crate::load::LoadedAnswer;
use crate::load::turn::{self, Speaker};
use crate::values::distance::leaves_below;

/// The fields of an output that is an object.
const FIELDS: f64 = 0.6;

/// The numbers that the agent told.
const NUMBERS: f64 = 0.3;

/// The part and the share for what was told differently.
pub(super) fn told(answers: Sides<&LoadedAnswer>, change: &OutputChange) -> (SeverityPart, f64) {
    let contents = answers.map(|loaded| &loaded.answer.final_output.content);
    match (change, contents.baseline, contents.new) {
        (OutputChange::Json(changes), Content::Json(a), Content::Json(b)) => {
            (SeverityPart::OutputFields, FIELDS * share_changed(changes, || leaves_below(a) + leaves_below(b)))
        }
        (OutputChange::Same, Content::Json(_), Content::Json(_)) => (SeverityPart::OutputFields, 0.0),
        (_, Content::Text(_), Content::Text(_)) => {
            let texts = answers.map(texts);
            (SeverityPart::OutputNumbers, NUMBERS * grounding::distance_of_numbers(&texts.baseline, &texts.new))
        }
        // One output is a text and the other an object.
        _ => (SeverityPart::OutputFields, FIELDS),
    }
}

/// All that an agent said: its turns and its output. What one agent says at the end, another says on the way.
fn texts(loaded: &LoadedAnswer) -> String {
    let turns = loaded.answer.events.iter().filter_map(|event| match &event.body {
        EventBody::Unknown { fields, .. } if turn::speaker(event) == Some(Speaker::Assistant) => turn::text_of(fields),
        _ => None,
    });
    let output = match &loaded.answer.final_output.content {
        Content::Text(text) => Some(text.as_str()),
        Content::Json(_) => None,
    };
    turns.chain(output).collect::<Vec<_>>().join("\n")
}
