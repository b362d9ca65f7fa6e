//! Messages about a whole evaluation: the gate, its rules, and the changes.

use counterproof_artifact::evaluation::{
    Bound, ComparedRun, Evaluation, GateRule, GateScope, MeasureCode, Rate, SuiteMeasure, Verdict,
};

use crate::gate::{self, UnknownScope};
use crate::messages::{self, measure, probability};
use crate::values::text;

const SCOPE_NAMED: usize = 60;

const SCOPES_NAMED: usize = 12;

/// The gate's headline and the sentences that qualify it, in one line.
pub fn outcome(evaluation: &Evaluation) -> String {
    let mut sentences = vec![gate::headline(&evaluation.gate)];
    sentences.extend(gate::qualifications(evaluation));
    sentences.join(". ")
}

/// What a rule counts, and its scope: `still broken`, `regressed, tag money`.
pub fn rule(rule: &GateRule) -> String {
    let code = rule.code.replace('_', " ");
    match &rule.scope {
        None => code,
        Some(scope) => format!("{code}, {}", text::one_line(&scope.to_string(), SCOPE_NAMED)),
    }
}

/// A rule's limit: `at most 0`, `at most 3 (2 % of 150)`.
pub fn limit(rule: &GateRule) -> String {
    if gate::USAGE_CODES.contains(&rule.code.as_str()) {
        return growth_limit(rule);
    }
    let bound = match rule.bound {
        Bound::AtMost => "at most",
        Bound::AtLeast => "at least",
    };
    let of = rule.of.unwrap_or_default();
    if let (Some(test), true) = (&rule.test, rule.code == "unmet") {
        let verb = if rule.passed { "not significantly more" } else { "significantly more" };
        return format!(
            "{verb} than baseline on the same cases ({} worse, {} better, p {})",
            test.fell,
            test.rose,
            probability(test.p)
        );
    }
    if let (Some(test), "unseen_high_risk") = (&rule.test, rule.code.as_str()) {
        let verb = if rule.passed { "no more than chance explains" } else { "more than chance explains" };
        return format!("{verb} (p {}, level {})", probability(test.p), test.level);
    }
    if let (Some(test), "lost") = (&rule.test, rule.code.as_str()) {
        return match rule.passed {
            true if test.fell == 0 => "none".to_owned(),
            true => "no more than chance explains".to_owned(),
            // Rounded up, since it is a bound.
            false => {
                let expected = (test.expected.unwrap_or_default() * 10.0).ceil() / 10.0;
                format!("at most {expected} of these {} by chance", test.fell)
            }
        };
    }
    let mut sentence = match (rule.limit, rule.share) {
        (None, _) => "no limit".to_owned(),
        (Some(limit), None) => format!("{bound} {limit}"),
        (Some(limit), Some(share)) => format!("{bound} {limit} ({share} of {of})"),
    };
    // A rule over all cases shows this by its count.
    if rule.scope.is_some() && rule.of == Some(0) {
        sentence.push_str("; no case is in this scope");
    }
    sentence
}

/// The limit of a rule on time, size or cost: `at most +20 %`.
fn growth_limit(rule: &GateRule) -> String {
    let limit = match (rule.limit, rule.share) {
        (None, _) => "no limit".to_owned(),
        (Some(_), None) => "no rise beyond chance".to_owned(),
        (Some(_), Some(share)) => format!("at most {share} more"),
    };
    let p = rule.test.as_ref().map(|test| format!("; p {}", probability(test.p))).unwrap_or_default();
    if rule.of == Some(0) { format!("{limit}; not reported") } else { format!("{limit}{p}") }
}

/// A warning about rules that are always met, since no case is in their scope.
pub fn unknown_scope(unknown: &UnknownScope) -> String {
    let (table, lacking, known) = match &unknown.scope {
        GateScope::Risk(level) => (format!("risk.{level}"), "no compared case has this risk", "their risks"),
        GateScope::Tag(tag) => (format!("tag.{tag}"), "no case of the cases file has this tag", "the tags"),
        GateScope::Suite(suite) => {
            (format!("suite.{suite}"), "no case of the cases file is in this suite", "the suites")
        }
    };
    let mut names: Vec<_> =
        unknown.known.iter().take(SCOPES_NAMED).map(|name| text::one_line(name, SCOPE_NAMED)).collect();
    if unknown.known.len() > SCOPES_NAMED {
        names.push(format!("{} more", unknown.known.len() - SCOPES_NAMED));
    }
    let known =
        if names.is_empty() { "there are none".to_owned() } else { format!("{known} are {}", text::list(&names)) };
    format!("the rules of `[gate.{}]` are always met: {lacking}; {known}", text::one_line(&table, SCOPE_NAMED))
}

fn all(judged: usize) -> String {
    if judged == 1 { "the 1 judged case".to_owned() } else { format!("all {judged} judged cases") }
}

