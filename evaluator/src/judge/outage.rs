//! Outages that look like answers: a provider that is out of quota or overloaded often sends its message as a normal answer. Such an
//! answer is not one of the agent, so that it counts as not answered.
//!
//! Found are only short texts without what the baseline always does. A long text, or one that differs in every case, is judged as an
//! answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use counterproof_artifact::{Content, EventBody};
use serde::{Deserialize, Serialize};

use crate::grounding::Coverage;
use crate::load::LoadedAnswer;
use crate::values::text_hash;

/// Cases with the same text from which on chance does not explain it.
pub(crate) const CASES: usize = 3;

/// Characters of the longest text: more than the messages of providers have, also if a program wraps them in JSON.
const SHORT: usize = 500;

/// Words of the messages that providers of models send when they refuse a request for load or for money.
const PHRASES: [&str; 30] = [
    "quota exceeded",
    "exceeded your current quota",
    "exceeded your quota",
    "exceeded its quota",
    "out of quota",
    "insufficient_quota",
    "insufficient quota",
    "rate limit",
    "rate_limit",
    "ratelimit",
    "rate-limit",
    "too many requests",
    "usage limit",
    "session limit",
    "weekly limit",
    "hit your limit",
    "reached your limit",
    "request limit",
    "spending limit",
    "overloaded",
    "over capacity",
    "at capacity",
    "resource exhausted",
    "resource_exhausted",
    "resource has been exhausted",
    "credit balance is too low",
    "out of credits",
    "insufficient credits",
    "billing hard limit",
    "service unavailable",
];

/// The features of an answer by which an outage is recognised.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AnswerFeatures {
    /// `None` if the text is long.
    text: Option<ShortText>,
    /// The tools that it called.
    tools: BTreeSet<u64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct ShortText {
    hash: u64,
    has_phrase: bool,
}

impl AnswerFeatures {
    pub(crate) fn new(loaded: &LoadedAnswer) -> Self {
        let calls = loaded.answer.events.iter().filter_map(|event| match &event.body {
            EventBody::ToolCall(call) => Some(text_hash(&call.tool)),
            EventBody::Retrieval(_) => Some(text_hash("a retrieval")),
            _ => None,
        });
        // Agents that execute nothing only propose.
        let actions = loaded.answer.proposed_actions.iter().map(|action| text_hash(&action.tool_name));
        Self { text: ShortText::new(&text_of(loaded)), tools: calls.chain(actions).collect() }
    }
}

impl ShortText {
    fn new(text: &str) -> Option<Self> {
        if text.chars().nth(SHORT).is_some() {
            return None;
        }
        let lower = text.to_lowercase();
        let has_phrase = PHRASES.iter().any(|phrase| lower.contains(phrase));
        // Messages of a provider name the time or a request, which differs in each. Other texts with other numbers differ.
        let word =
            |word: &str| if has_phrase && word.contains(|c: char| c.is_ascii_digit()) { "#" } else { word }.to_owned();
        let words: Vec<_> = lower.split_whitespace().map(word).collect();
        Some(Self { hash: text_hash(&words.join(" ")), has_phrase })
    }
}

/// The text of an answer: an object as JSON.
pub(crate) fn text_of(loaded: &LoadedAnswer) -> String {
    match &loaded.answer.final_output.content {
        Content::Text(text) => text.trim().to_owned(),
        // Serialising a map of JSON values cannot fail.
        Content::Json(fields) => serde_json::to_string(fields).unwrap_or_default(),
    }
}

/// An answer of new that may be an outage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    hash: u64,
    /// Whether the answer alone shows it: it has a phrase, and nothing of what the baseline always does.
    is_sufficient: bool,
}

impl Candidate {
    /// `baseline` has the answers of all runs of the baseline to the case.
    pub(crate) fn new(baseline: &[&AnswerFeatures], new: &AnswerFeatures) -> Option<Self> {
        let ShortText { hash, has_phrase } = new.text?;
        let always =
            baseline.iter().map(|answer| answer.tools.clone()).reduce(|all, tools| &all & &tools).unwrap_or_default();
        let always_calls = !baseline.is_empty() && baseline.iter().all(|answer| !answer.tools.is_empty());
        let lacks_calls = !always.is_subset(&new.tools) || always_calls && new.tools.is_empty();
        let is_sufficient = has_phrase && always_calls && new.tools.is_empty();
        (has_phrase || lacks_calls).then_some(Self { hash, is_sufficient })
    }
}

