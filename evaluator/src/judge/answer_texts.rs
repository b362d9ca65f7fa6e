//! Faults in the texts of an agent that need no model to find: another language, an amount from nowhere, a cut answer, and a
//! confirmation question that is no longer asked. They are shown to a person and count in the severity. The gate uses them only for
//! an agent that always does the same, and finds more of them there: what such an agent received was right for the answer of
//! baseline, so that an answer of new needs no other numbers. All other agents can differ in these ways and be right.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{Content, EventBody, RiskLevel, Side};
use serde_json::{Map, Value};

use super::ReasonCode;
use super::language::{Language, language, other_language};
use super::outcomes::Outcomes;
use crate::grounding::Coverage;
use crate::load::LoadedAnswer;
use crate::load::case_input::{self, CaseInput, Speaker};
use crate::load::payload::Payload;
use crate::values::{text, text_hash};

const OUTPUT: &str = "/final_output/content";

/// Most amounts that a message names.
const NAMED: usize = 3;

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
#[derive(Debug, Clone)]
pub(crate) struct AnswerStyle {
    language: Option<Language>,
    is_cut: bool,
    /// The amounts that the agent states anywhere, in cents.
    amounts: BTreeSet<u64>,
    high_risk: Vec<HighRiskCall>,
}

/// A high-risk call that did not fail.
#[derive(Debug, Clone, Copy)]
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

/// The prose of the output: a text, or the texts of an object.
fn output(loaded: &LoadedAnswer) -> String {
    fn add(texts: &mut Vec<String>, value: &Value) {
        match value {
            Value::String(text) => texts.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| add(texts, item)),
            Value::Object(fields) => fields.values().for_each(|field| add(texts, field)),
            _ => {}
        }
    }
    match &loaded.answer.final_output.content {
        Content::Text(text) => text.clone(),
        Content::Json(fields) => {
            let mut texts = Vec::new();
            fields.values().for_each(|field| add(&mut texts, field));
            texts.join("\n")
        }
    }
}

