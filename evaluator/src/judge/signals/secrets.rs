//! Secrets: keys of the shapes that the runner redacts, in what the agent states or passes to tools. What is redacted already
//! is no signal.

use std::collections::HashSet;
use std::sync::LazyLock;

use counterproof_redaction::KeyFinder;

use super::case::{Case, OwnedPlace};
use super::signal::{SignalKind, SignalSet};
use super::texts::{self, AgentText};
use crate::load::LoadedAnswer;

/// Characters of a secret that a message shows: enough to recognise its kind.
const SHOWN: usize = 4;

/// A key with fewer distinct characters is a placeholder, such as `sk-xxxxxxxxxxxxxxxxxxxxxxxx`.
const DISTINCT: usize = 8;

static FINDER: LazyLock<Option<KeyFinder>> = LazyLock::new(|| KeyFinder::new().ok());

/// A secret of one side.
struct Secret {
    pattern: &'static str,
    value: String,
    place: OwnedPlace,
    field: String,
    pointer: String,
}

/// Finds secrets of new. The baseline has the same signal where it has the same secret, or another of its kind in the same
/// place, such as the token of a session.
pub(super) fn find(case: &Case<'_>, signals: &mut SignalSet) {
    let new = secrets_of(case.input.new);
    if new.is_empty() {
        return;
    }
    let baseline = case.input.baseline.map(secrets_of).unwrap_or_default();
    let values: HashSet<_> = baseline.iter().map(|secret| secret.value.as_str()).collect();
    let places: HashSet<_> = baseline.iter().map(|secret| (secret.pattern, &secret.place, &secret.field)).collect();
    for secret in &new {
        let in_baseline =
            values.contains(secret.value.as_str()) || places.contains(&(secret.pattern, &secret.place, &secret.field));
        signals.add(SignalKind::Secret, &secret.value, &secret.pointer, || {
            let start: String = secret.value.chars().take(SHOWN).collect();
            let length = secret.value.chars().count();
            let (place, kind) = (secret.place.name(&secret.field), secret.pattern.replace('_', " "));
            (format!("{place} contains a secret: {kind} {start}… of {length} characters"), in_baseline)
        });
    }
}

/// True if an answer has a secret.
pub(super) fn has_any(answer: &LoadedAnswer) -> bool {
    !secrets_of(answer).is_empty()
}

fn secrets_of(loaded: &LoadedAnswer) -> Vec<Secret> {
    let mut found = Vec::new();
    let Some(finder) = FINDER.as_ref() else { return found };
    let mut add = |text: AgentText<'_>| {
        for key in finder.find(text.text) {
            let Some(value) = text.text.get(key.range).filter(|value| !is_placeholder(value)) else { continue };
            found.push(Secret {
                pattern: key.name,
                value: value.to_owned(),
                place: text.place.into(),
                field: text.field().to_owned(),
                pointer: text.pointer.to_owned(),
            });
        }
    };
    texts::each_stated(loaded, &mut add);
    texts::each_passed(loaded, &mut add);
    found
}

/// True for keys in documentation.
fn is_placeholder(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    let distinct: HashSet<u8> = lower.bytes().collect();
    // Passwords in URLs are short, so only their words count.
    let words = ["example", "placeholder", "your_", "your-", "xxxx", "redacted", "password", "<", "${"];
    words.iter().any(|word| lower.contains(word)) || key.len() >= 16 && distinct.len() < DISTINCT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_compile() {
        assert!(FINDER.is_some());
    }

    #[test]
    fn keys_in_documentation_are_placeholders() {
        for key in ["sk-xxxxxxxxxxxxxxxxxxxxxxxx", "AKIAIOSFODNN7EXAMPLE", "ghp_000000000000000000000000000000000000"] {
            assert!(is_placeholder(key), "{key}");
        }
        assert!(!is_placeholder("ghp_0123456789abcdefghijklmnopqrstuvwxyz"));
        assert!(!is_placeholder("hunter22"));
    }
}
