//! The rules of the gate: what each of them counts, and its limit. [`super::config`] reads the limits from
//! `counterproof.toml`, [`super::evaluate`] applies them.

use std::collections::BTreeMap;

use counterproof_artifact::evaluation::{
    Bound, CaseEvaluation, GateRule, GateScope, MeasureCode, RuleTest, SuiteMeasure, UsageCode, UsageMeasure, Verdict,
};
use counterproof_artifact::{RiskLevel, Share};
use counterproof_cases::CaseSpec;

use super::review::{ReviewCode, ReviewSet};
use crate::judge::{ReasonCode, code_enum};
use crate::messages::usage as messages;
use crate::statistics::usage;

code_enum! {
    /// What a rule counts, in the order in which rules are shown.
    pub Measure {
        Regressed "regressed" "Cases that got worse."
        Broken "broken" "Cases that new could not run and the baseline could: these have a separate limit, apart from regressions."
        Unconfirmed "unconfirmed" "Cases that got worse or broke in one run per side, which may be chance."
        StillBroken "still_broken" "Cases that neither side could run."
        Invalid "invalid" "Cases with an artifact that breaks the contract."
        Unpaired "unpaired" "Cases that only one side has, without those that were added after the baseline."
        Missing "missing" "Cases that only the baseline has."
        Added "added" "Cases that only new has."
        AddedFailed "added_failed" "Cases that were added after the baseline, and that new does not answer or whose expectations it does not meet."
        NotComparable "not_comparable" "Cases that the sides were asked with different inputs."
        Changed "changed" "Cases that differ, and nothing says for better or worse."
        Undecided "undecided" "Cases that differ, with too few runs to tell whether by more than chance."
        Noisy "noisy" "Cases that differ no more than the baseline differs from itself."
        Improved "improved" "Cases that got better."
        Recovered "recovered" "Cases that new could run and the baseline could not."
        Unmet "unmet" "Cases in which new does not meet what the cases file expects, whether or not the baseline did."
        Must "must" "Cases in which new does not meet a hard expectation in any run."
        HighRiskChanged "high_risk_changed" "Cases with a high-risk action that was added, removed or changed, or a write that fails on new."
        Fabricated "fabricated" "Cases with a made-up argument of a high-risk action that took effect."
        FailedEvidence "failed_evidence" "Cases with an action whose only evidence is failed results, in more than a single run that may be chance."
        RepeatedCall "repeated_call" "Cases in which new repeats a call far more often than the baseline ever does."
        Signals "signals" "Cases with a signal that the baseline does not have."
        BehaviourChanged "behaviour_changed" "Cases in which a deterministic agent does something else: another action, another object, or an action without what it waited for."
        TextFaults "text_faults" "Cases in which a text of the agent has a fault."
        SecretLeaked "secret_leaked" "Cases in which a secret leaves the agent, and leaves it in no run of the baseline."
        Compared "compared" "Cases in which both sides answered: with fewer than the limit, the gate says that it has not enough data."
    }
}

/// The default share of the cases that need an answer on both sides.
const MIN_COMPARED_PERCENT: &str = "80 %";

/// How many are allowed; of [`Measure::Compared`], how many are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Any number: the count is for information.
    None,
    /// So many.
    Count(u64),
    /// This share of the cases that the rule looks at.
    Share(Share),
    /// Not significantly more than the baseline on the same cases. Only for [`Measure::Unmet`].
    Baseline,
}

/// The `[gate]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRules {
    /// Whether the combined measure may fall over all cases together.
    pub suite_fell: Limit,
    /// Cases that new fails in every run and the baseline in none, tested over all cases. Only the limit 0, which lets the test
    /// decide, and none are allowed.
    pub lost: Limit,
    /// High-risk actions and arguments that no run of the baseline shows, tested over all cases. Only the limit 0, which lets
    /// the test decide, and none are allowed.
    pub unseen_high_risk: Limit,
    /// How much slower, costlier and longer the cases may get.
    pub usage: UsageLimits,
    pub(super) overall: BTreeMap<Measure, Limit>,
    pub(super) scopes: Vec<ScopeRules>,
}

