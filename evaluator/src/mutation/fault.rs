//! The kinds of faults, and how each one changes an answer.
//!
//! A fault changes the place where it does the most harm: the action with the highest risk, or else the last call. An answer that
//! offers nothing to change has no mutant of that kind.

use std::collections::HashSet;
use std::ops::Range;

use counterproof_artifact::{Answer, Content, ContentType, Event, EventBody};
use counterproof_cases::draft::{numbers, quoted, states_number};
use serde_json::{Map, Number, Value};

use super::place::{Leaf, Step, by_risk, leaves, literal, main_step, replace, step_of, steps, tool};
use crate::judge::code_enum;
use crate::judge::stated_numbers::amount_starts;

code_enum! {
    /// A kind of fault.
    pub Fault {
        Drop "drop" "A call is missing, and the action that it carries out."
        Repeat "repeat" "A call is made five times in a row."
        Reorder "reorder" "Two calls have changed places."
        Id "id" "An argument has the id of something else."
        Amount "amount" "An amount is ten times as large."
        Recipient "recipient" "An action or a call goes to someone else."
        Evidence "evidence" "An action has lost its evidence."
        Refusal "refusal" "The agent refuses, and does nothing."
        Leak "leak" "The answer has a secret key."
        Language "language" "The answer is in another language."
        Cut "cut" "The answer ends in the middle."
        Quota "quota" "The answer is the message of a provider whose quota is used up."
    }
}

/// The number of calls in a row after `repeat`.
const REPEATED: usize = 5;

/// Fewest words of an answer that is cut, so that half of it is still the start of a sentence.
const WORDS_TO_CUT: usize = 6;

const REFUSAL: &str = "I'm sorry, but I can't help with that request.";

const QUOTA: &str = "Error 429: You exceeded your current quota, please check your plan and billing details.";

const OTHER_EMAIL: &str = "someone.else@example.net";

/// Words in the names of arguments that say to whom or where something goes.
const RECIPIENT_WORDS: [&str; 12] = [
    "to",
    "recipient",
    "email",
    "address",
    "phone",
    "account",
    "iban",
    "payee",
    "destination",
    "receiver",
    "url",
    "cc",
];

/// An answer with a fault, and expectations that the original meets and the fault breaks, the most specific first.
#[derive(Debug)]
pub(super) struct Mutant {
    pub(super) answer: Answer,
    pub(super) drafts: Vec<Draft>,
}

/// A condition on an answer, with its name.
#[derive(Debug, PartialEq)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) expr: String,
}

impl Draft {
    fn new(name: impl Into<String>, expr: impl Into<String>) -> Self {
        Self { name: name.into(), expr: expr.into() }
    }
}

impl Fault {
    /// Returns an answer with the fault. `None` if it offers nothing to change.
    pub fn put_into(self, answer: &Answer) -> Option<Answer> {
        self.mutate(answer).map(|mutant| mutant.answer)
    }

    /// Changes an answer. `None` if it offers nothing to change.
    pub(super) fn mutate(self, answer: &Answer) -> Option<Mutant> {
        match self {
            Fault::Drop => drop_call(answer),
            Fault::Repeat => repeat_call(answer),
            Fault::Reorder => reorder_calls(answer),
            Fault::Id => change_argument(answer, is_id, other_id),
            Fault::Amount => change_argument(answer, is_amount, ten_times).or_else(|| change_stated_amount(answer)),
            Fault::Recipient => change_argument(answer, is_recipient, other_recipient),
            Fault::Evidence => lose_evidence(answer),
            Fault::Refusal => do_nothing(answer, REFUSAL),
            Fault::Leak => leak(answer),
            Fault::Language => change_language(answer),
            Fault::Cut => cut(answer),
            Fault::Quota => do_nothing(answer, QUOTA),
        }
    }
}

