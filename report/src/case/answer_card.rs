//! The answer card of a case page: what happened as the headline, whether it may be chance, an excerpt of both answers, and the
//! numbers of both sides.

use counterproof_artifact::evaluation::{CaseEvaluation, CaseUsage, MeasureCode, SideUsage, UsageCode, Verdict};
use counterproof_artifact::{RiskLevel, Side, Sides};
use counterproof_evaluator::messages::{self, usage};
use counterproof_evaluator::{Artifact, ReasonCode, TracedArgument, text};

use super::answer_text;
use super::arguments::is_id;
use super::cells::HighlightedPart;
use super::chat::counts;
use super::context::CaseContext;
use super::reasons;
use crate::view::display;
use crate::view::word::{self, Circumstances, Label, Word};

#[derive(Debug, Clone)]
pub(crate) struct AnswerCard {
    pub(crate) headline: String,
    pub(crate) label: Label,
    /// `high risk, irreversible`; may be empty.
    pub(crate) risk: String,
    pub(crate) chance: String,
    pub(crate) excerpts: Vec<Excerpt>,
    pub(crate) strip: Vec<Fact>,
    /// Whether the agents received other records.
    pub(crate) has_other_records: bool,
}

/// The first words of an answer, or why there is none.
#[derive(Debug, Clone)]
pub(crate) struct Excerpt {
    pub(crate) side: &'static str,
    pub(crate) parts: Vec<HighlightedPart>,
    pub(crate) is_answer: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// The change from baseline to new; may be empty.
    pub(crate) change: String,
    pub(crate) is_bad: bool,
}

/// `is_other_run` is true on the page of a run that the page of the case does not show.
pub(crate) fn view(context: &CaseContext<'_>, is_other_run: bool) -> AnswerCard {
    let (case, row) = (context.case, &context.case.row);
    let known = Circumstances::of_comparison(case);
    let label = Label::of_case(row, known.is_alone);
    let mut risk: Vec<_> = match row.risk_level {
        Some(RiskLevel::High) => vec!["high risk"],
        Some(RiskLevel::Medium) => vec!["medium risk"],
        _ => Vec::new(),
    };
    if row.story.effects.iter().any(|effect| effect.irreversible) {
        risk.push("hard to reverse");
    }
    let failed = Sides::from_fn(|side| match context.artifact(side) {
        Artifact::Failure(failed) => Some(messages::failure(&failed.failure)),
        other => reasons::absence(side, other),
    });
    AnswerCard {
        headline: display::visible(&if is_other_run {
            run_headline(row, &failed)
        } else {
            headline(row, label.word, &failed)
        }),
        label,
        risk: risk.join(", "),
        chance: if is_other_run || matches!(label.word, Word::Same | Word::Met | Word::Noise) {
            String::new()
        } else {
            word::chance(row, known)
        },
        excerpts: excerpts(context, &failed),
        strip: strip(context, Some(label.word).filter(|_| !is_other_run)),
        has_other_records: case.has_other_records(),
    }
}

/// What happened, from counts and quoted words. `failed` says why a side has no answer.
fn headline(row: &CaseEvaluation, word: Word, failed: &Sides<Option<String>>) -> String {
    match (row.verdict, failed.new.as_deref(), failed.baseline.as_deref()) {
        (Verdict::Broken, Some(why), _) => return format!("New did not answer: {why}."),
        (Verdict::StillBroken, Some(why), _) => return format!("Neither side answered. New: {why}."),
        (Verdict::Recovered, _, Some(why)) => return format!("New answered. Baseline did not: {why}."),
        (Verdict::Invalid | Verdict::Missing | Verdict::Added, ..) => {}
        _ => {
            if let Some(effects) = messages::effects(&row.story) {
                return effects;
            }
        }
    }
    let Some(first) = row.reasons.first() else {
        return match word {
            Word::Met => "New answered.".to_owned(),
            Word::Same => "Both sides did the same.".to_owned(),
            _ => "The sides differ.".to_owned(),
        };
    };
    if let Some(words) = first.message.strip_prefix("output: ").filter(|_| ReasonCode::OutputChanged.is_code_of(first))
    {
        return format!("Only the answer differs: {words}.");
    }
    let message = first.message.trim_end_matches('.');
    // The name of a tool stays as it is.
    let is_name = message.split([' ', ':']).next().is_some_and(|word| word.contains(['_', '.']));
    if is_name { format!("{message}.") } else { format!("{}.", text::first_upper(message)) }
}

/// What a run did that the page of the case does not show. It is not judged.
fn run_headline(row: &CaseEvaluation, failed: &Sides<Option<String>>) -> String {
    if let Some((side, why)) = failed.iter().find_map(|(side, why)| Some((side, why.as_deref()?))) {
        return format!("This run of {side} has no answer: {why}.");
    }
    messages::effects(&row.story).unwrap_or_else(|| match &row.first_divergence {
        Some(first) => format!("In this run, first: {}.", first.message.trim_end_matches('.')),
        None => "In this run, both sides did the same.".to_owned(),
    })
}