/// The rules for some of the cases, such as `[gate.tag.money]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeRules {
    /// Which cases.
    pub scope: GateScope,
    /// The limits by measure; other measures have no rule in this scope.
    pub limits: BTreeMap<Measure, Limit>,
}

impl Default for GateRules {
    fn default() -> Self {
        let zero = Limit::Count(0);
        let overall = [
            (Measure::Regressed, zero),
            (Measure::Broken, zero),
            (Measure::Unconfirmed, Limit::None),
            (Measure::StillBroken, Limit::None),
            (Measure::Invalid, zero),
            (Measure::Unpaired, zero),
            (Measure::AddedFailed, zero),
            (Measure::Changed, Limit::None),
            (Measure::Undecided, Limit::None),
            (Measure::Unmet, Limit::Baseline),
            (Measure::Must, zero),
            (Measure::Fabricated, zero),
            (Measure::FailedEvidence, zero),
            (Measure::SecretLeaked, zero),
            (Measure::Compared, MIN_COMPARED_PERCENT.parse().map_or(Limit::Count(1), Limit::Share)),
        ];
        let overall = overall.into_iter().collect();
        Self {
            suite_fell: zero,
            lost: zero,
            unseen_high_risk: zero,
            usage: UsageLimits::default(),
            overall,
            scopes: Vec::new(),
        }
    }
}

impl GateRules {
    /// The same with another limit for all cases.
    #[must_use]
    pub fn with(mut self, measure: Measure, limit: Limit) -> Self {
        self.overall.insert(measure, limit);
        self
    }

    /// The same with the limits whose default depends on the agent, unless the file sets another. The runs of a deterministic
    /// agent differ only where its versions do, so that one risky difference is enough.
    #[must_use]
    pub(crate) fn for_agent(&self, is_deterministic: bool) -> Self {
        let defaults: &[(Measure, Limit)] = if is_deterministic {
            let zero = Limit::Count(0);
            &[
                (Measure::HighRiskChanged, zero),
                (Measure::RepeatedCall, zero),
                (Measure::Signals, zero),
                (Measure::BehaviourChanged, zero),
                (Measure::TextFaults, zero),
            ]
        } else {
            &[(Measure::HighRiskChanged, Limit::None)]
        };
        let mut rules = self.clone();
        for (measure, limit) in defaults {
            rules.overall.entry(*measure).or_insert(*limit);
        }
        rules
    }

    /// The limits for all cases.
    pub const fn overall(&self) -> &BTreeMap<Measure, Limit> {
        &self.overall
    }

    /// The limits for some of the cases: in the order in which the file's reader gives its tables, by name.
    pub fn scopes(&self) -> &[ScopeRules] {
        &self.scopes
    }

    /// The first scope that needs a cases file.
    pub fn needs_cases(&self) -> Option<&GateScope> {
        let known_from_cases = |scope: &&GateScope| matches!(scope, GateScope::Tag(_) | GateScope::Suite(_));
        self.scopes.iter().map(|limits| &limits.scope).find(known_from_cases)
    }
}

/// How much a quantity may grow from baseline to new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GrowthLimit {
    /// By any amount.
    #[default]
    None,
    /// By this share. Zero allows no growth that is more than chance.
    Share(Share),
}

/// The limits on time, size and cost in the `[gate]` table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageLimits {
    /// The duration of a case.
    pub slower: GrowthLimit,
    /// The cost of a case, or its tokens where no costs are known.
    pub costlier: GrowthLimit,
    /// The steps of a case.
    pub longer: GrowthLimit,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct GateCase<'a> {
    pub verdict: Verdict,
    /// Whether the verdict may be chance.
    pub unconfirmed: bool,
    /// The highest risk of an action on either side.
    pub risk: Option<RiskLevel>,
    /// Whether new meets all that is expected of it; `None` if nothing could be judged.
    pub met: Option<bool>,
    /// Whether new passes a case that was added after the baseline; `None` for any other case.
    pub added: Option<AddedCase>,
    pub review: ReviewSet,
    pub tags: &'a [String],
    pub suite: Option<&'a str>,
}

