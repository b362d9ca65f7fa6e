//! Messages about a whole evaluation: the gate, its rules, and the changes.

use counterproof_artifact::evaluation::{
    Bound, CaseEvaluation, ComparedRun, Evaluation, Gate, GateRule, GateScope, MeasureCode, Rate, Reason, SuiteMeasure,
    UsageCode, UsageMeasure, Verdict,
};

use crate::gate::{self, AddedCase, JudgedBy, RankedCase, UnknownScope};
use crate::judge::ReasonCode;
use crate::messages::{self, measure, probability, usage};
use crate::repeats;
use crate::values::text;

const SCOPE_NAMED: usize = 60;

const SCOPES_NAMED: usize = 12;

/// The gate's headline and the sentences that qualify it, in one line.
pub fn outcome(evaluation: &Evaluation) -> String {
    let mut sentences = vec![gate::headline(evaluation)];
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

/// A rule's limit: `at most 0`, `at most 3 (2 % of 150)`. Without the numbers of its test, which are in [`tested`].
pub fn limit(rule: &GateRule) -> String {
    if gate::USAGE_CODES.contains(&rule.code.as_str()) {
        return growth_limit(rule);
    }
    let bound = match rule.bound {
        Bound::AtMost => "at most",
        Bound::AtLeast => "at least",
    };
    let of = rule.of.unwrap_or_default();
    let verb = if rule.passed { "no more" } else { "more" };
    match (&rule.test, rule.code.as_str()) {
        (Some(test), "unmet") => {
            let cases = format!("{} worse, {} better", test.fell, test.rose);
            let verb =
                if rule.passed { "no more than baseline, or by chance" } else { "more than baseline, not by chance" };
            return format!("{verb} ({cases})");
        }
        (Some(test), "lost") if rule.passed && test.fell == 0 => return "none".to_owned(),
        (Some(test), "lost") if !rule.passed => {
            // Rounded up, since it is a bound.
            let expected = (test.expected.unwrap_or_default() * 10.0).ceil() / 10.0;
            return format!("at most {expected} of these {} by chance", test.fell);
        }
        (Some(_), "lost" | "unseen_high_risk") => return format!("{verb} than chance explains"),
        _ => {}
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
    if rule.of == Some(0) { format!("{limit}; not reported") } else { limit }
}

/// A rule's limit with the numbers of the test that decided it: `at most 0; p 0.062, level 0.05`. Nothing that a deterministic
/// agent does is chance, so no test decides there.
pub fn tested(rule: &GateRule, evaluation: &Evaluation) -> String {
    let test = rule.test.as_ref().filter(|_| !evaluation.deterministic).map(|test| {
        // A share of the level of the night, such as 0.05 × 0.4, has many digits.
        format!("; p {}, level {}", probability(test.p), (test.level * 1e4).round() / 1e4)
    });
    limit(rule) + &test.unwrap_or_default()
}

/// How many rules are met besides the violated ones: `18 other rules are met`. `None` if no rule is met.
pub fn met_rules(gate: &Gate) -> Option<String> {
    let met = gate.rules.iter().filter(|rule| rule.passed && rule.is_limited()).count();
    let other = if gate.rules.iter().all(|rule| rule.passed) { "" } else { "other " };
    match met {
        0 => None,
        1 => Some(format!("1 {other}rule is met")),
        met => Some(format!("{met} {other}rules are met")),
    }
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
        (0, _) if gate::lacks_expectations(evaluation) => return format!("{moved}{}", added(evaluation)),
        (0, _) => "no expectations were judged".to_owned(),
        (judged, 0) => format!("new meets the expectations of {}", all(judged)),
        (judged, failed) => {
            let old = unmet.iter().filter(|case| case.was_unmet_before()).count();
            let old = if old > 0 { format!(", {old} of them also unmet on baseline") } else { String::new() };
            format!("new does not meet the expectations of {failed} of {judged} judged cases{old}")
        }
    };
    format!("{moved}; {expectations}{}", added(evaluation))
}

/// How many cases were added after the baseline: `; 2 new cases: judged by their expectations`. Empty if none was.
fn added(evaluation: &Evaluation) -> String {
    match evaluation.cases.iter().filter(|case| AddedCase::find(case).is_some()).count() {
        0 => String::new(),
        1 => "; 1 new case: judged by its expectations".to_owned(),
        number => format!("; {number} new cases: judged by their expectations"),
    }
}

/// How many cases differ, and how many are undecided.
fn differing(evaluation: &Evaluation) -> String {
    let stays = |verdict: Verdict| {
        use Verdict::{Noisy, NotComparable, StillBroken, Unchanged, Undecided};
        matches!(verdict, Unchanged | Undecided | Noisy | StillBroken | NotComparable)
    };
    let is_added = |case: &CaseEvaluation| AddedCase::find(case).is_some();
    let moved = evaluation.cases.iter().filter(|case| !stays(case.verdict) && !is_added(case)).count();
    let undecided = evaluation.cases.iter().filter(|case| case.verdict == Verdict::Undecided).count();
    let verb = if moved == 1 || evaluation.cases.len() == 1 { "differs" } else { "differ" };
    let moved = format!("{moved} of {} {verb}", text::count(evaluation.cases.len(), "case", "cases"));
    if undecided == 0 { moved } else { format!("{moved}, {undecided} undecided") }
}

/// How many of the cases with a verdict are unconfirmed, after their number: ` (unconfirmed)`, ` (2 unconfirmed)`. Empty if none is.
pub fn unconfirmed<'a>(cases: impl IntoIterator<Item = &'a CaseEvaluation>, verdict: Verdict) -> String {
    let cases: Vec<_> = cases.into_iter().filter(|case| case.verdict == verdict).collect();
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
        let rates = format!("{} in {}, baseline in {}", measure(suite.code), share(&suite.new), share(&suite.baseline));
        match (evaluation.deterministic, suite.fell) {
            (true, _) => rates,
            (false, false) => format!("{rates} (p {})", probability(suite.p)),
            (false, true) => format!("{rates} (p {}), a significant fall", probability(suite.p)),
        }
    };
    moved.map(sentence).collect()
}

