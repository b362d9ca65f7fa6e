//! The outcome of the gate with its reason in one line, and what limits its meaning.

use counterproof_artifact::evaluation::{
    Bound, CaseEvaluation, Evaluation, Gate, GateOutcome, GateRule, GateScope, MeasureCode, SuiteMeasure, Verdict,
};

use super::review;
use super::standing::{RankedCase, Standing, is_lost, worst_first};
use crate::values::text;

/// The code of the notice on a run without a baseline.
pub(crate) const NO_BASELINE: &str = "no-baseline";

/// Maximum number of violated rules in the headline.
const REASONS_NAMED: usize = 3;

const SCOPE_NAMED: usize = 60;

/// The outcome of the gate and its reason: `Gate failed: 3 cases always fail`.
pub fn headline(evaluation: &Evaluation) -> String {
    let outcome = outcome(evaluation);
    // A comparison with half a baseline looks like any other, so the first line says it.
    match review::baseline_incomplete(&evaluation.gate) {
        Some(incomplete) => format!("{outcome}; {incomplete}"),
        None => outcome,
    }
}

fn outcome(evaluation: &Evaluation) -> String {
    match evaluation.gate.outcome {
        GateOutcome::Failed => format!("Gate failed: {}", reasons(evaluation)),
        GateOutcome::Passed if is_alone(evaluation) => format!("Gate passed: {}", all_good(evaluation)),
        GateOutcome::Passed => match unconfirmed_in_one_run(evaluation) {
            Some(open) => format!("Not confirmed: {open}; no rule of the gate is violated"),
            None => format!("Gate passed: {}", passed(evaluation)),
        },
        GateOutcome::NotEnoughData => {
            let reason = undecided_by(&evaluation.gate, evaluation);
            let open = unconfirmed(evaluation).map(|open| format!("; {open}")).unwrap_or_default();
            format!("Gate undecided: {reason}{open}")
        }
        GateOutcome::NotJudged if is_alone(evaluation) => {
            format!("Not judged: no expectations; {}", all_good(evaluation))
        }
        GateOutcome::NotJudged => "Not judged: no expectations and one run per side".to_owned(),
    }
}

/// Whether there was no baseline, so that only the expectations of new were checked.
pub fn is_alone(evaluation: &Evaluation) -> bool {
    evaluation.notices.iter().any(|notice| notice.code == NO_BASELINE)
}

/// Why a gate failed.
pub(super) fn reasons(evaluation: &Evaluation) -> String {
    if is_alone(evaluation) { violations_alone(evaluation) } else { violations(evaluation) }
}

/// Why a gate is undecided.
pub(super) fn undecided_by(gate: &Gate, evaluation: &Evaluation) -> String {
    let missed = violated(gate).filter(|rule| rule.bound == Bound::AtLeast);
    let missed: Vec<_> = missed.map(|rule| violation(rule, evaluation)).collect();
    // Too few cases may have answers in spite of the met rules: some answers are those of an outage.
    if missed.is_empty() { "outages instead of answers".to_owned() } else { text::list(&missed) }
}

/// What a violated rule found, also where another rule names the same cases.
pub(super) fn found(rule: &GateRule, evaluation: &Evaluation) -> String {
    let sentence = violation(rule, evaluation);
    if !sentence.is_empty() {
        return sentence;
    }
    let cases = text::count(usize::try_from(rule.actual).unwrap_or(usize::MAX), "case", "cases");
    format!("{cases} {}", if rule.code == "broken" { "without an answer" } else { "regressed" })
}

/// What a run without a baseline achieved.
pub(super) fn all_good(evaluation: &Evaluation) -> String {
    let judged = evaluation.cases.iter().filter(|case| case.is_judged_on_new()).count();
    if evaluation.cases.len() == 1 {
        let met = if judged == 1 { " and meets its expectations" } else { "" };
        return format!("the only case was answered{met}");
    }
    let answered = format!("all {} were answered", text::count(evaluation.cases.len(), "case", "cases"));
    match judged {
        0 => answered,
        judged if judged == evaluation.cases.len() => format!("{answered} and meet their expectations"),
        judged => format!("{answered}, and the {judged} with expectations meet them"),
    }
}

