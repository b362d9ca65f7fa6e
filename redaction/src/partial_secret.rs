//! Secrets cut off at the end of a truncated text: the rules for complete secrets do not match their first part.

use regex::bytes::Regex;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use crate::{CONFIGURED, KEY_PATTERNS};

/// Finds the first part of a secret at the end of a text.
#[derive(Debug, Clone)]
pub(super) struct PartialSecret {
    /// Automaton of the forms of the values. It is alive at the end of the text while the input can still become a match.
    values: Option<DFA>,
    /// The longest form of a value, in bytes.
    longest: usize,
    /// The patterns of keys, each anchored to the end of the text.
    keys: Vec<(&'static str, Regex)>,
}

impl PartialSecret {
    /// Compiles the forms of all values with `compile`. Returns `None` where the result is too large.
    pub(super) fn new(
        forms: &[String],
        longest: usize,
        size_limit: usize,
        compile: impl Fn(&str) -> Option<Regex>,
    ) -> Option<Self> {
        let values = if forms.is_empty() {
            None
        } else {
            // All matches, not only the leftmost: a short complete value must not hide the start of a longer one.
            let config = DFA::config().match_kind(MatchKind::All).skip_cache_capacity_check(true);
            let dfa = DFA::builder()
                .configure(config)
                .thompson(thompson::Config::new().utf8(false).nfa_size_limit(Some(size_limit)))
                .syntax(syntax::Config::new().unicode(false).utf8(false))
                .build_many(forms)
                .ok()?;
            Some(dfa)
        };
        let keys = KEY_PATTERNS.iter().filter_map(|pattern| Some((pattern.name, pattern.truncated?)));
        let keys = keys.map(|(name, source)| Some((name, compile(&format!("(?:{source})\\z"))?)));
        Some(Self { values, longest, keys: keys.collect::<Option<_>>()? })
    }

    /// Returns the start of a partial secret at the end of the text, and the name of its rule.
    pub(super) fn find(&self, text: &[u8]) -> Option<(usize, &'static str)> {
        let value = self.value(text).map(|start| (start, CONFIGURED));
        let keys = self.keys.iter().filter_map(|(name, key)| {
            let found = key.captures(text)?;
            Some((found.get(1).or(found.get(0))?.start(), *name))
        });
        value.into_iter().chain(keys).min_by_key(|(start, _)| *start)
    }

    fn value(&self, text: &[u8]) -> Option<usize> {
        let dfa = self.values.as_ref()?;
        let mut cache = dfa.create_cache();
        // A partial value is shorter than the longest form, so earlier starts need no search.
        let first = text.len().saturating_sub(self.longest);
        (first..text.len()).find(|&start| may_continue(dfa, &mut cache, &text[start..]))
    }
}

/// True where the text is the start of a match, and where the automaton gives up: to mask too much is safer than to mask too little.
fn may_continue(dfa: &DFA, cache: &mut Cache, text: &[u8]) -> bool {
    let Ok(mut state) = dfa.start_state_forward(cache, &Input::new(text).anchored(Anchored::Yes)) else { return true };
    for &byte in text {
        let Ok(next) = dfa.next_state(cache, state, byte) else { return true };
        if next.is_dead() {
            return false;
        }
        state = next;
    }
    true
}