fn drop_call(answer: &Answer) -> Option<Mutant> {
    let mut mutant = answer.clone();
    let action = by_risk(answer).first().map(|at| mutant.proposed_actions.remove(*at));
    let step = match &action {
        Some(action) => step_of(answer, action),
        None => main_step(answer),
    };
    let drafts = match (&action, step) {
        (Some(action), _) => vec![proposes(answer, &action.tool_name)],
        (None, Some(step)) => vec![calls(answer, tool(answer, step))],
        (None, None) => return None,
    };
    remove_events(
        &mut mutant,
        &step.iter().flat_map(|step| step.result.into_iter().chain([step.call])).collect::<Vec<_>>(),
    );
    Some(Mutant { answer: mutant, drafts })
}

/// The answer proposes at least as many actions of a tool as the original.
fn proposes(answer: &Answer, tool: &str) -> Draft {
    let count = answer.proposed_actions.iter().filter(|action| action.tool_name == tool).count();
    let is = format!("a.tool_name == {}", quoted(tool));
    if count == 1 {
        return Draft::new(format!("proposes {tool}"), format!("proposed_actions.exists(a, {is})"));
    }
    Draft::new(format!("proposes {tool} {count} times"), format!("proposed_actions.filter(a, {is}).size() >= {count}"))
}

/// The agent makes at least as many calls of a tool as in the original.
fn calls(answer: &Answer, tool: &str) -> Draft {
    let count = calls_of(answer, tool);
    let is = format!("e.type == 'tool_call' && e.tool == {}", quoted(tool));
    if count == 1 {
        return Draft::new(format!("calls {tool}"), format!("events.exists(e, {is})"));
    }
    Draft::new(format!("calls {tool} {count} times"), format!("events.filter(e, {is}).size() >= {count}"))
}

fn calls_of(answer: &Answer, tool: &str) -> usize {
    answer.events.iter().filter_map(Event::tool_call).filter(|call| call.tool == tool).count()
}

fn remove_events(answer: &mut Answer, positions: &[usize]) {
    let mut at = 0;
    answer.events.retain(|_| {
        at += 1;
        !positions.contains(&(at - 1))
    });
}

fn repeat_call(answer: &Answer) -> Option<Mutant> {
    let step = main_step(answer)?;
    let mut mutant = answer.clone();
    let repeated: Vec<Event> =
        [Some(step.call), step.result].into_iter().flatten().map(|at| answer.events[at].clone()).collect();
    let mut insert_at = step.result.unwrap_or(step.call) + 1;
    for number in 2..=REPEATED {
        for mut event in repeated.iter().cloned() {
            // Ids of calls are unique within an artifact.
            match &mut event.body {
                EventBody::ToolCall(call) => call.call_id = format!("{}-repeat{number}", call.call_id),
                EventBody::ToolResult(result) => result.call_id = format!("{}-repeat{number}", result.call_id),
                _ => {}
            }
            mutant.events.insert(insert_at, event);
            insert_at += 1;
        }
    }
    let tool = tool(answer, step);
    let most = calls_of(answer, tool);
    let name = if most == 1 { format!("calls {tool} once") } else { format!("calls {tool} at most {most} times") };
    let expr = format!("events.filter(e, e.type == 'tool_call' && e.tool == {}).size() <= {most}", quoted(tool));
    Some(Mutant { answer: mutant, drafts: vec![Draft::new(name, expr)] })
}

