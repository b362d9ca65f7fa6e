//! Differences of the final outputs: texts by line and word, objects by pointer.

use counterproof_artifact::{Content, FinalOutput};
use serde_json::Value;

use super::json::{self, JsonChanges};
use super::text::{self, TextChanges};
use crate::rules::{Notes, Renaming, Rules, Scope, Subject, view};

/// The pointer of the content in an artifact.
pub(crate) const POINTER: &str = "/final_output/content";

/// How the final outputs differ.
#[derive(Debug, Clone, PartialEq)]
pub enum OutputChange {
    /// The outputs are equal.
    Same,
    /// Both are texts and differ.
    Text(TextChanges),
    /// Both are objects and differ. Pointers point into the artifact of their side.
    Json(JsonChanges),
    /// One is a text and the other an object, or their declared content types differ.
    Form,
}

/// Returns the rules for the final output: those for events of its type, below `/content`.
pub(crate) fn scope(rules: &Rules) -> Scope<'_> {
    rules.scope(Subject { event: Some("final_output"), tool: None }).below("content")
}

/// Records which rules apply to an output, and the ids in it.
pub(crate) fn note(output: &FinalOutput, scope: &Scope<'_>, notes: &mut Notes) {
    if !scope.is_empty() {
        view(&value(&output.content), scope, notes);
    }
}

/// Compares the final outputs.
pub(crate) fn diff(
    baseline: &FinalOutput,
    new: &FinalOutput,
    scope: &Scope<'_>,
    renaming: &mut Renaming,
) -> OutputChange {
    let here = scope.here();
    if here.ignore {
        return OutputChange::Same;
    }
    if baseline.content_type != new.content_type {
        return OutputChange::Form;
    }
    match (&baseline.content, &new.content) {
        (Content::Text(old), Content::Text(new)) if old == new => OutputChange::Same,
        (old @ Content::Text(before), new @ Content::Text(after)) => {
            let same = !scope.is_empty() && here.same(&value(old), &value(new), renaming);
            if same { OutputChange::Same } else { OutputChange::Text(text::diff(before, after)) }
        }
        (Content::Json(old), Content::Json(new)) => {
            let changes = json::diff_objects(old, new, scope, renaming).below(POINTER, POINTER);
            if changes.is_empty() { OutputChange::Same } else { OutputChange::Json(changes) }
        }
        _ => OutputChange::Form,
    }
}

/// Converts a content to a JSON value.
pub(crate) fn value(content: &Content) -> Value {
    match content {
        Content::Text(text) => Value::String(text.clone()),
        Content::Json(object) => Value::Object(object.clone()),
    }
}