/// How many cases differ, and in how many new meets the expectations.
pub fn case_summary(evaluation: &Evaluation) -> String {
    let judged = evaluation.cases.iter().filter(|case| case.is_judged_on_new()).count();
    let unmet: Vec<_> =
        evaluation.cases.iter().filter(|case| case.is_judged_on_new() && case.is_unmet_on_new()).collect();
    let moved = differing(evaluation);
    let expectations = match (judged, unmet.len()) {
        // The gate's qualifications already have it.
        (0, _) if gate::lacks_expectations(evaluation) => return moved,
        (0, _) => "no expectations were judged".to_owned(),
        (judged, 0) => format!("new meets the expectations of {}", all(judged)),
        (judged, failed) => {
            let old = unmet.iter().filter(|case| case.was_unmet_before()).count();
            let old = if old > 0 { format!(", {old} of them also unmet on baseline") } else { String::new() };
            format!("new does not meet the expectations of {failed} of {judged} judged cases{old}")
        }
    };
    format!("{moved}; {expectations}")
}

/// How many cases differ; with several runs per side, how many by more than chance, and how many are undecided.
fn differing(evaluation: &Evaluation) -> String {
    let stays = |verdict: Verdict| {
        matches!(verdict, Verdict::Unchanged | Verdict::Undecided | Verdict::Noisy | Verdict::StillBroken)
    };
    let moved = evaluation.cases.iter().filter(|case| !stays(case.verdict)).count();
    let undecided = evaluation.cases.iter().filter(|case| case.verdict == Verdict::Undecided).count();
    let verb = if moved == 1 { "differs" } else { "differ" };
    let moved = format!("{moved} of {} {verb}", text::count(evaluation.cases.len(), "case", "cases"));
    if undecided == 0 { moved } else { format!("{moved} by more than chance, {undecided} undecided") }
}

/// How many of the cases with a verdict are unconfirmed, after their number: ` (unconfirmed)`, ` (2 unconfirmed)`. Empty if none is.
pub fn unconfirmed(evaluation: &Evaluation, verdict: Verdict) -> String {
    let cases: Vec<_> = evaluation.cases.iter().filter(|case| case.verdict == verdict).collect();
    match cases.iter().filter(|case| case.unconfirmed).count() {
        0 => String::new(),
        all if all == cases.len() => " (unconfirmed)".to_owned(),
        some => format!(" ({some} unconfirmed)"),
    }
}

/// Which runs were compared.
pub fn compared(evaluation: &Evaluation) -> String {
    let side = |one: &ComparedRun, all: Option<&Vec<ComparedRun>>| match all.map(Vec::as_slice) {
        Some([first, others @ ..]) if !others.is_empty() => format!("{} and {} more", first.run_id, others.len()),
        _ => one.run_id.to_string(),
    };
    let repeats = evaluation.repeats.as_ref();
    let baseline = side(&evaluation.baseline, repeats.map(|repeats| &repeats.baseline));
    format!("new {} compared with baseline {baseline}", side(&evaluation.new, repeats.map(|repeats| &repeats.new)))
}

/// How many runs each side has; with one run, that noise cannot be measured.
pub fn repeats(evaluation: &Evaluation) -> String {
    match &evaluation.repeats {
        Some(repeats) => format!(
            "{} of baseline and {} of new",
            text::count(repeats.baseline.len(), "run", "runs"),
            text::count(repeats.new.len(), "run", "runs")
        ),
        None if evaluation.deterministic => "one run per side; the agent is declared deterministic".to_owned(),
        None => {
            "one run per side: changes cannot be distinguished from the agent's own noise; repeat the baseline to measure it"
                .to_owned()
        }
    }
}

/// One message for each measure whose rate over all cases differs between the sides.
pub fn suite(evaluation: &Evaluation) -> Vec<String> {
    // Evaluations of earlier versions list the measures with the repeats only.
    let stored = evaluation.repeats.iter().flat_map(|repeats| &repeats.suite);
    let measures: Vec<_> =
        if evaluation.suite.is_empty() { stored.collect() } else { evaluation.suite.iter().collect() };
    let counts = |suite: &SuiteMeasure| [&suite.baseline, &suite.new].map(|rate| (rate.passed, rate.runs));
    let is_explained = |suite: &SuiteMeasure| {
        suite.code == MeasureCode::Solved
            && measures.iter().any(|part| part.code != MeasureCode::Solved && counts(part) == counts(suite))
    };
    let part = |rate: &Rate| rate.passed as f64 / rate.runs.max(1) as f64;
    let measures = measures.iter().copied().filter(|suite| !is_explained(suite));
    let moved = measures.filter(|suite| (part(&suite.baseline) - part(&suite.new)).abs() > 1e-9);
    let sentence = |suite: &SuiteMeasure| {
        let fell = if suite.fell { ", a significant fall" } else { "" };
        format!(
            "{} in {}, baseline in {} (p {}){fell}",
            measure(suite.code),
            share(&suite.new),
            share(&suite.baseline),
            probability(suite.p)
        )
    };
    moved.map(sentence).collect()
}

/// The means per case of time, size and cost, in one line; `None` if no case has an answer on both sides.
pub fn usage(evaluation: &Evaluation) -> Option<String> {
    let means: Vec<_> = evaluation.usage.iter().map(messages::usage::mean_per_case).collect();
    (!means.is_empty()).then(|| format!("per case: {}", means.join(", ")))
}

/// A rate over all cases with its number of runs. Where repeats stop when they have decided, only the runs that select every
/// case are counted.
fn share(rate: &Rate) -> String {
    format!("{} of {} runs ({:.1} %)", rate.passed, rate.runs, 100.0 * rate.passed as f64 / rate.runs.max(1) as f64)
}
