//! The final outputs of the two sides: texts by line and word, objects place by place.

use counterproof_artifact::{Content, FinalOutput};

use super::json::{self, JsonChanges};
use super::text::{self, TextChanges};

/// How the final outputs differ.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputChange {
    /// Not at all.
    Same,
    /// Two texts.
    Text(TextChanges),
    /// Two objects; pointers lead into the artifact of their side.
    Json(JsonChanges),
    /// A text on one side and an object on the other, or a content of another declared type.
    Form,
}

/// Compares the final outputs.
pub fn diff(baseline: &FinalOutput, new: &FinalOutput) -> OutputChange {
    if baseline.content_type != new.content_type {
        return OutputChange::Form;
    }
    match (&baseline.content, &new.content) {
        (Content::Text(old), Content::Text(new)) if old == new => OutputChange::Same,
        (Content::Text(old), Content::Text(new)) => OutputChange::Text(text::diff(old, new)),
        (Content::Json(old), Content::Json(new)) => {
            let changes = json::diff_objects(old, new).below("/final_output/content", "/final_output/content");
            if changes.is_empty() { OutputChange::Same } else { OutputChange::Json(changes) }
        }
        _ => OutputChange::Form,
    }
}