/// Calls `take` with each message of the agent and the index of its event.
fn each_message(loaded: &LoadedAnswer, mut take: impl FnMut(usize, &str)) {
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
#[derive(Debug, Default)]
pub(crate) struct BaselineEndings(AtomicBool);

impl BaselineEndings {
    pub(crate) fn note(&self, baseline: &LoadedAnswer) {
        self.0.fetch_or(is_cut(baseline), Ordering::Relaxed);
    }

    pub(crate) fn note_style(&self, baseline: &AnswerStyle) {
        self.0.fetch_or(baseline.is_cut, Ordering::Relaxed);
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
    /// The shown answer of baseline, if the agent always does the same.
    pub(crate) certain: Option<&'a LoadedAnswer>,
    /// Whether results of the shown answers differ, so that other words may be right.
    pub(crate) results_differ: bool,
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
    found.extend(unusual_language(input));
    if let Some(cut) = cut_answer(input) {
        undecided = input.coverage == Coverage::Partial;
        found.push(cut);
    }
    if let Some(baseline) = input.certain {
        let more = [
            unsupported_number(input, baseline),
            refusal(input, baseline),
            translation(input, baseline),
            shortened(input, baseline),
        ];
        for finding in more.into_iter().flatten() {
            if !found.iter().any(|known| known.code == finding.code) {
                found.push(finding);
            }
        }
    }
    (found, undecided)
}

fn at_output(code: ReasonCode, message: String) -> TextFinding {
    TextFinding { code, message, pointers: vec![SidePointer::new(Side::New, OUTPUT)] }
}

/// The largest set of known numbers whose sums and differences support a number. Of more numbers, almost any number is one.
const SUMMED: usize = 48;

/// A number that nothing supports: the same request and the same results led baseline to an answer without it.
fn unsupported_number(input: &TextInput<'_>, baseline: &LoadedAnswer) -> Option<TextFinding> {
    if input.results_differ || input.new.payloads.first_unread().is_some() {
        return None;
    }
    let mut usual = BTreeSet::new();
    let mut note = |text: &str| usual.extend(numbers(text).map(|number| number.cents));
    note(&scalars(baseline));
    each_message(baseline, |_, text| note(text));
    let output = scalars(input.new);
    let mut stated: Vec<_> =
        numbers(&output).filter(|number| number.is_particular() && !usual.contains(&number.cents)).collect();
    if stated.is_empty() {
        return None;
    }
    let known = received_numbers(input.new, input.input);
    // A time and a rate are never computed.
    let is_sum =
        |number: &Number<'_>| known.len() <= SUMMED && !number.is_term() && is_sum_or_difference(&known, number.cents);
    stated.retain(|number| !known.contains(&number.cents) && !is_sum(number));
    let mut names: Vec<_> = stated.iter().map(|number| number.written).collect();
    names.dedup();
    names.truncate(NAMED);
    let message = format!(
        "the answer states {}, which is in nothing that the agent received, and not in the answer of baseline",
        text::list(&names)
    );
    (!names.is_empty()).then(|| at_output(ReasonCode::UnsupportedNumber, message))
}

/// The values of the output, numbers as well.
fn scalars(loaded: &LoadedAnswer) -> String {
    fn add(texts: &mut Vec<String>, value: &Value) {
        match value {
            Value::String(text) => texts.push(text.clone()),
            Value::Number(number) => texts.push(number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| add(texts, item)),
            Value::Object(fields) => fields.values().for_each(|field| add(texts, field)),
            Value::Bool(_) | Value::Null => {}
        }
    }
    match &loaded.answer.final_output.content {
        Content::Text(text) => text.clone(),
        Content::Json(fields) => {
            let mut texts = Vec::new();
            fields.values().for_each(|field| add(&mut texts, field));
            texts.join("\n")
        }
    }
}

/// What agents say when they do not do what they were asked.
const REFUSALS: [&str; 13] = [
    "i can't",
    "i cannot",
    "i can not",
    "i won't",
    "can't help",
    "cannot help",
    "can't assist",
    "cannot assist",
    "unable to",
    "not able to",
    "not allowed to",
    "not possible to",
    "must decline",
];

fn refusal(input: &TextInput<'_>, baseline: &LoadedAnswer) -> Option<TextFinding> {
    let [old, new] = [baseline, input.new].map(|loaded| output(loaded).to_lowercase().replace('’', "'"));
    let is_said = |text: &str| REFUSALS.into_iter().find(|phrase| text.contains(phrase));
    // A tool that fails on new can be why.
    let phrase = is_said(&new).filter(|_| !input.results_differ && is_said(&old).is_none())?;
    Some(at_output(ReasonCode::AnswerRefusal, format!("the answer refuses (“{phrase}”), which baseline does not")))
}

fn translation(input: &TextInput<'_>, baseline: &LoadedAnswer) -> Option<TextFinding> {
    let other = other_language(&output(baseline), &output(input.new))?;
    let message = format!("the answer is in {}, and that of baseline is not", other.name());
    Some(at_output(ReasonCode::AnswerLanguage, message))
}

/// An answer that is the start of baseline's, word for word. A question or a greeting at the end may be left out.
fn shortened(input: &TextInput<'_>, baseline: &LoadedAnswer) -> Option<TextFinding> {
    let [old, new] = [baseline, input.new].map(output);
    let (old, kept) = (old.trim(), new.trim().trim_end_matches('…').trim_end_matches("..."));
    let rest = old.strip_prefix(kept)?;
    let is_statement =
        |sentence: &str| sentence.contains(char::is_alphanumeric) && !sentence.trim_end().ends_with(['?', '!']);
    let lacks = rest.split_inclusive(['.', '?', '!']).any(is_statement);
    let message = match kept {
        "" => "the answer is empty".to_owned(),
        _ => format!("the answer ends before “{}”", text::one_line(rest.trim(), 60)),
    };
    lacks.then(|| at_output(ReasonCode::AnswerCut, message))
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

fn unusual_language(input: &TextInput<'_>) -> Option<TextFinding> {
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

fn is_sum_or_difference(known: &BTreeSet<u64>, cents: u64) -> bool {
    let by_two =
        |one: &u64| cents.checked_sub(*one).is_some_and(|rest| known.contains(&rest)) || known.contains(&(cents + one));
    known.iter().any(by_two)
}

/// All numbers that the agent received, in cents.
fn received_numbers(loaded: &LoadedAnswer, input: &CaseInput<'_>) -> BTreeSet<u64> {
    let mut known = BTreeSet::new();
    input.case_texts(|value| add_numbers(&mut known, value));
    input.request().into_iter().for_each(|value| add_numbers(&mut known, value));
    for (index, event) in loaded.answer.events.iter().enumerate() {
        match &event.body {
            EventBody::ToolResult(_) | EventBody::Retrieval(_) => match loaded.payload(index) {
                Some(Payload::Text(text)) => known.extend(numbers(text).map(|number| number.cents)),
                Some(Payload::Object(fields)) => add_all(&mut known, fields),
                Some(Payload::Other(value)) => add_numbers(&mut known, value),
                None => {}
            },
            // What the agent wrote itself is no source.
            EventBody::Unknown { kind, fields } if !case_input::is_by_agent(kind, fields) => {
                add_all(&mut known, fields);
            }
            _ => {}
        }
    }
    known
}

fn add_all(known: &mut BTreeSet<u64>, fields: &Map<String, Value>) {
    fields.values().for_each(|value| add_numbers(known, value));
}

fn add_numbers(known: &mut BTreeSet<u64>, value: &Value) {
    match value {
        Value::Number(number) => known.extend(numbers(&number.to_string()).map(|number| number.cents)),
        Value::String(text) => known.extend(numbers(text).map(|number| number.cents)),
        Value::Array(items) => items.iter().for_each(|item| add_numbers(known, item)),
        Value::Object(fields) => add_all(known, fields),
        Value::Bool(_) | Value::Null => {}
    }
}

/// A number in a text.
struct Number<'t> {
    /// Rounded to the cent.
    cents: u64,
    has_cents: bool,
    before: &'t str,
    written: &'t str,
    after: &'t str,
}

/// Words after a number that make it a promise and not a count.
const TERMS: [&str; 6] = ["minute", "hour", "day", "week", "month", "year"];

impl Number<'_> {
    /// Whether the number needs a source. Small whole numbers count things, unless they state a time or a rate.
    fn is_particular(&self) -> bool {
        let is_count = self.cents < 1000 && self.cents.is_multiple_of(100);
        !is_count || self.is_term()
    }

    /// Whether the number states a time or a rate: `5 days`, `14 working days`, `3-year`, `15 %`.
    fn is_term(&self) -> bool {
        let after = self.after.trim_start_matches(|c: char| c.is_whitespace() || c == '-');
        let words = after.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphabetic()));
        let is_time = |word: &str| TERMS.contains(&word.trim_end_matches('s').to_lowercase().as_str());
        after.starts_with('%') || words.take(2).any(is_time)
    }
}

