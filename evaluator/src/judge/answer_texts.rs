//! Faults in the texts of an agent that are found without a model: another language, an amount without a source, a cut answer, and a
//! high-risk call without the usual confirmation question. They are review items and count in the severity. The gate counts them
//! by default only for an agent that is declared or shown deterministic. The text of another agent can differ in these ways and be
//! right.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{Content, EventBody, RiskLevel, Side};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ReasonCode;
use super::language::{Language, language};
use super::outcomes::Outcomes;
use super::stated_numbers::{is_sum_or_difference, received_numbers, stated_amounts};
use crate::grounding::Coverage;
use crate::load::LoadedAnswer;
use crate::load::case_input::{self, CaseInput, Speaker};
use crate::values::{text, text_hash};

pub(super) const OUTPUT: &str = "/final_output/content";

/// Most amounts that a message names.
pub(super) const NAMED: usize = 3;

/// Fewest words of a last line that is a sentence, and not a heading, an item of a list or a name.
const SENTENCE: usize = 4;

/// A fault in the texts of new.
#[derive(Debug, Clone)]
pub(crate) struct TextFinding {
    pub(crate) code: ReasonCode,
    pub(crate) message: String,
    pub(crate) pointers: Vec<SidePointer>,
}

/// The features of the texts of one answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AnswerStyle {
    language: Option<Language>,
    is_cut: bool,
    /// The amounts that the agent states anywhere, in cents.
    amounts: BTreeSet<u64>,
    high_risk: Vec<HighRiskCall>,
}

/// A high-risk call that did not fail.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct HighRiskCall {
    tool: u64,
    event: usize,
    /// Whether the agent asked the user something since the high-risk call before.
    is_asked: bool,
}

impl AnswerStyle {
    pub(crate) fn new(loaded: &LoadedAnswer) -> Self {
        let output = output(loaded);
        let mut amounts = BTreeSet::new();
        let mut add = |text: &str| amounts.extend(stated_amounts(text).map(|(cents, _)| cents));
        add(&output);
        each_message(loaded, |_, text| add(text));
        Self { language: language(&output), is_cut: is_cut(loaded), amounts, high_risk: high_risk_calls(loaded) }
    }
}

/// Whether numbers outside of texts are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    Kept,
    LeftOut,
}

/// The prose of the output: a text, or the texts of an object.
pub(super) fn output(loaded: &LoadedAnswer) -> String {
    output_with(Numbers::LeftOut, loaded)
}

/// The texts of the output.
pub(super) fn output_with(numbers: Numbers, loaded: &LoadedAnswer) -> String {
    fn add(texts: &mut Vec<String>, numbers: Numbers, value: &Value) {
        match value {
            Value::String(text) => texts.push(text.clone()),
            Value::Number(number) if numbers == Numbers::Kept => texts.push(number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| add(texts, numbers, item)),
            Value::Object(fields) => fields.values().for_each(|field| add(texts, numbers, field)),
            _ => {}
        }
    }
    match &loaded.answer.final_output.content {
        Content::Text(text) => text.clone(),
        Content::Json(fields) => {
            let mut texts = Vec::new();
            fields.values().for_each(|field| add(&mut texts, numbers, field));
            texts.join("\n")
        }
    }
}

/// Calls `take` with each message of the agent and the index of its event.
pub(super) fn each_message(loaded: &LoadedAnswer, mut take: impl FnMut(usize, &str)) {
    for (index, event) in loaded.answer.events.iter().enumerate() {
        if case_input::speaker(event) == Some(Speaker::Assistant)
            && let EventBody::Unknown { fields, .. } = &event.body
            && let Some(text) = case_input::text_of(fields)
        {
            take(index, text);
        }
    }
}