fn violated(gate: &Gate) -> impl Iterator<Item = &GateRule> {
    gate.rules.iter().filter(|rule| !rule.passed)
}

/// Why the gate failed without a baseline. A case without an answer is not counted as one that misses its expectations.
fn violations_alone(evaluation: &Evaluation) -> String {
    let count = |is: &dyn Fn(&CaseEvaluation) -> bool| evaluation.cases.iter().filter(|case| is(case)).count();
    let cases = |number: usize, one: &str, many: &str| {
        let verb = if number == 1 { one } else { many };
        (number > 0).then(|| format!("{} {verb}", text::count(number, "case", "cases")))
    };
    let unanswered = count(&|case| case.verdict == Verdict::StillBroken);
    let unmet = count(&|case| case.verdict == Verdict::Unchanged && case.is_unmet_on_new());
    let others =
        violated(&evaluation.gate).filter(|rule| !["still_broken", "unmet", "must"].contains(&rule.code.as_str()));
    let parts = cases(unanswered, "has no answer", "have no answer")
        .into_iter()
        .chain(cases(unmet, "does not meet the expectations", "do not meet the expectations"))
        .chain(others.map(|rule| violation(rule, evaluation)))
        .collect::<Vec<_>>();
    text::list(&parts)
}

/// Why the gate failed: its violated rules, the surest first.
fn violations(evaluation: &Evaluation) -> String {
    let mut rules: Vec<_> = violated(&evaluation.gate).collect();
    // A maximum fails the gate; a missed minimum only says how much the rest is worth.
    rules.sort_by_key(|rule| (rule.code != "lost", rule.bound == Bound::AtLeast));
    let mut reasons: Vec<_> =
        rules.into_iter().map(|rule| violation(rule, evaluation)).filter(|reason| !reason.is_empty()).collect();
    if reasons.len() > REASONS_NAMED {
        let more = reasons.len() - REASONS_NAMED;
        reasons.truncate(REASONS_NAMED);
        reasons.push(text::count(more, "more rule violated", "more rules violated"));
    }
    text::list(&reasons)
}