/// The numbers of a text: `1,250.00`, `1.250,00`, `1250`.
fn numbers(text: &str) -> impl Iterator<Item = Number<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find(|c: char| c.is_ascii_digit())?;
            let length =
                text[start..].find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len() - start);
            let written = text[start..start + length].trim_end_matches(['.', ',']);
            at = start + length;
            if let Some((cents, has_cents)) = cents(written) {
                let after = &text[start + written.len()..];
                return Some(Number { cents, has_cents, before: &text[..start], written, after });
            }
        }
    })
}

/// The value of a written number in cents, and whether it is written with two decimals.
fn cents(written: &str) -> Option<(u64, bool)> {
    // The last separator is the decimal one, unless three digits or more separators of its kind show that it groups.
    let point = written.rfind(['.', ',']).filter(|at| {
        let separator = &written[*at..=*at];
        let decimals = written.len() - at - 1;
        written.matches(separator).count() == 1 && (decimals != 3 || separator == ".")
    });
    let (whole, decimals) = point.map_or((written, ""), |at| (&written[..at], &written[at + 1..]));
    let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
    let amount: f64 = format!("{whole}.{decimals}0").parse().ok()?;
    // Beyond this, an id.
    let is_amount = whole.len() <= 9;
    is_amount.then(|| (rounded_cents(amount), decimals.len() == 2))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most nine digits before the point, and no sign"
)]
fn rounded_cents(amount: f64) -> u64 {
    (amount * 100.0).round() as u64
}

/// The amounts of money in a text, in cents and as written: numbers with a currency, or with two decimals.
fn stated_amounts(text: &str) -> impl Iterator<Item = (u64, String)> {
    const SIGNS: [char; 4] = ['$', '€', '£', '¥'];
    const CODES: [&str; 9] = ["usd", "eur", "gbp", "dollar", "dollars", "euro", "euros", "pound", "pounds"];
    numbers(text).filter_map(|number| {
        let (before, after) = (number.before.trim_end(), number.after.trim_start());
        let sign_before = before.chars().next_back().filter(|c| SIGNS.contains(c));
        let sign_after = after.chars().next().filter(|c| SIGNS.contains(c));
        let word = after.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
        let has_currency = sign_before.is_some() || sign_after.is_some() || CODES.contains(&word.as_str());
        // Part of an id, a version, a date, a time or a percentage.
        let is_within = number.before.ends_with(|c: char| c.is_alphanumeric() || "#-_/:.,".contains(c))
            || number.after.starts_with(|c: char| c.is_alphanumeric() || "-_/:%".contains(c))
            || after.starts_with('%');
        let is_amount = has_currency || number.has_cents && !is_within;
        let shown = match (sign_before, sign_after) {
            (Some(sign), _) => format!("{sign}{}", number.written),
            (None, Some(sign)) => format!("{} {sign}", number.written),
            (None, None) => number.written.to_owned(),
        };
        is_amount.then_some((number.cents, shown))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_a_currency_or_two_decimals() {
        let amounts = |text: &str| stated_amounts(text).map(|(cents, _)| cents).collect::<Vec<_>>();
        assert_eq!(amounts("You get $1,250 back, not 1250,50 € or 12.50."), [125_000, 125_050, 1250]);
        assert_eq!(amounts("1.250,00 EUR and 30 dollars"), [125_000, 3000]);
        for text in [
            "in 5 days",
            "order #4.50-1",
            "version 1.2.50",
            "12.50 %",
            "at 10:30",
            "W1234567",
            "2024-05-20",
            "12 items",
        ] {
            assert_eq!(amounts(text), Vec::<u64>::new(), "{text}");
        }
    }

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