/// The short texts of all cases. Threads can share it; the result does not depend on the order of the cases.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ShortTexts {
    known: Mutex<KnownTexts>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct KnownTexts {
    baseline: BTreeSet<u64>,
    /// For each candidate of new, its cases.
    new: BTreeMap<u64, BTreeSet<usize>>,
}

/// Whether an answer is an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutageDecision {
    Outage,
    Answer,
    /// The remaining cases decide.
    Undecided,
}

impl ShortTexts {
    /// Adds what another shard of the comparison noted.
    pub(crate) fn merge(&self, other: Self) {
        let other = other.known.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.baseline.extend(other.baseline);
        for (text, cases) in other.new {
            known.new.entry(text).or_default().extend(cases);
        }
    }

    pub(crate) fn note_baseline(&self, answer: &AnswerFeatures) {
        if let Some(text) = answer.text {
            self.known.lock().unwrap_or_else(PoisonError::into_inner).baseline.insert(text.hash);
        }
    }

    pub(crate) fn note_new(&self, case: usize, candidate: Candidate) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.new.entry(candidate.hash).or_default().insert(case);
    }

    /// Decides on a candidate. `coverage` states which cases were noted.
    pub(crate) fn decide(&self, candidate: Candidate, coverage: Coverage) -> OutageDecision {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let cases = known.new.get(&candidate.hash).map_or(0, BTreeSet::len);
        match coverage {
            Coverage::Partial => OutageDecision::Undecided,
            Coverage::Complete if known.baseline.contains(&candidate.hash) => OutageDecision::Answer,
            Coverage::Complete if candidate.is_sufficient || cases >= CASES => OutageDecision::Outage,
            Coverage::Complete => OutageDecision::Answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, tools: &[&str]) -> AnswerFeatures {
        AnswerFeatures { text: ShortText::new(text), tools: tools.iter().map(|tool| text_hash(tool)).collect() }
    }

    /// Decides on the same answer in several cases.
    fn decide(cases: usize, baseline: &[&AnswerFeatures], new: &AnswerFeatures) -> OutageDecision {
        let Some(candidate) = Candidate::new(baseline, new) else { return OutageDecision::Answer };
        let texts = ShortTexts::default();
        assert_eq!(texts.decide(candidate, Coverage::Partial), OutageDecision::Undecided);
        (0..cases).for_each(|case| texts.note_new(case, candidate));
        for answer in baseline {
            texts.note_baseline(answer);
        }
        texts.decide(candidate, Coverage::Complete)
    }

    #[test]
    fn a_text_is_an_outage_by_its_words_or_in_three_cases_without_the_usual_calls() {
        use OutageDecision::{Answer, Outage};
        let quota = "You exceeded your current quota. Request req-1234.";
        let usual = answer("Your order is on its way.", &["get_order"]);
        for (cases, text, tools, expected) in [
            (1, quota, &[][..], Outage),
            (1, quota, &["get_order"][..], Answer),
            (3, quota, &["get_order"][..], Outage),
            (2, "Sorry, an error occurred.", &[][..], Answer),
            (3, "Sorry, an error occurred.", &[][..], Outage),
            (3, "Thank you, all is done.", &["get_order"][..], Answer),
        ] {
            assert_eq!(decide(cases, &[&usual], &answer(text, tools)), expected, "{cases} × {text} {tools:?}");
        }
        assert_eq!(decide(3, &[&usual, &answer(quota, &[])], &answer(quota, &[])), Answer, "the baseline says it too");
        assert_eq!(decide(3, &[&usual], &answer(&"quota exceeded ".repeat(40), &[])), Answer, "not short");
    }

    #[test]
    fn messages_of_a_provider_are_equal_whatever_request_they_name() {
        let hash = |text: &str| ShortText::new(text).unwrap().hash;
        assert_eq!(hash("Rate limit reached: try again in 20s"), hash("rate limit  reached: try again in 7s"));
        assert_ne!(hash("You get 20 back."), hash("You get 7 back."));
    }
}