/// What a violated rule found: `2 cases have no answer`. Empty where another rule already says it.
fn violation(rule: &GateRule, evaluation: &Evaluation) -> String {
    let number = usize::try_from(rule.actual).unwrap_or(usize::MAX);
    let cases = |one: &str, many: &str| {
        let counted = text::count(number, "case", "cases");
        format!("{counted} {}", if number == 1 { one } else { many })
    };
    let found = match rule.code.as_str() {
        "lost" => {
            let lost = rule.test.map_or(rule.actual, |test| test.fell);
            return text::count(usize::try_from(lost).unwrap_or(usize::MAX), "case always fails", "cases always fail");
        }
        "lost_decided" => {
            let lost = rule.of.unwrap_or_default();
            let fail = if lost == 1 { "fails" } else { "fail" };
            let cases = text::count(usize::try_from(lost).unwrap_or(usize::MAX), "case", "cases");
            return format!("{cases} {fail} in every run of new, and the baseline is too short to exclude chance");
        }
        "regressed" | "broken" if rule.scope.is_none() => return besides_lost(rule, evaluation),
        "regressed" => cases("regressed", "regressed"),
        "broken" => cases("has no answer", "have no answer"),
        "still_broken" => cases("has no answer on either side", "have no answer on either side"),
        "invalid" => cases("has an invalid artifact", "have an invalid artifact"),
        "unpaired" => cases("is on one side only", "are on one side only"),
        "missing" => cases("is missing on new", "are missing on new"),
        "added" => cases("is on new only", "are on new only"),
        "added_failed" => {
            let fail = if number == 1 { "fails" } else { "fail" };
            format!("{} {fail}", text::count(number, "new case", "new cases"))
        }
        "not_comparable" => cases("has another input", "have another input"),
        "unmet" if rule.test.is_some() => "new meets the expectations of fewer cases".to_owned(),
        "unmet" => cases("does not meet the expectations", "do not meet the expectations"),
        "must" => cases("does not meet a hard expectation", "do not meet a hard expectation"),
        "high_risk_changed" => {
            cases("changed a high-risk action or lost a write", "changed a high-risk action or lost a write")
        }
        "fabricated" => cases("has a made-up argument", "have a made-up argument"),
        "failed_evidence" => cases("has evidence from a failed call", "have evidence from a failed call"),
        "signals" => cases("has a new signal", "have a new signal"),
        "unseen_high_risk" => cases(
            "has a high-risk action or argument that baseline never shows",
            "have high-risk actions or arguments that baseline never shows",
        ),
        "behaviour_changed" => cases("changed behaviour", "changed behaviour"),
        "text_faults" => cases("has a fault in its text", "have a fault in their text"),
        "secret_leaked" => cases("leaks a secret", "leak a secret"),
        "repeated_call" => cases("repeats a call", "repeat a call"),
        "suite_fell" => return suite_fell(rule, evaluation),
        "slower" => "cases are slower".to_owned(),
        "costlier" => "cases cost more".to_owned(),
        "longer" => "cases take more steps".to_owned(),
        "compared" => {
            let of = rule.of.unwrap_or_default();
            let noun = if of == 1 { "case" } else { "cases" };
            let verb = match evaluation.cases.iter().any(|case| case.verdict == Verdict::NotComparable) {
                true => "can be compared",
                false if of == 1 => "has answers on both sides",
                false => "have answers on both sides",
            };
            format!("only {} of {of} {noun} {verb}", rule.actual)
        }
        code => format!("{} {}", rule.actual, code.replace('_', " ")),
    };
    match &rule.scope {
        Some(scope) => format!("{found} ({})", name(scope)),
        None => found,
    }
}

/// The regressed or broken cases that the rule for lost cases does not count already.
fn besides_lost(rule: &GateRule, evaluation: &Evaluation) -> String {
    let names_lost = violated(&evaluation.gate).any(|rule| rule.code == "lost");
    let is_counted = |case: &&CaseEvaluation| {
        case.verdict.as_str() == rule.code && !case.unconfirmed && !(names_lost && is_lost(case))
    };
    let number = evaluation.cases.iter().filter(is_counted).count();
    let also = if names_lost { " more" } else { "" };
    match (number, rule.code.as_str()) {
        (0, _) => String::new(),
        (1, "broken") => format!("1{also} case has no answer"),
        (number, "broken") => format!("{number}{also} cases have no answer"),
        (1, _) => format!("1{also} case regressed"),
        (number, _) => format!("{number}{also} cases regressed"),
    }
}

/// A fall of the suite, or of a named suite, with its counts.
fn suite_fell(rule: &GateRule, evaluation: &Evaluation) -> String {
    if let Some(scope) = &rule.scope {
        return format!("{} solves fewer cases", name(scope));
    }
    let solved = evaluation.suite.iter().find(|measure| measure.code == MeasureCode::Solved);
    let counts = solved.map(|SuiteMeasure { baseline, new, .. }| {
        format!(", {} of {} instead of {} of {}", new.passed, new.runs, baseline.passed, baseline.runs)
    });
    let fewer = match judged_by(evaluation) {
        JudgedBy::Expectations => "fewer runs solve their cases",
        JudgedBy::Evidence => "fewer runs have an answer with evidence",
        JudgedBy::Answer => "fewer runs have an answer",
    };
    format!("{fewer}{}", counts.unwrap_or_default())
}

fn name(scope: &GateScope) -> String {
    text::one_line(&scope.to_string(), SCOPE_NAMED)
}