impl<'a> GateCase<'a> {
    /// A case that was compared, what the cases file says of it, and its review items.
    pub(crate) fn new(case: &CaseEvaluation, spec: Option<&'a CaseSpec>, review: ReviewSet) -> Self {
        // Where neither side answered, nothing that was expected is met.
        let is_unanswered = case.verdict == Verdict::StillBroken && !case.expectations.is_empty();
        let judged = case.is_judged_on_new() || is_unanswered;
        Self {
            verdict: case.verdict,
            unconfirmed: case.unconfirmed,
            risk: case.risk_level,
            met: judged.then(|| !is_unanswered && !case.is_unmet_on_new()),
            added: AddedCase::find(case),
            review,
            tags: spec.map(|spec| spec.metadata.tags.as_slice()).unwrap_or_default(),
            suite: spec.and_then(|spec| spec.suite.as_deref()),
        }
    }

    pub(super) fn is_in(&self, scope: &GateScope) -> bool {
        match scope {
            GateScope::Risk(level) => self.risk == Some(*level),
            GateScope::Tag(tag) => self.tags.contains(tag),
            GateScope::Suite(suite) => self.suite == Some(suite),
        }
    }
}

/// The result of a case that was added after the baseline, which its expectations alone decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedCase {
    /// It was answered and meets its expectations, if it has any.
    Good,
    /// It was answered and does not meet an expectation.
    Unmet,
    /// It was not answered. With several runs: in more than half of them.
    Unanswered,
}

impl AddedCase {
    /// The result of a case; `None` if the case was not added.
    pub fn find(case: &CaseEvaluation) -> Option<Self> {
        let has = |code: ReasonCode| case.reasons.iter().any(|reason| code.is_code_of(reason));
        has(ReasonCode::NewCase).then(|| {
            let is_unanswered = match case.measure(MeasureCode::Answered).filter(|measure| measure.new.runs > 0) {
                Some(measure) => measure.new.is_in_less_than_half(),
                None => has(ReasonCode::RunnerFailure) || has(ReasonCode::AnswerOutage),
            };
            match is_unanswered {
                true => AddedCase::Unanswered,
                false if case.is_unmet_on_new() => AddedCase::Unmet,
                false => AddedCase::Good,
            }
        })
    }
}