/// A row of the table of rates and quantities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    /// What is counted or measured.
    pub name: String,
    /// The value of the baseline.
    pub baseline: String,
    /// The value of new.
    pub new: String,
    /// The change, with whether it may be chance.
    pub change: String,
}

/// The solved runs, and the means per case of duration, steps, tokens and cost. Without what no side has.
pub fn table(evaluation: &Evaluation) -> Vec<TableRow> {
    let solved = evaluation.suite.iter().find(|suite| suite.code == MeasureCode::Solved);
    let shown = evaluation.usage.iter().filter(|measure| measure.code != UsageCode::ToolTime);
    solved.map(|solved| solved_row(evaluation, solved)).into_iter().chain(shown.map(usage_row)).collect()
}

/// The mean per case of the time of all tool results. `None` if no side has it.
pub fn tool_time(evaluation: &Evaluation) -> Option<TableRow> {
    let measure = |code: UsageCode| evaluation.usage.iter().find(|measure| measure.code == code);
    let tools = measure(UsageCode::ToolTime)?;
    let row = usage_row(tools);
    if !measure(UsageCode::Duration).is_some_and(|whole| is_longer(tools, whole)) {
        return Some(row);
    }
    let unknown = || "–".to_owned();
    Some(TableRow { baseline: unknown(), new: unknown(), change: usage::LONGER_THAN_WHOLE.to_owned(), ..row })
}

/// Whether tools take longer than the whole, as those that are simulated may state.
fn is_longer(tools: &UsageMeasure, whole: &UsageMeasure) -> bool {
    let mean = |measure: &UsageMeasure, sum: f64| sum / measure.cases.max(1) as f64;
    mean(tools, tools.baseline.value()) > mean(whole, whole.baseline.value())
        || mean(tools, tools.new.value()) > mean(whole, whole.new.value())
}