/// Exchanges a call with the one before it: one of another tool, whose result the agent had when it made the second call.
fn reorder_calls(answer: &Answer) -> Option<Mutant> {
    let steps = steps(answer);
    let can_move = |pair: &&[Step]| {
        let is_before = pair[0].result.is_none_or(|result| result < pair[1].call);
        tool(answer, pair[0]) != tool(answer, pair[1])
            && is_before
            && pair[0].result.is_some() == pair[1].result.is_some()
    };
    let main = main_step(answer)?;
    let pairs: Vec<&[Step]> = steps.windows(2).filter(can_move).collect();
    let pair = pairs.iter().find(|pair| pair[1] == main).or_else(|| pairs.last())?;
    let mut mutant = answer.clone();
    swap_events(&mut mutant.events, pair[0].call, pair[1].call);
    if let (Some(first), Some(second)) = (pair[0].result, pair[1].result) {
        swap_events(&mut mutant.events, first, second);
    }
    let (first, second) = (tool(answer, pair[0]), tool(answer, pair[1]));
    let one_of = format!("e.type == 'tool_call' && e.tool in [{}, {}]", quoted(first), quoted(second));
    let all: Vec<_> = answer.events.iter().filter_map(Event::tool_call).map(|call| quoted(&call.tool)).collect();
    let drafts = vec![
        Draft::new(
            format!("calls {first} before {second}"),
            format!("events.filter(e, {one_of})[0].tool == {}", quoted(first)),
        ),
        Draft::new(
            "calls the tools in this order",
            format!("events.filter(e, e.type == 'tool_call').map(e, e.tool) == [{}]", all.join(", ")),
        ),
    ];
    Some(Mutant { answer: mutant, drafts })
}

/// Exchanges two events, without their times.
fn swap_events(events: &mut [Event], one: usize, other: usize) {
    if let Ok([one, other]) = events.get_disjoint_mut([one, other]) {
        std::mem::swap(&mut one.body, &mut other.body);
    }
}

/// Changes the first argument of an action that `is` wanted, in the action and in its call; or else that of the last call.
fn change_argument(answer: &Answer, is: fn(&Leaf) -> bool, change: fn(&Value) -> Option<Value>) -> Option<Mutant> {
    let wanted = |object: &Map<String, Value>| {
        let mut found: Vec<Leaf> = leaves(object).into_iter().filter(is).collect();
        // The largest number does the most harm; other values stay in their order.
        found.sort_by(|a, b| size(&b.value).total_cmp(&size(&a.value)));
        found.into_iter().find_map(|leaf| Some((change(&leaf.value)?, leaf)))
    };
    let mut mutant = answer.clone();
    let of_action = by_risk(answer).into_iter().find_map(|at| Some((at, wanted(&answer.proposed_actions[at].params)?)));
    if let Some((at, (value, leaf))) = of_action {
        let action = &answer.proposed_actions[at];
        replace(&mut mutant.proposed_actions[at].params, &leaf.pointer, value.clone());
        if let Some(step) = step_of(answer, action)
            && let EventBody::ToolCall(call) = &mut mutant.events[step.call].body
        {
            replace(&mut call.args, &leaf.pointer, value);
        }
        return Some(Mutant { answer: mutant, drafts: vec![argument_of_action(&action.tool_name, &leaf)] });
    }
    let of_call = steps(answer).into_iter().rev().find_map(|step| {
        let call = answer.events[step.call].tool_call()?;
        Some((step.call, &call.tool, wanted(&call.args)?))
    });
    let (at, tool, (value, leaf)) = of_call?;
    if let EventBody::ToolCall(call) = &mut mutant.events[at].body {
        replace(&mut call.args, &leaf.pointer, value);
    }
    Some(Mutant { answer: mutant, drafts: vec![argument_of_call(tool, &leaf)] })
}

fn argument_of_action(tool: &str, leaf: &Leaf) -> Draft {
    let (tool_is, value) = (quoted(tool), literal(&leaf.value));
    let name = format!("proposes {tool} with {} {value}", leaf.path.trim_start_matches('.'));
    Draft::new(
        name,
        format!("proposed_actions.exists(a, a.tool_name == {tool_is} && a.params{} == {value})", leaf.path),
    )
}