impl Measure {
    pub(super) const fn key(self) -> &'static str {
        match self {
            Measure::Compared => "min_compared",
            other => other.as_str(),
        }
    }

    pub(super) fn of_key(key: &str) -> Option<Self> {
        Measure::ALL.iter().copied().find(|measure| measure.key() == key)
    }

    /// The kinds of review items by which the measure counts cases; none if it counts verdicts or expectations.
    pub(super) const fn review_codes(self) -> &'static [ReviewCode] {
        match self {
            Measure::Must => &[ReviewCode::MustUnmet],
            Measure::HighRiskChanged => &[ReviewCode::HighRiskChanged, ReviewCode::LostWrite],
            Measure::Fabricated => &[ReviewCode::FabricatedArgument],
            Measure::FailedEvidence => &[ReviewCode::FailedEvidence],
            // A leaked secret is a signal with a rule of its own.
            Measure::Signals => &[ReviewCode::Signal, ReviewCode::SecretLeaked],
            Measure::RepeatedCall => &[ReviewCode::RepeatedCall],
            Measure::BehaviourChanged => &[ReviewCode::BehaviourChanged],
            Measure::TextFaults => &[
                ReviewCode::ConfirmationSkipped,
                ReviewCode::UnsupportedAmount,
                ReviewCode::UnsupportedNumber,
                ReviewCode::AnswerRefusal,
                ReviewCode::AnswerReplaced,
                ReviewCode::AnswerLanguage,
                ReviewCode::AnswerCut,
            ],
            Measure::SecretLeaked => &[ReviewCode::SecretLeaked],
            _ => &[],
        }
    }

    pub(super) fn counts(self, case: &GateCase<'_>) -> bool {
        match self {
            Measure::Regressed => case.verdict == Verdict::Regressed && !case.unconfirmed,
            Measure::Broken => case.verdict == Verdict::Broken && !case.unconfirmed,
            Measure::Unconfirmed => case.unconfirmed,
            Measure::StillBroken => case.verdict == Verdict::StillBroken,
            Measure::Invalid => case.verdict == Verdict::Invalid,
            Measure::Unpaired => matches!(case.verdict, Verdict::Missing | Verdict::Added) && case.added.is_none(),
            Measure::Missing => case.verdict == Verdict::Missing,
            Measure::Added => case.verdict == Verdict::Added,
            Measure::AddedFailed => case.added.is_some_and(|added| added != AddedCase::Good),
            Measure::NotComparable => case.verdict == Verdict::NotComparable,
            Measure::Changed => case.verdict == Verdict::Changed,
            Measure::Undecided => case.verdict == Verdict::Undecided,
            Measure::Noisy => case.verdict == Verdict::Noisy,
            Measure::Improved => case.verdict == Verdict::Improved,
            Measure::Recovered => case.verdict == Verdict::Recovered,
            Measure::Unmet => case.met == Some(false),
            // In a single run it may be chance, as a lost expectation may be.
            Measure::FailedEvidence => {
                case.review.contains(ReviewCode::FailedEvidence)
                    && case.verdict == Verdict::Regressed
                    && !case.unconfirmed
            }
            Measure::Must
            | Measure::HighRiskChanged
            | Measure::Fabricated
            | Measure::RepeatedCall
            | Measure::Signals
            | Measure::BehaviourChanged
            | Measure::TextFaults
            | Measure::SecretLeaked => self.review_codes().iter().any(|code| case.review.contains(*code)),
            Measure::Compared => is_compared(case.verdict),
        }
    }

    /// Whether a case could have been counted; a share is relative to these cases.
    pub(super) fn looks_at(self, case: &GateCase<'_>) -> bool {
        match self {
            Measure::Regressed
            | Measure::Changed
            | Measure::Undecided
            | Measure::Noisy
            | Measure::Improved
            | Measure::HighRiskChanged
            | Measure::FailedEvidence
            | Measure::RepeatedCall
            | Measure::BehaviourChanged
            | Measure::TextFaults => is_compared(case.verdict),
            // These count whatever the baseline was asked.
            Measure::Fabricated | Measure::Signals => {
                is_compared(case.verdict) || case.verdict == Verdict::NotComparable
            }
            Measure::Broken | Measure::Unconfirmed | Measure::StillBroken | Measure::Recovered => {
                use Verdict::{Added, Invalid, Missing, NotComparable};
                !matches!(case.verdict, Invalid | Missing | Added | NotComparable)
            }
            // A secret of an answer of new matters whatever the baseline did.
            Measure::SecretLeaked => !matches!(case.verdict, Verdict::Invalid | Verdict::Missing),
            Measure::Invalid | Measure::Unpaired | Measure::Missing | Measure::Added | Measure::NotComparable => true,
            Measure::AddedFailed => case.added.is_some(),
            // There is nothing to compare an added case with.
            Measure::Compared => case.added.is_none(),
            Measure::Unmet | Measure::Must => case.met.is_some(),
        }
    }
}

const fn is_compared(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Regressed
            | Verdict::Improved
            | Verdict::Changed
            | Verdict::Undecided
            | Verdict::Noisy
            | Verdict::Unchanged
    )
}

/// Whether a verdict fails the gate by default.
pub(crate) const fn fails_by_default(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Regressed | Verdict::Broken | Verdict::Invalid | Verdict::Missing | Verdict::Added)
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct UnmetTest {
    pub test: RuleTest,
    pub fell: bool,
}

/// Whether new meets the expectations less often than the baseline, as the measures of all cases show it. `None` without
/// expectations that were judged on both sides.
pub(crate) fn unmet_test(suite: &[SuiteMeasure], level: f64) -> Option<UnmetTest> {
    let measure = |code: MeasureCode| suite.iter().find(|measure| measure.code == code);
    let expectations = measure(MeasureCode::Expectations)?;
    // A part counts as fallen only with the combined measure, so the larger p-value of the two decides.
    let p = measure(MeasureCode::Solved).map_or(expectations.p, |solved| solved.p.max(expectations.p));
    let test = RuleTest { p, level, fell: expectations.cases_fell, rose: expectations.cases_rose, expected: None };
    Some(UnmetTest { test, fell: expectations.fell })
}

