//! Secrets in what the agent states or passes to tools: keys of the shapes that the runner redacts, and what it has redacted.

use std::collections::HashSet;
use std::sync::LazyLock;

use counterproof_redaction::{KeyFinder, MASK};

use super::case::{Case, OwnedPlace};
use super::signal::SignalSet;
use super::texts::{self, AgentText};
use crate::judge::ReasonCode;
use crate::load::LoadedAnswer;
use crate::values::text;

/// Characters of a secret that a message shows: enough to recognise its kind.
const SHOWN: usize = 4;

/// A key with fewer distinct characters is a placeholder, such as `sk-xxxxxxxxxxxxxxxxxxxxxxxx`.
const DISTINCT: usize = 8;

static FINDER: LazyLock<Option<KeyFinder>> = LazyLock::new(|| KeyFinder::new().ok());

struct Secret {
    /// Its format, in words. For a redacted one, the formats that were redacted in the answer.
    format: String,
    /// `None` if it was redacted.
    value: Option<String>,
    place: OwnedPlace,
    field: String,
    pointer: String,
}

impl Secret {
    fn new(format: String, value: Option<&str>, text: AgentText<'_>) -> Self {
        Self {
            format,
            value: value.map(str::to_owned),
            place: text.place.into(),
            field: text.field().to_owned(),
            pointer: text.pointer.to_owned(),
        }
    }

    /// What is the same in two occurrences of one secret.
    fn identity(&self) -> String {
        // A redacted secret is known by its place only.
        let place = || format!("{MASK} {} in {}", self.format, self.place.name(&self.field));
        self.value.clone().unwrap_or_else(place)
    }

    fn message(&self) -> String {
        let place = self.place.name(&self.field);
        match &self.value {
            Some(value) => {
                let start: String = value.chars().take(SHOWN).collect();
                let length = value.chars().count();
                format!("{place} contains a secret: {} {start}… of {length} characters", self.format)
            }
            None => format!("{place} contained a secret, which is redacted: {}", self.format),
        }
    }
}

/// Finds secrets of new.
pub(super) fn find(case: &Case<'_>, signals: &mut SignalSet) {
    // The baseline has the same signal if it has the same secret, or another of its kind in the same place, such as the
    // token of a session.
    let new = secrets_of(case.input.new);
    if new.is_empty() {
        return;
    }
    let baseline = case.input.baseline.map(secrets_of).unwrap_or_default();
    let known: HashSet<_> = baseline.iter().map(Secret::identity).collect();
    // A session token differs in every run; the same kind of secret in the same place is not news.
    let places: HashSet<_> = baseline.iter().map(|secret| (&secret.format, &secret.place, &secret.field)).collect();
    for secret in &new {
        let identity = secret.identity();
        let in_baseline = known.contains(&identity) || places.contains(&(&secret.format, &secret.place, &secret.field));
        signals.add(ReasonCode::SignalSecret, &identity, &secret.pointer, || (secret.message(), in_baseline));
    }
}

pub(super) fn has_any(answer: &LoadedAnswer) -> bool {
    !secrets_of(answer).is_empty()
}

fn secrets_of(loaded: &LoadedAnswer) -> Vec<Secret> {
    let mut found = Vec::new();
    let Some(finder) = FINDER.as_ref() else { return found };
    let redacted = redacted_formats(loaded);
    let mut add = |text: AgentText<'_>| {
        for key in finder.find(text.text) {
            let Some(value) = text.text.get(key.range).filter(|value| !is_placeholder(value)) else { continue };
            found.push(Secret::new(words(key.name), Some(value), text));
        }
        if let Some(formats) = redacted.as_ref().filter(|_| text.text.contains(MASK)) {
            found.push(Secret::new(formats.clone(), None, text));
        }
    };
    texts::each_stated(loaded, &mut add);
    texts::each_passed(loaded, &mut add);
    found
}

/// What the runner redacted anywhere in an answer, in words; `None` if it redacted nothing.
fn redacted_formats(loaded: &LoadedAnswer) -> Option<String> {
    // Which of several rules redacted a text is not recorded.
    let names = loaded.answer.final_output.redactions_applied.as_ref().filter(|names| !names.is_empty())?;
    Some(names.iter().map(|name| text::one_line(&words(name), 40)).collect::<Vec<_>>().join(" or "))
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

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