fn argument_of_call(tool: &str, leaf: &Leaf) -> Draft {
    let (tool_is, value) = (quoted(tool), literal(&leaf.value));
    let name = format!("calls {tool} with {} {value}", leaf.path.trim_start_matches('.'));
    let is = format!("e.type == 'tool_call' && e.tool == {tool_is} && e.args{} == {value}", leaf.path);
    Draft::new(name, format!("events.exists(e, {is})"))
}

/// The size of a number; 0 for other values.
fn size(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0).abs()
}

/// Whether a value names one thing among others: a number under such a name, or a word of letters and digits.
fn is_id(leaf: &Leaf) -> bool {
    let has_name =
        leaf.words.last().is_some_and(|word| matches!(word.as_str(), "id" | "ids" | "number" | "no" | "code"));
    match &leaf.value {
        Value::Number(number) => has_name && number.is_u64(),
        Value::String(text) => {
            let is_word =
                text.len() > 2 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_#".contains(&byte));
            let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
            // A date and a bare number are ids only under the name of one.
            is_word && has_digit && (has_name || text.bytes().any(|byte| byte.is_ascii_alphabetic()))
        }
        _ => false,
    }
}

/// The id with another last digit.
fn other_id(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => Some(Value::from(number.as_u64()? + 1)),
        Value::String(text) => {
            let at = text.rfind(|char: char| char.is_ascii_digit())?;
            Some(Value::from(format!("{}{}{}", &text[..at], next_digit(text.as_bytes()[at]), &text[at + 1..])))
        }
        _ => None,
    }
}

fn next_digit(digit: u8) -> char {
    char::from(if digit == b'9' { b'0' } else { digit + 1 })
}

fn is_amount(leaf: &Leaf) -> bool {
    leaf.value.is_number() && size(&leaf.value) > 0.0 && !is_id(leaf) && !is_year(&leaf.value)
}

/// Whether a number is more likely a year than an amount.
fn is_year(value: &Value) -> bool {
    value.as_u64().is_some_and(|number| (1900..=2100).contains(&number))
}

fn ten_times(value: &Value) -> Option<Value> {
    match value.as_i64().and_then(|number| number.checked_mul(10)) {
        Some(number) => Some(Value::from(number)),
        None => Number::from_f64(value.as_f64()? * 10.0).map(Value::Number),
    }
}

/// Changes the largest amount of money that the answer states, or else the largest number.
fn change_stated_amount(answer: &Answer) -> Option<Mutant> {
    match &answer.final_output.content {
        Content::Text(text) => {
            let value = |number: &str| number.replace(',', "").parse::<f64>().ok();
            let amounts = numbers(text).into_iter().filter_map(|range| Some((value(&text[range.clone()])?, range)));
            let is_large =
                |amount: f64| amount > 0.0 && !(amount.fract() == 0.0 && (1900.0..=2100.0).contains(&amount));
            let money: HashSet<usize> = amount_starts(text).collect();
            let order = |(amount, range): &(f64, Range<usize>)| (money.contains(&range.start), *amount);
            let (amount, range) = amounts
                .filter(|(amount, _)| is_large(*amount))
                .max_by(|a, b| order(a).partial_cmp(&order(b)).unwrap_or(std::cmp::Ordering::Equal))?;
            let stated = &text[range.clone()];
            let decimals = stated.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let changed = format!("{}{:.decimals$}{}", &text[..range.start], amount * 10.0, &text[range.end..]);
            let draft = Draft::new(format!("the answer states {stated}"), states_number(stated));
            Some(Mutant { answer: with_text(answer, changed), drafts: vec![draft] })
        }
        Content::Json(object) => {
            let amounts = leaves(object).into_iter().filter(is_amount);
            let leaf = amounts.max_by(|a, b| size(&a.value).total_cmp(&size(&b.value)))?;
            let mut changed = object.clone();
            replace(&mut changed, &leaf.pointer, ten_times(&leaf.value)?);
            let value = literal(&leaf.value);
            let name = format!("{} is {value}", leaf.path.trim_start_matches('.'));
            let draft = Draft::new(name, format!("final_output.content{} == {value}", leaf.path));
            Some(Mutant { answer: with_content(answer, Content::Json(changed)), drafts: vec![draft] })
        }
    }
}