/// The codes of the rules about time, size and cost.
pub(crate) const USAGE_CODES: [&str; 3] = ["slower", "costlier", "longer"];

/// All rules about time, size and cost, in the order of [`USAGE_CODES`]. A rule without a limit is for information. `alpha` is divided
/// among the rules with a limit.
pub(crate) fn usage_rules(
    cases: &[CaseEvaluation],
    measures: &[UsageMeasure],
    limits: &UsageLimits,
    alpha: f64,
) -> Vec<GateRule> {
    let has_cost = measures.iter().any(|measure| measure.code == UsageCode::Cost);
    let costlier = if has_cost { UsageCode::Cost } else { UsageCode::Tokens };
    let all = [limits.slower, limits.costlier, limits.longer];
    let limited = all.iter().filter(|limit| **limit != GrowthLimit::None).count();
    // Each rule with a limit can fail the gate, so together they take no more than `alpha` (Bonferroni).
    let level = if limited == 0 { messages::ROSE_AT } else { alpha / limited as f64 };
    let codes = [UsageCode::Duration, costlier, UsageCode::Steps];
    let rule_of = |((name, code), limit): ((&str, UsageCode), GrowthLimit)| {
        let growth = match limit {
            GrowthLimit::None => 0.0,
            GrowthLimit::Share(share) => share.value(),
        };
        let measure = measures.iter().find(|measure| measure.code == code);
        usage_rule(name, limit, level, measure.map(|measure| (measure, usage::growth_p(code, cases, growth))))
    };
    USAGE_CODES.into_iter().zip(codes).zip(all).map(rule_of).collect()
}

fn usage_rule(name: &str, limit: GrowthLimit, level: f64, tested: Option<(&UsageMeasure, f64)>) -> GateRule {
    let share = match limit {
        GrowthLimit::None => None,
        GrowthLimit::Share(share) => Some(share),
    };
    // Without a case in which both sides report the quantity, nothing was tested, and the rule is met.
    let grew = tested.is_some_and(|(_, p)| p <= level);
    GateRule {
        code: name.to_owned(),
        scope: None,
        bound: Bound::AtMost,
        limit: share.map(|_| 0),
        share: share.filter(|share| share.value() > 0.0),
        actual: u64::from(grew),
        of: Some(tested.map_or(0, |(measure, _)| measure.cases)),
        // A rule without a limit has no test, because nothing is decided. More of a quantity is worse.
        test: share.and(tested).map(|(measure, p)| RuleTest {
            p,
            level,
            fell: measure.rose,
            rose: measure.fell,
            expected: None,
        }),
        passed: share.is_none() || !grew,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::usage_review::tests::cases;

    fn longer(steps: &[(f64, f64)], limit: &str) -> GateRule {
        let limits = UsageLimits {
            longer: toml::from_str::<std::collections::BTreeMap<String, GrowthLimit>>(&format!("longer = {limit}"))
                .unwrap()["longer"],
            ..UsageLimits::default()
        };
        let cases = cases(steps);
        usage_rules(&cases, &usage::compare_all(&cases), &limits, 0.05).pop().unwrap()
    }

    #[test]
    fn a_rule_fails_only_for_growth_beyond_its_limit_and_beyond_chance() {
        // All ratios are between 1.3 and 1.4.
        let grown: Vec<_> = (10..20).map(|steps| (f64::from(steps), (f64::from(steps) * 1.35).round())).collect();
        for (limit, passed, actual) in
            [("\"none\"", true, 1), ("0", false, 1), ("\"20 %\"", false, 1), ("0.4", true, 0)]
        {
            let rule = longer(&grown, limit);
            assert_eq!((rule.passed, rule.actual, rule.of), (passed, actual, Some(10)), "{limit}: {rule:?}");
        }
        // Four cases can rise together by chance.
        assert!(longer(&grown[..4], "0").passed);
        assert!(longer(&[], "0").passed);
        assert!(toml::from_str::<std::collections::BTreeMap<String, GrowthLimit>>("longer = 3").is_err());
    }
}
