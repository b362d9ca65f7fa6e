//! Faults in the texts of an agent that always does the same. The request and the results were right for the answer of baseline, so
//! that an answer of new needs no other numbers, no refusal and no other language. The gate counts them with those of
//! [`super::answer_texts`].

use std::collections::{BTreeSet, HashMap};

use counterproof_artifact::evaluation::SidePointer;
use counterproof_artifact::{Content, Side, Sides};

use super::ReasonCode;
use super::answer_texts::{NAMED, Numbers, OUTPUT, TextFinding, each_message, output, output_with};
use super::language::{common_words, other_language};
use super::stated_numbers::{Number, is_sum_or_difference, numbers, received_numbers, without_group_spaces};
use crate::load::LoadedAnswer;
use crate::load::case_input::CaseInput;
use crate::values::text;

/// Two answers to the same request.
pub(crate) struct SameRequest<'a> {
    pub(crate) answers: Sides<&'a LoadedAnswer>,
    /// The input of new.
    pub(crate) input: &'a CaseInput<'a>,
    /// Whether the same calls had other results, so that other words may be right.
    pub(crate) results_differ: bool,
}

/// Finds the faults.
pub(crate) fn find(request: &SameRequest<'_>) -> Vec<TextFinding> {
    let found =
        [unsupported_number(request), refusal(request), replaced(request), translation(request), shortened(request)];
    found.into_iter().flatten().collect()
}

fn at_output(code: ReasonCode, message: String) -> TextFinding {
    TextFinding { code, message, pointers: vec![SidePointer::new(Side::New, OUTPUT)] }
}

/// The largest set of known numbers whose sums and differences support a number. Of more numbers, almost any number is one.
const SUMMED: usize = 48;

/// A number that nothing supports: the same request and the same results led baseline to an answer without it.
fn unsupported_number(request: &SameRequest<'_>) -> Option<TextFinding> {
    if request.results_differ || request.answers.new.payloads.first_unread().is_some() {
        return None;
    }
    let usual_text = output_with(Numbers::Kept, request.answers.baseline);
    let usual_numbers: Vec<_> = numbers(&usual_text).collect();
    let mut usual: BTreeSet<u64> = usual_numbers.iter().map(|number| number.cents).collect();
    let mut by_word: HashMap<String, BTreeSet<u64>> = HashMap::new();
    for number in &usual_numbers {
        if let Some(word) = number.next_word() {
            by_word.entry(word).or_default().insert(number.cents);
        }
    }
    each_message(request.answers.baseline, |_, text| usual.extend(numbers(text).map(|number| number.cents)));
    let is_stated = |number: &Number<'_>| {
        !usual.contains(&number.cents) && (number.is_particular() || number.is_instead_of(&by_word))
    };
    let output = output_with(Numbers::Kept, request.answers.new);
    let mut stated: Vec<_> = numbers(&output).filter(is_stated).collect();
    if stated.is_empty() {
        return None;
    }
    let known = received_numbers(request.answers.new, request.input);
    // A time, a rate and a count are never computed.
    let is_sum = |number: &Number<'_>| {
        let may_be_sum = number.is_particular() && !number.is_term();
        may_be_sum && known.len() <= SUMMED && is_sum_or_difference(&known, number.cents)
    };
    let has_source = |number: &Number<'_>| known.contains(&number.cents) || is_sum(number);
    stated.retain(|number| !has_source(number));
    // `1 240` may be one number.
    let joined = without_group_spaces(&output);
    if joined != output && numbers(&joined).all(|number| !is_stated(&number) || has_source(&number)) {
        return None;
    }
    let mut names: Vec<_> = stated.iter().map(|number| number.written).collect();
    names.dedup();
    names.truncate(NAMED);
    let message = format!(
        "the answer states {}, which is in nothing that the agent received, and not in the answer of baseline",
        text::list(&names)
    );
    (!names.is_empty()).then(|| at_output(ReasonCode::UnsupportedNumber, message))
}

/// What agents say when they do not do what they were asked.
const REFUSALS: [&str; 17] = [
    "i can't",
    "i cannot",
    "i can not",
    "i won't",
    "we can't",
    "we cannot",
    "can't help",
    "cannot help",
    "can't assist",
    "cannot assist",
    "unable to",
    "not able to",
    "not allowed to",
    "not possible",
    "must decline",
    "against our policy",
    "against my",
];

fn refusal(request: &SameRequest<'_>) -> Option<TextFinding> {
    let [old, new] = request.answers.into_array().map(|loaded| output(loaded).to_lowercase().replace('’', "'"));
    let is_said = |text: &str| REFUSALS.into_iter().find(|phrase| text.contains(phrase));
    // A tool that fails on new can be why.
    let phrase = is_said(&new).filter(|_| !request.results_differ && is_said(&old).is_none())?;
    Some(at_output(ReasonCode::AnswerRefusal, format!("the answer refuses (“{phrase}”), which baseline does not")))
}

/// An answer without a single word of baseline's: the same request and the same results led to something else.
fn replaced(request: &SameRequest<'_>) -> Option<TextFinding> {
    if request.results_differ {
        return None;
    }
    let [Content::Text(old), Content::Text(new)] =
        request.answers.into_array().map(|loaded| &loaded.answer.final_output.content)
    else {
        return None;
    };
    let [old, new] = [old, new].map(|text| common_words(text));
    // A single word, such as `Done.`, leaves nothing to have in common.
    let is_other = old.len() >= 2 && new.len() >= 2 && old.is_disjoint(&new);
    let message = "the answer has no word in common with that of baseline".to_owned();
    is_other.then(|| at_output(ReasonCode::AnswerReplaced, message))
}

fn translation(request: &SameRequest<'_>) -> Option<TextFinding> {
    let other = other_language(&output(request.answers.baseline), &output(request.answers.new))?;
    let message = format!("the answer is in {}, and that of baseline is not", other.name());
    Some(at_output(ReasonCode::AnswerLanguage, message))
}

/// An answer that is the start of baseline's, word for word. A question or a greeting at the end may be left out.
fn shortened(request: &SameRequest<'_>) -> Option<TextFinding> {
    let [old, new] = request.answers.into_array().map(output);
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