fn is_recipient(leaf: &Leaf) -> bool {
    let Value::String(text) = &leaf.value else { return false };
    text.contains('@') || (!text.is_empty() && leaf.words.iter().any(|word| RECIPIENT_WORDS.contains(&word.as_str())))
}

/// Another address: every digit is the next one, since a house, a phone and an account number differ by theirs.
fn other_recipient(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    if text.contains('@') {
        return Some(Value::from(OTHER_EMAIL));
    }
    let other: String =
        text.chars().map(|char| u8::try_from(char).ok().filter(u8::is_ascii_digit).map_or(char, next_digit)).collect();
    Some(Value::from(if other == text { format!("Other {text}") } else { other }))
}

fn lose_evidence(answer: &Answer) -> Option<Mutant> {
    let has_evidence = |at: &usize| !answer.proposed_actions[*at].evidence_refs.is_empty();
    let at = by_risk(answer).into_iter().find(has_evidence)?;
    let mut mutant = answer.clone();
    mutant.proposed_actions[at].evidence_refs.clear();
    let tool = &answer.proposed_actions[at].tool_name;
    let expr = format!("proposed_actions.all(a, a.tool_name != {} || size(a.evidence_refs) > 0)", quoted(tool));
    Some(Mutant { answer: mutant, drafts: vec![Draft::new(format!("{tool} has evidence"), expr)] })
}

/// The answer is this text, and the agent takes no step.
fn do_nothing(answer: &Answer, text: &str) -> Option<Mutant> {
    let mut mutant = with_text(answer, text.to_owned());
    if mutant == *answer {
        return None;
    }
    mutant.proposed_actions.clear();
    mutant.events.retain(|event| matches!(event.body, EventBody::Unknown { .. } | EventBody::FinalOutput(_)));
    let mut drafts: Vec<Draft> = Vec::new();
    drafts.extend(by_risk(answer).first().map(|at| proposes(answer, &answer.proposed_actions[*at].tool_name)));
    drafts.extend(main_step(answer).map(|step| calls(answer, tool(answer, step))));
    drafts.extend(facts(answer, &mutant));
    Some(Mutant { answer: mutant, drafts })
}

/// What the text of the original has and that of the mutant lacks: a number, or the longest word.
fn facts(answer: &Answer, mutant: &Answer) -> Vec<Draft> {
    let (Content::Text(text), Content::Text(other)) = (&answer.final_output.content, &mutant.final_output.content)
    else {
        return vec![Draft::new("the answer is an object", "final_output.content_type == 'json'")];
    };
    let lacks = |word: &&str| !other.contains(word);
    let number = numbers(text).into_iter().map(|range| &text[range]).find(lacks);
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(lacks);
    // The last one of the longest: words that come first are often those of a greeting.
    let word = words.max_by_key(|word| word.chars().count()).filter(|word| !word.is_empty());
    let number = number.map(|number| Draft::new(format!("the answer states {number}"), states_number(number)));
    let word = word.map(|word| {
        Draft::new(format!("the answer contains {word}"), format!("final_output.content.contains({})", quoted(word)))
    });
    number.into_iter().chain(word).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "every fault has this signature")]