fn high_risk_calls(loaded: &LoadedAnswer) -> Vec<HighRiskCall> {
    let events = &loaded.answer.events;
    let is_high = |call: &counterproof_artifact::ToolCall| {
        let of_action =
            loaded.answer.proposed_actions.iter().find(|action| Some(&action.action_id) == call.action_id.as_ref());
        [call.risk_level, of_action.map(|action| action.risk_level)].contains(&Some(RiskLevel::High))
    };
    let (mut asking, mut messages) = (BTreeSet::new(), 0);
    each_message(loaded, |index, text| {
        messages += 1;
        if text.contains(['?', '？', '؟']) {
            asking.insert(index);
        }
    });
    // Without messages, nothing is known of questions. Most artifacts have none.
    if messages == 0 {
        return Vec::new();
    }
    let outcomes = Outcomes::new(loaded);
    let (mut calls, mut is_asked) = (Vec::new(), false);
    for (index, event) in events.iter().enumerate() {
        is_asked |= asking.contains(&index);
        if let Some(call) = event.tool_call().filter(|call| is_high(call) && !outcomes.call_failed(call)) {
            // One question may cover several calls, so it is not used up by the first.
            calls.push(HighRiskCall { tool: text_hash(&call.tool), event: index, is_asked });
        }
    }
    calls
}

fn is_cut(loaded: &LoadedAnswer) -> bool {
    // An object that is cut would not be an object.
    matches!(&loaded.answer.final_output.content, Content::Text(text) if ends_mid_sentence(text))
}

/// Whether a text ends within a sentence: its last line is prose and has no end.
fn ends_mid_sentence(text: &str) -> bool {
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    let is_prose = last.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count() >= SENTENCE;
    is_prose && last.ends_with(|c: char| c.is_alphanumeric() || ",;:-–—(/$€£".contains(c))
}

/// Whether any answer of the baseline ends within a sentence: then this is its style. Threads can share it; the result does not
/// depend on the order of the cases.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct BaselineEndings(AtomicBool);

impl BaselineEndings {
    pub(crate) fn note(&self, baseline: &LoadedAnswer) {
        self.0.fetch_or(is_cut(baseline), Ordering::Relaxed);
    }

    pub(crate) fn note_style(&self, baseline: &AnswerStyle) {
        self.0.fetch_or(baseline.is_cut, Ordering::Relaxed);
    }