/// What a passed gate has to say about cases that look worse.
fn passed(evaluation: &Evaluation) -> String {
    let convicted = match with_standing(evaluation, Standing::Convicted) {
        0 => None,
        number => Some(format!("{} got worse, within the limits", text::count(number, "case", "cases"))),
    };
    // The gate does not count these, and a reader of the first line alone must not miss them.
    let to_review = match review::changed_high_risk(&evaluation.gate) {
        0 => None,
        number => Some(format!("{} with a changed high-risk action to review", text::count(number, "case", "cases"))),
    };
    let found: Vec<_> = convicted.into_iter().chain(unconfirmed(evaluation)).chain(to_review).collect();
    if found.is_empty() { "no case got worse".to_owned() } else { found.join("; ") }
}

fn with_standing(evaluation: &Evaluation, standing: Standing) -> usize {
    worst_first(evaluation).iter().filter(|ranked: &&RankedCase<'_>| ranked.standing == standing).count()
}

/// How many cases look worse and are not confirmed.
fn unconfirmed(evaluation: &Evaluation) -> Option<String> {
    match with_standing(evaluation, Standing::Unconfirmed) {
        0 => None,
        1 => Some("1 case looks worse, unconfirmed".to_owned()),
        number => Some(format!("{number} cases look worse, unconfirmed")),
    }
}

/// Whether cases look worse in the only run of new, which no test can decide. A gate that passes then is not an all-clear.
pub fn is_unconfirmed(evaluation: &Evaluation) -> bool {
    unconfirmed_in_one_run(evaluation).is_some()
}

/// How many cases look worse in the only run of new. `None` if there are several runs, or no such case.
fn unconfirmed_in_one_run(evaluation: &Evaluation) -> Option<String> {
    let is_one_run = evaluation.repeats.as_ref().is_none_or(|repeats| repeats.new.len() == 1);
    let number = if is_one_run { with_standing(evaluation, Standing::Unconfirmed) } else { 0 };
    let looks = if number == 1 { "looks" } else { "look" };
    (number > 0)
        .then(|| format!("{} {looks} worse, and one run does not exclude chance", text::count(number, "case", "cases")))
}

/// What limits the meaning of the headline, one sentence each without a full stop.
pub fn qualifications(evaluation: &Evaluation) -> Vec<String> {
    let mut sentences = Vec::new();
    if evaluation.gate.outcome == GateOutcome::NotJudged {
        sentences.push(
            "Differences alone do not show whether new is worse: add expectations to the cases, or compare several runs per side"
                .to_owned(),
        );
    } else if lacks_expectations(evaluation) && !is_alone(evaluation) {
        sentences.push("No expectations were judged; the gate only compares new with baseline".to_owned());
    }
    sentences
}

/// What decides whether a run solves its case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JudgedBy {
    Expectations,
    /// No expectation was judged, and some answers lack evidence.
    Evidence,
    /// No expectation was judged, and no answer lacks evidence.
    Answer,
}

/// What decides it, by the expectations that were judged and the measures of the suite.
pub(crate) fn judged_by(evaluation: &Evaluation) -> JudgedBy {
    if !lacks_expectations(evaluation) {
        return JudgedBy::Expectations;
    }
    let passed = |code| {
        let measure = evaluation.suite.iter().find(|measure| measure.code == code);
        measure.map(|measure| [measure.baseline.passed, measure.new.passed])
    };
    if passed(MeasureCode::Solved) == passed(MeasureCode::Answered) { JudgedBy::Answer } else { JudgedBy::Evidence }
}

