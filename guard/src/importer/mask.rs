//! Masks the secrets of a configuration, for people who read it.

use std::ops::Range;

use counterproof_redaction::{Applied, Redactor, SHORTEST, argument_secrets, is_secret_name};

use super::Client;
use super::config_tree::{Language, Layout, Node, NodeValue};
use super::servers::servers;
use super::text_edits::TextEdits;
use super::wrap::parse;
use crate::secrets::MASK;

/// Objects whose values may be secrets.
const SECRET_OBJECTS: [&str; 3] = ["env", "headers", "http_headers"];

/// Masks the entries of servers: the values of variables, headers and fields with names of secrets, arguments that look like secrets,
/// and keys of known formats. The names of servers stay.
pub(super) fn masked(client: Client, language: Language, text: &str, redactor: &Redactor) -> String {
    let mut edits = TextEdits::new(text, language);
    if let Ok(root) = parse(text, language) {
        let servers = root.as_object().and_then(|root| servers(client, root).ok()).unwrap_or_default();
        for server in servers {
            mask_values(&server.entry.value, Meaning::Unknown, &mut edits);
        }
    }
    redactor.text(&edits.apply(), &mut Applied::default())
}

/// What the names around a value say about it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Secret,
    /// It may be anything.
    Unknown,
}

fn mask_values(node: &Node, meaning: Meaning, edits: &mut TextEdits<'_>) {
    match &node.value {
        NodeValue::Object(object) => {
            if object.layout == Layout::Json {
                let parts = object.properties.iter().flat_map(|it| [it.name_span.clone(), it.value.span.clone()]);
                mask_comments_between(node, parts, edits);
            }
            for property in &object.properties {
                let name = property.name.as_str();
                let is_secret = SECRET_OBJECTS.contains(&name) || is_secret_name(name);
                mask_values(&property.value, if is_secret { Meaning::Secret } else { meaning }, edits);
            }
        }
        NodeValue::List(items) => {
            mask_comments_between(node, items.iter().map(|item| item.span.clone()), edits);
            if meaning == Meaning::Secret || node.as_texts().is_none() {
                return items.iter().for_each(|item| mask_values(item, meaning, edits));
            }
            // An option and its value are two arguments.
            mask_arguments(items, edits);
        }
        NodeValue::Text(text) if text.is_empty() => {}
        NodeValue::Text(_) | NodeValue::Bool(_) | NodeValue::Other if meaning == Meaning::Secret => {
            let mask = edits.quote(MASK);
            edits.replace(node.span.clone(), mask);
        }
        NodeValue::Text(_) => mask_arguments(std::slice::from_ref(node), edits),
        NodeValue::Bool(_) | NodeValue::Other => {}
    }
}

/// Masks the comments between the parts of a value, which may be former parts.
fn mask_comments_between(node: &Node, parts: impl Iterator<Item = Range<usize>>, edits: &mut TextEdits<'_>) {
    let mut start = node.span.start;
    for next in parts.chain(std::iter::once(node.span.end..node.span.end)) {
        edits.mask_comments(start..next.start, MASK);
        start = next.end;
    }
}

/// Masks the parts of texts that look like secrets.
fn mask_arguments(texts: &[Node], edits: &mut TextEdits<'_>) {
    let secrets = argument_secrets(texts.iter().filter_map(Node::as_text));
    for node in texts {
        let Some(text) = node.as_text() else { continue };
        let own = argument_secrets(std::iter::once(text));
        // A short secret, such as a user name, occurs in unrelated arguments.
        let is_here = |secret: &&String| secret.len() >= SHORTEST || text == *secret || own.contains(secret);
        let found: Vec<&str> = secrets.iter().filter(is_here).map(String::as_str).collect();
        let masked = without(text, &found);
        if masked != text {
            let masked = edits.quote(&masked);
            edits.replace(node.span.clone(), masked);
        }
    }
}

/// Replaces the secrets in a text. Of secrets that start at the same place, the longest is replaced.
fn without(text: &str, secrets: &[&str]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let here = secrets.iter().filter(|secret| rest.starts_with(**secret)).map(|secret| secret.len()).max();
        match here {
            Some(_) => masked.push_str(MASK),
            None => masked.push(character),
        }
        rest = &rest[here.unwrap_or_else(|| character.len_utf8())..];
    }
    masked
}
