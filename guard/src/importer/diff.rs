//! The difference between two versions of a configuration, without its secrets.

use counterproof_redaction::{Applied, RedactError, Redactor};
use similar::TextDiff;

use super::config_tree::{Language, Node, NodeValue};
use super::text_edits::TextEdits;
use super::wrap::parse;
use crate::secrets::{MASK, redactor};

/// Objects whose values may be secrets.
const SECRET_OBJECTS: [&str; 3] = ["env", "headers", "http_headers"];

/// Returns a unified difference. Values of variables and headers, and keys of known formats, are masked.
pub(super) fn unified(name: &str, language: Language, old: &str, new: &str) -> Result<String, RedactError> {
    let redactor = redactor([])?;
    let (old, new) = (masked(language, old, &redactor), masked(language, new, &redactor));
    let diff = TextDiff::from_lines(&old, &new);
    Ok(diff.unified_diff().context_radius(3).header(name, name).to_string())
}

fn masked(language: Language, text: &str, redactor: &Redactor) -> String {
    let mut edits = TextEdits::new(text, language);
    if let Ok(root) = parse(text, language) {
        mask_values(&root, false, &mut edits);
    }
    redactor.text(&edits.apply(), &mut Applied::default())
}

fn mask_values(node: &Node, is_secret: bool, edits: &mut TextEdits<'_>) {
    match &node.value {
        NodeValue::Object(object) => {
            for property in &object.properties {
                let is_secret = is_secret || SECRET_OBJECTS.contains(&property.name.as_str());
                mask_values(&property.value, is_secret, edits);
            }
        }
        NodeValue::List(items) => items.iter().for_each(|item| mask_values(item, is_secret, edits)),
        NodeValue::Text(text) if is_secret && !text.is_empty() => {
            let mask = edits.quote(MASK);
            edits.replace(node.span.clone(), mask);
        }
        NodeValue::Text(_) | NodeValue::Bool(_) | NodeValue::Other => {}
    }
}