/// Whether the gate rests on differences alone, because no expectation could be judged on any answer of new. Such a
/// gate cannot tell right from wrong.
pub(crate) fn lacks_expectations(evaluation: &Evaluation) -> bool {
    let is_judged = evaluation.cases.iter().any(CaseEvaluation::is_judged_on_new);
    !is_judged && evaluation.gate.outcome != GateOutcome::NotEnoughData
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::evaluation::Repeats;
    use serde_json::{Value, json};

    use super::*;
    use crate::gate::standing::tests::{case, evaluation, rule};

    fn says(outcome: &str, cases: &Value, rules: &Value) -> String {
        headline(&evaluation(outcome, cases, rules))
    }

    fn lost(number: u64) -> Value {
        let mut lost = rule("lost", number, false);
        lost["test"] = json!({"p": 0.001, "level": 0.02, "fell": number, "rose": 0, "expected": 0.2});
        lost
    }

    #[test]
    fn a_failed_gate_names_its_reasons_and_counts_no_case_twice() {
        let always = [case("a", "regressed", [5, 0]), case("b", "regressed", [5, 0]), case("c", "regressed", [5, 0])];
        let three = json!(always);
        let rules = json!([rule("regressed", 3, false), lost(3)]);
        assert_eq!(says("failed", &three, &rules), "Gate failed: 3 cases always fail");
        let four = json!([always[0], always[1], always[2], case("d", "regressed", [5, 2])]);
        let rules = json!([rule("regressed", 4, false), lost(3), rule("must", 1, false)]);
        assert_eq!(
            says("failed", &four, &rules),
            "Gate failed: 3 cases always fail, 1 more case regressed and 1 case does not meet a hard expectation"
        );
        let rules = json!([rule("regressed", 1, false)]);
        assert_eq!(says("failed", &json!([always[0]]), &rules), "Gate failed: 1 case regressed");
    }

    #[test]
    fn a_fallen_suite_is_named() {
        let mut suite = rule("suite_fell", 1, false);
        suite["scope"] = json!({"kind": "suite", "name": "refunds"});
        assert_eq!(says("failed", &json!([]), &json!([suite])), "Gate failed: suite refunds solves fewer cases");
    }

    #[test]
    fn a_rule_without_words_of_its_own_is_named_by_its_code() {
        assert_eq!(
            says("failed", &json!([]), &json!([rule("some_new_rule", 2, false)])),
            "Gate failed: 2 some new rule"
        );
    }

    #[test]
    fn a_passed_gate_says_what_looks_worse() {
        // A comparison of several runs per side.
        let several = |outcome: &str, cases: &Value, rules: &Value| {
            let mut found = evaluation(outcome, cases, rules);
            let runs = vec![found.new.clone(); 5];
            found.repeats = Some(Repeats { baseline: runs.clone(), new: runs, suite: Vec::new() });
            headline(&found)
        };
        let rules = json!([rule("regressed", 0, true)]);
        let same = case("a", "unchanged", [5, 5]);
        assert_eq!(says("passed", &json!([same]), &rules), "Gate passed: no case got worse");
        let open = json!([same, case("b", "undecided", [5, 0])]);
        assert_eq!(several("passed", &open, &rules), "Gate passed: 1 case looks worse, unconfirmed");
        assert_eq!(
            says("passed", &open, &rules),
            "Not confirmed: 1 case looks worse, and one run does not exclude chance; no rule of the gate is violated"
        );
        let allowed = json!([case("a", "regressed", [5, 0]), case("b", "undecided", [5, 0])]);
        assert_eq!(
            several("passed", &allowed, &rules),
            "Gate passed: 1 case got worse, within the limits; 1 case looks worse, unconfirmed"
        );
    }

    #[test]
    fn an_undecided_gate_says_how_many_cases_were_compared() {
        let mut compared = rule("compared", 6, false);
        (compared["bound"], compared["of"]) = (json!("at_least"), json!(10));
        assert_eq!(
            says("not_enough_data", &json!([]), &json!([compared])),
            "Gate undecided: only 6 of 10 cases have answers on both sides"
        );
        let open = json!([case("b", "undecided", [5, 0])]);
        assert_eq!(
            says("not_enough_data", &open, &json!([compared])),
            "Gate undecided: only 6 of 10 cases have answers on both sides; 1 case looks worse, unconfirmed"
        );
    }
}