    /// Adds what another shard of the comparison noted.
    pub(crate) fn merge(&self, other: &Self) {
        self.0.fetch_or(other.0.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    fn are_mid_sentence(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the texts of new are compared with.
pub(crate) struct TextInput<'a> {
    /// The shown answer of new, and its input.
    pub(crate) new: &'a LoadedAnswer,
    pub(crate) input: &'a CaseInput<'a>,
    pub(crate) shown: &'a AnswerStyle,
    /// All answers of each side.
    pub(crate) baseline_runs: &'a [&'a AnswerStyle],
    pub(crate) new_runs: &'a [&'a AnswerStyle],
    pub(crate) endings: &'a BaselineEndings,
    /// Which cases are noted in `endings`.
    pub(crate) coverage: Coverage,
}

/// Finds faults in the texts of new. The flag is true if the remaining cases may excuse one.
pub(crate) fn find(input: &TextInput<'_>) -> (Vec<TextFinding>, bool) {
    let mut found = Vec::new();
    if input.baseline_runs.is_empty() {
        return (found, false);
    }
    let mut undecided = false;
    found.extend(skipped_confirmation(input));
    found.extend(unsupported_amount(input));
    found.extend(other_language(input));
    if let Some(cut) = cut_answer(input) {
        undecided = input.coverage == Coverage::Partial;
        found.push(cut);
    }
    (found, undecided)
}

/// The finding if the shown run, or else any run of new, has the fault.
fn in_runs(
    input: &TextInput<'_>,
    code: ReasonCode,
    message: &str,
    pointer: String,
    is_faulty: impl Fn(&AnswerStyle) -> bool,
) -> Option<TextFinding> {
    let faulty = input.new_runs.iter().filter(|style| is_faulty(style)).count();
    let pointers = if is_faulty(input.shown) { vec![SidePointer::new(Side::New, pointer)] } else { Vec::new() };
    let runs = match input.new_runs.len() {
        0 | 1 => String::new(),
        runs => format!(", in {faulty} of {runs} answers"),
    };
    (faulty > 0).then(|| TextFinding { code, message: format!("{message}{runs}"), pointers })
}

fn other_language(input: &TextInput<'_>) -> Option<TextFinding> {
    let usual: Vec<Language> = input.baseline_runs.iter().map(|style| style.language).collect::<Option<_>>()?;
    let is_other = |style: &AnswerStyle| style.language.is_some_and(|language| !usual.contains(&language));
    let other =
        [input.shown].into_iter().chain(input.new_runs.iter().copied()).find(|style| is_other(style))?.language?;
    let message = format!("the answer is in {}, baseline answers in {}", other.name(), usual.first()?.name());
    in_runs(input, ReasonCode::AnswerLanguage, &message, OUTPUT.to_owned(), is_other)
}

fn cut_answer(input: &TextInput<'_>) -> Option<TextFinding> {
    if input.baseline_runs.iter().any(|style| style.is_cut) || input.endings.are_mid_sentence() {
        return None;
    }
    let output = output(input.new);
    let last: Vec<char> = output.trim_end().chars().rev().take(30).collect();
    let last: String = last.into_iter().rev().collect();
    let message = if input.shown.is_cut {
        format!("the answer ends within a sentence: “…{}”", text::one_line(&last, 40))
    } else {
        "the answer ends within a sentence".to_owned()
    };
    in_runs(input, ReasonCode::AnswerCut, &message, OUTPUT.to_owned(), |style| style.is_cut)
}

fn skipped_confirmation(input: &TextInput<'_>) -> Option<TextFinding> {
    let always_asks = |tool: u64| {
        input.baseline_runs.iter().all(|style| {
            let mut calls = style.high_risk.iter().filter(|call| call.tool == tool).peekable();
            calls.peek().is_some() && calls.all(|call| call.is_asked)
        })
    };
    let skips = |call: &&HighRiskCall| !call.is_asked && always_asks(call.tool);
    let event = input.shown.high_risk.iter().find(skips).map_or(0, |call| call.event);
    let tool = input.new.answer.events.get(event).and_then(|event| event.tool_call());
    let tool = tool.map_or_else(|| "a high-risk call".to_owned(), |call| text::one_line(&call.tool, 60));
    let message = format!("{tool} without a question to the user, which baseline always asks before");
    let is_faulty = |style: &AnswerStyle| style.high_risk.iter().any(|call| skips(&call));
    in_runs(input, ReasonCode::ConfirmationSkipped, &message, format!("/events/{event}"), is_faulty)
}

fn unsupported_amount(input: &TextInput<'_>) -> Option<TextFinding> {
    let output = output(input.new);
    let is_usual = |cents: u64| input.baseline_runs.iter().any(|style| style.amounts.contains(&cents));
    let mut stated: Vec<_> = stated_amounts(&output).filter(|(cents, _)| *cents > 0 && !is_usual(*cents)).collect();
    // The results are read only for an amount that no baseline run states.
    if stated.is_empty() || input.new.payloads.first_unread().is_some() {
        return None;
    }
    let known = received_numbers(input.new, input.input);
    stated.retain(|(cents, _)| !known.contains(cents) && !is_sum_or_difference(&known, *cents));
    stated.dedup();
    let names: Vec<_> = stated.iter().take(NAMED).map(|(_, shown)| shown.as_str()).collect();
    let message = format!(
        "the answer states {}, which is in no result and no message of the user, and not the sum or difference of two such numbers",
        text::list(&names)
    );
    let pointers = vec![SidePointer::new(Side::New, OUTPUT)];
    (!names.is_empty()).then_some(TextFinding { code: ReasonCode::UnsupportedAmount, message, pointers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_cut_if_its_last_line_is_prose_without_an_end() {
        for text in
            ["Your refund of $50 has been proc", "I have cancelled the order and", "Your order has these items:"]
        {
            assert!(ends_mid_sentence(text), "{text}");
        }
        for text in [
            "",
            "Done",
            "All is done.",
            "Is that all right?",
            "Best regards,\nYour team",
            "- 2 shirts",
            "(see below.)",
            "终于完成了。",
        ] {
            assert!(!ends_mid_sentence(text), "{text}");
        }
    }
}