fn solved_row(evaluation: &Evaluation, solved: &SuiteMeasure) -> TableRow {
    let share = |rate: &Rate| 100.0 * rate.passed as f64 / rate.runs.max(1) as f64;
    let value = |rate: &Rate| format!("{} of {} ({:.0} %)", rate.passed, rate.runs, share(rate));
    let counted = |points: f64| match format!("{points:.0}") {
        one if one == "1" => "1 point".to_owned(),
        points => format!("{points} points"),
    };
    let change = match share(&solved.new) - share(&solved.baseline) {
        rise if rise > 0.05 => format!("+{}", counted(rise)),
        fall if fall < -0.05 => {
            // Nothing that a deterministic agent does is chance.
            let chance = match (evaluation.deterministic, solved.fell) {
                (true, _) => "",
                (false, true) => ", not chance",
                (false, false) => ", may be chance",
            };
            format!("−{}{chance}", counted(-fall))
        }
        _ => "unchanged".to_owned(),
    };
    // The cases of a confirmation are selected for their failures, so their further runs are no part of the rate.
    let in_cases = |case: &CaseEvaluation| case.measure(MeasureCode::Solved).map_or(0, |measure| measure.new.runs);
    let has_confirmation = evaluation.cases.iter().map(in_cases).sum::<u64>() > solved.new.runs;
    let (baseline, new) = (value(&solved.baseline), value(&solved.new));
    let solved = match gate::judged_by(evaluation) {
        JudgedBy::Expectations => "solved",
        JudgedBy::Evidence => "with evidence",
        JudgedBy::Answer => "answered",
    };
    let name = if has_confirmation { format!("{solved}, before confirmation") } else { solved.to_owned() };
    TableRow { name, baseline, new, change }
}

fn usage_row(measure: &UsageMeasure) -> TableRow {
    let mean = |sum: f64| usage::amount(measure.code, sum / measure.cases.max(1) as f64, measure.currency.as_deref());
    let (baseline, new) = (measure.baseline.value(), measure.new.value());
    let chance = if usage::rose(measure) { ", not chance" } else { "" };
    TableRow {
        name: usage::quantity(measure.code).to_owned(),
        baseline: mean(baseline),
        new: mean(new),
        change: format!("{}{chance}", usage::change(baseline, new)),
    }
}

/// A case in one line: what it was expected to do or did, and in how many runs of each side.
pub fn case_line(evaluation: &Evaluation, ranked: &RankedCase<'_>) -> String {
    let case = ranked.case;
    // A rule that counts review items says more about its cases than their first difference.
    let item = ranked.violated.filter(|_| !is_worse(case)).and_then(|rule| gate::item_of(evaluation, case, rule));
    let mut line = item.or_else(|| main_reason(case).map(str::to_owned)).unwrap_or_default();
    if let Some(runs) = runs(case) {
        line.push_str(if line.is_empty() { "" } else { "; " });
        line.push_str(&runs);
    }
    line
}

const fn is_worse(case: &CaseEvaluation) -> bool {
    matches!(case.verdict, Verdict::Regressed | Verdict::Broken)
}

/// The reason that names what the case did: an expectation first, then whatever is not about the number of runs.
pub fn main_reason(case: &CaseEvaluation) -> Option<&str> {
    let is_of = |codes: &[ReasonCode], reason: &Reason| codes.iter().any(|code| code.is_code_of(reason));
    let expected = [ReasonCode::MustUnmet, ReasonCode::ExpectationFailed];
    let over_runs = [
        ReasonCode::PassRateFell,
        ReasonCode::PassRateMayHaveFallen,
        ReasonCode::PassRateUndecided,
        ReasonCode::BeyondNoise,
        ReasonCode::DifferenceUndecided,
        ReasonCode::Noise,
    ];
    let reasons = &case.reasons;
    let first = reasons.iter().find(|reason| is_of(&expected, reason));
    let first = first.or_else(|| reasons.iter().find(|reason| !is_of(&over_runs, reason)));
    // The counts follow, so a reason about them alone adds nothing.
    let first = first.or_else(|| reasons.first().filter(|_| runs(case).is_none()));
    first.map(|reason| reason.message.as_str())
}

/// How many runs of each side passed the measure that fell: `expectations met in 0 of 5 runs, baseline in 5 of 5`.
fn runs(case: &CaseEvaluation) -> Option<String> {
    let measures = &case.repeats.as_ref()?.measures;
    let fell = repeats::explaining(measures).into_iter().find(|measure| measure.is_lower_on_new())?;
    Some(messages::counts(fell))
}

/// A rate over all cases with its number of runs. Where repeats stop when they have decided, only the runs that select every
/// case are counted.
fn share(rate: &Rate) -> String {
    format!("{} of {} runs ({:.1} %)", rate.passed, rate.runs, 100.0 * rate.passed as f64 / rate.runs.max(1) as f64)
}