fn excerpts(context: &CaseContext<'_>, failed: &Sides<Option<String>>) -> Vec<Excerpt> {
    let change = context.case.differences.as_ref().map(|differences| &differences.output);
    let is_same = matches!(change, Some(counterproof_evaluator::OutputChange::Same));
    let of_side = |side: Side| {
        let (parts, is_answer) = if let Some(loaded) = context.answer(side) {
            (answer_text::of_output(side, &loaded.answer.final_output, change).excerpt(), true)
        } else {
            let why = failed.get(side).as_deref().map(display::visible)?;
            (vec![HighlightedPart { text: format!("no answer: {why}"), marked: false }], false)
        };
        let side = if is_same {
            "both said"
        } else if side == Side::Baseline {
            "baseline"
        } else {
            "new"
        };
        Some(Excerpt { side, parts, is_answer })
    };
    // An answer that both sides gave is shown once, and without a baseline only new is known.
    let sides = if is_same || context.case.is_alone { &Side::BOTH[1..] } else { &Side::BOTH[..] };
    sides.iter().filter_map(|side| of_side(*side)).collect()
}

/// `word` is `None` where the page shows one of several runs.
fn strip(context: &CaseContext<'_>, word: Option<Word>) -> Vec<Fact> {
    let row = &context.case.row;
    let mut facts: Vec<Fact> = Vec::new();
    let mut add = |name, value: String, change: String, is_bad| facts.push(Fact { name, value, change, is_bad });
    if let Some(seen) = word.and_then(|word| seen_in(row, word)) {
        add("seen in", seen, String::new(), false);
    }
    let usage = row.usage.clone().unwrap_or_default();
    let (duration, change) = duration(&usage, context.case.is_alone);
    add("duration", duration, change, false);
    let made = Sides::from_fn(|side| counts(context, side));
    let pair = |counts: Sides<Option<usize>>| {
        let text = |count: Option<usize>| count.map_or_else(|| "–".to_owned(), |count| count.to_string());
        let Sides { baseline, new } = counts.map(text);
        if context.case.is_alone { new } else { format!("{baseline} → {new}") }
    };
    add("calls", pair(made.map(|made| Some(made?.0))), String::new(), false);
    let writes = made.map(|made| Some(made?.1));
    add("writes", pair(writes), String::new(), writes.new > writes.baseline && !context.case.is_alone);
    if context.case.has_other_records()
        && let Some((name, baseline, new)) = other_record(&context.case.arguments)
    {
        add("other record", format!("{name} {baseline} → {new}"), String::new(), true);
    }
    facts
}

fn seen_in(row: &CaseEvaluation, word: Word) -> Option<String> {
    match row.measure(MeasureCode::Solved) {
        Some(solved) => word::seen_in(solved),
        None if row.repeats.is_none() && !matches!(word, Word::Same | Word::Met | Word::Better) => {
            Some("1 of 1 run".to_owned())
        }
        None => None,
    }
}

fn duration(sides: &CaseUsage, is_alone: bool) -> (String, String) {
    let side = |side: &Option<SideUsage>| {
        let value = side.as_ref().and_then(|side| side.get(UsageCode::Duration));
        value.map_or_else(|| "–".to_owned(), |value| usage::amount(UsageCode::Duration, value, None))
    };
    let (baseline, new) = (side(&sides.baseline), side(&sides.new));
    if baseline == "–" && new == "–" {
        return ("not recorded".to_owned(), String::new());
    }
    let change = sides.compared(UsageCode::Duration).map(|(before, after)| usage::change(before, after));
    (if is_alone { new } else { format!("{baseline} → {new}") }, change.unwrap_or_default())
}

/// The first id that both sides passed with another value.
fn other_record(arguments: &Sides<Vec<TracedArgument>>) -> Option<(String, String, String)> {
    let ids = arguments.as_ref().map(|arguments| {
        let ids = arguments.iter().filter(|argument| argument.pointer.rsplit('/').next().is_some_and(is_id));
        ids.map(|id| (messages::field_path(&id.pointer), &id.value)).collect::<Vec<_>>()
    });
    ids.baseline.iter().find_map(|(name, old)| {
        let (_, new) = ids.new.iter().find(|(other, _)| other == name)?;
        (old != new).then(|| (display::visible(name), display::visible(old), display::visible(new)))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(row: &Value, word: Word, failed: [Option<&str>; 2]) -> String {
        let mut whole = json!({"case_id": "a", "verdict": "regressed", "reasons": []});
        whole.as_object_mut().unwrap().extend(row.as_object().unwrap().clone());
        let [baseline, new] = failed.map(|why| why.map(str::to_owned));
        headline(&serde_json::from_value(whole).unwrap(), word, &Sides::new(baseline, new))
    }

    #[test]
    fn the_headline_says_what_happened() {
        let reasons = json!([{"code": "output-changed", "message": "output: “50” → “500”", "pointers": []}]);
        let story = json!({"effects": [{"tool": "cancel_order", "baseline": 0, "new": 2}]});
        let both = json!({"reasons": reasons, "story": story});
        assert_eq!(said(&both, Word::Worse, [None, None]), "New cancelled 2 orders. Baseline cancelled none.");
        let answer = json!({"reasons": reasons});
        assert_eq!(said(&answer, Word::Different, [None, None]), "Only the answer differs: “50” → “500”.");
        let missed = json!({"reasons": [{"code": "must-unmet", "message": "no_refund not met", "pointers": []}]});
        assert_eq!(said(&missed, Word::Worse, [None, None]), "no_refund not met.");
        let broken = json!({"verdict": "broken"});
        assert_eq!(said(&broken, Word::Failed, [None, Some("timeout of 3 s")]), "New did not answer: timeout of 3 s.");
        assert_eq!(said(&json!({"verdict": "unchanged"}), Word::Same, [None, None]), "Both sides did the same.");
    }
}