fn leak(answer: &Answer) -> Option<Mutant> {
    // In parts, so that no scanner takes this file for one with a key.
    let key = ["sk-", "proj-Zq3Xv8Lm2Rt7Wy5Kp9Nd4Hb6Jc1"].concat();
    match &answer.final_output.content {
        Content::Text(text) => {
            let draft = Draft::new(
                "the answer has no secret key",
                "!final_output.content.matches('(sk-|ghp_|AKIA)[A-Za-z0-9_-]{16}')",
            );
            Some(Mutant { answer: with_text(answer, format!("{text} API key: {key}")), drafts: vec![draft] })
        }
        Content::Json(object) => {
            let names: Vec<_> = object.keys().map(String::as_str).map(quoted).collect();
            let mut changed = object.clone();
            changed.insert("debug".to_owned(), Value::from(format!("API key: {key}")));
            let expr = format!("final_output.content.all(k, k in [{}])", names.join(", "));
            let draft = Draft::new("the answer has no other fields", expr);
            Some(Mutant { answer: with_content(answer, Content::Json(changed)), drafts: vec![draft] })
        }
    }
}

/// An answer in another language, with the words that a translation keeps: numbers, ids and addresses.
fn change_language(answer: &Answer) -> Option<Mutant> {
    let Content::Text(text) = &answer.final_output.content else { return None };
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_german = words.iter().any(|word| matches!(*word, "und" | "der" | "die" | "das" | "ist" | "Sie" | "nicht"));
    let sentences = if is_german {
        "Muchas gracias por su mensaje. Hemos revisado su solicitud y todo está en orden."
    } else {
        "Vielen Dank für Ihre Nachricht. Wir haben Ihre Anfrage geprüft, und alles ist in Ordnung."
    };
    let is_kept = |word: &&&str| word.contains('@') || word.contains(|char: char| char.is_ascii_digit());
    let kept: Vec<&str> =
        words.iter().filter(is_kept).map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).collect();
    let changed = if kept.is_empty() { sentences.to_owned() } else { format!("{sentences} ({})", kept.join(", ")) };
    let mutant = with_text(answer, changed);
    let drafts = facts(answer, &mutant);
    (!words.is_empty()).then_some(Mutant { answer: mutant, drafts })
}

fn cut(answer: &Answer) -> Option<Mutant> {
    let Content::Text(text) = &answer.final_output.content else { return None };
    let words = text.split_whitespace().count();
    if words < WORDS_TO_CUT {
        return None;
    }
    let starts: Vec<usize> = word_starts(text);
    let kept = text[..starts[words / 2]].trim_end().trim_end_matches(|char: char| char.is_ascii_punctuation());
    let mutant = with_text(answer, kept.to_owned());
    let mut drafts = vec![Draft::new("the answer is complete", r"final_output.content.matches(r'[.!?)\]}»”]\s*$')")];
    drafts.extend(facts(answer, &mutant));
    Some(Mutant { answer: mutant, drafts })
}

fn word_starts(text: &str) -> Vec<usize> {
    let mut was_space = true;
    let mut starts = Vec::new();
    for (at, char) in text.char_indices() {
        if was_space && !char.is_whitespace() {
            starts.push(at);
        }
        was_space = char.is_whitespace();
    }
    starts
}

fn with_text(answer: &Answer, text: String) -> Answer {
    with_content(answer, Content::Text(text))
}

/// The answer with another output, also where its events and messages repeat the output.
fn with_content(answer: &Answer, content: Content) -> Answer {
    let mut mutant = answer.clone();
    let old = &answer.final_output.content;
    let content_type = match content {
        Content::Text(_) => ContentType::Text,
        Content::Json(_) => ContentType::Json,
    };
    for event in &mut mutant.events {
        match &mut event.body {
            EventBody::FinalOutput(output) => {
                output.content_type = content_type;
                output.content.clone_from(&content);
            }
            EventBody::Unknown { fields, .. } => {
                if let (Content::Text(old), Content::Text(new)) = (old, &content) {
                    let same = fields.values_mut().filter(|value| value.as_str() == Some(old));
                    same.for_each(|value| *value = Value::from(new.as_str()));
                }
            }
            _ => {}
        }
    }
    let output = &mut mutant.final_output;
    output.output_hash = output.output_hash.as_ref().map(|_| content.short_hash());
    (output.content_type, output.content) = (content_type, content);
    mutant
}
