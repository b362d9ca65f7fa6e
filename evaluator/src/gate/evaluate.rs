//! Evaluates the gate: compares the count of each rule with its limit, and decides.

use counterproof_artifact::RiskLevel;
use counterproof_artifact::evaluation::{
    Bound, CaseEvaluation, Gate, GateOutcome, GateRule, GateScope, ReviewItem, Verdict,
};
use counterproof_cases::CaseSpec;

use super::rules::{GateCase, GateRules, Limit, Measure, ScopeRules, UnmetTest};
use crate::judge::outage;

pub(crate) struct GateInput<'a> {
    pub cases: &'a [GateCase<'a>],
    /// The rules that count no single cases: those over several runs, and over time, size and cost.
    pub tested: Vec<GateRule>,
    pub limits: &'a GateRules,
    pub is_repeated: bool,
    /// Cases that new did not answer because of an outage.
    pub outage_cases: usize,
    /// Tests whether new meets the expectations in fewer cases than the baseline.
    pub unmet: Option<UnmetTest>,
    /// The review items of all cases, sorted.
    pub review: Vec<ReviewItem>,
}

pub(crate) fn judge(input: GateInput<'_>) -> Gate {
    let basis = input.basis();
    let mut rules = rules(input.cases, input.limits);
    // One run per side leaves no case undecided, so the rule appears only if it has a limit.
    rules.retain(|rule| input.is_repeated || rule.is_limited() || rule.code != Measure::Undecided.as_str());
    rules.retain(|rule| rule.code != Measure::AddedFailed.as_str() || rule.of != Some(0));
    // The rules that need a minimum come last among the rules over all cases.
    let overall = rules.iter().take_while(|rule| rule.scope.is_none() && rule.bound == Bound::AtMost).count();
    rules.splice(overall..overall, input.tested);
    if let Some(unmet) = input.unmet.filter(|_| input.limits.overall().get(&Measure::Unmet) == Some(&Limit::Baseline)) {
        for rule in rules.iter_mut().filter(|rule| rule.scope.is_none() && rule.code == Measure::Unmet.as_str()) {
            rule.test = Some(unmet.test);
            rule.passed = !unmet.fell;
        }
    }
    Gate { review: input.review, ..decide(rules, basis) }
}

/// Whether the comparison can tell a good version from a bad one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// Expectations were judged, a side has several runs, the user limits changes, or new equals the baseline.
    Sufficient,
    /// Differences of one pair of runs alone.
    Missing,
    /// Outages are in enough cases that the other cases may be part of them.
    Outage,
}

impl GateInput<'_> {
    fn basis(&self) -> Basis {
        if self.outage_cases >= outage::CASES {
            return Basis::Outage;
        }
        // A difference of one pair of runs may be better, worse or chance, so that alone no verdict on the version is possible.
        // A case that was added is compared with nothing, and shows nothing about the others.
        let compared = || self.cases.iter().filter(|case| case.added.is_none());
        let is_judged = compared().any(|case| case.met.is_some());
        let limits_changes = self.limits.overall().get(&Measure::Changed).is_some_and(|limit| *limit != Limit::None);
        let is_equal = |case: &GateCase<'_>| {
            matches!(case.verdict, Verdict::Unchanged | Verdict::StillBroken | Verdict::NotComparable)
        };
        let is_equal = compared().all(is_equal);
        if is_judged || self.is_repeated || limits_changes || is_equal { Basis::Sufficient } else { Basis::Missing }
    }
}

/// A rule over all cases that is met if at most `limit` of `of` cases are counted.
pub(crate) fn at_most(code: &str, limit: Limit, actual: u64, of: u64) -> GateRule {
    let count = Counted { actual, of };
    count.against(code, None, Bound::AtMost, limit)
}

/// Every configured rule: those over all cases first.
pub(crate) fn rules(cases: &[GateCase<'_>], limits: &GateRules) -> Vec<GateRule> {
    // Cases on one side only that the user allows are not a gap in what was compared.
    let allows_unpaired = limits.overall().get(&Measure::Unpaired) == Some(&Limit::None);
    let paired: Vec<_> =
        cases.iter().filter(|case| !allows_unpaired || !Measure::Unpaired.counts(case)).copied().collect();
    let overall = limits.overall().iter().map(|(measure, limit)| {
        let counted = if *measure == Measure::Compared { &paired } else { cases };
        rule(counted, None, *measure, reachable(*measure, *limit, cases))
    });
    let mut rules: Vec<_> = overall.collect();
    for ScopeRules { scope, limits } in limits.scopes() {
        let within: Vec<_> = cases.iter().filter(|case| case.is_in(scope)).copied().collect();
        let rule = |(measure, limit): (&Measure, &Limit)| {
            rule(&within, Some(scope), *measure, reachable(*measure, *limit, &within))
        };
        rules.extend(limits.iter().map(rule));
    }
    rules
}

/// The limit, or none for a share of the cases to compare if all cases were added: their expectations decide.
fn reachable(measure: Measure, limit: Limit, cases: &[GateCase<'_>]) -> Limit {
    let are_added = !cases.is_empty() && cases.iter().all(|case| case.added.is_some());
    let is_share = measure == Measure::Compared && matches!(limit, Limit::Share(_));
    if are_added && is_share { Limit::None } else { limit }
}

fn rule(cases: &[GateCase<'_>], scope: Option<&GateScope>, measure: Measure, limit: Limit) -> GateRule {
    let count = |wanted: &dyn Fn(&GateCase<'_>) -> bool| cases.iter().filter(|case| wanted(case)).count() as u64;
    let counted = Counted { actual: count(&|case| measure.counts(case)), of: count(&|case| measure.looks_at(case)) };
    let bound = if measure == Measure::Compared { Bound::AtLeast } else { Bound::AtMost };
    counted.against(measure.as_str(), scope, bound, limit)
}

/// What was counted for a rule, and of how many.
#[derive(Clone, Copy)]
struct Counted {
    actual: u64,
    of: u64,
}

impl Counted {
    fn against(self, code: &str, scope: Option<&GateScope>, bound: Bound, limit: Limit) -> GateRule {
        let Self { actual, of } = self;
        let (limit, share) = match (limit, bound) {
            // A test decides where the baseline is the limit.
            (Limit::None | Limit::Baseline, _) => (None, None),
            (Limit::Count(count), _) => (Some(count), None),
            (Limit::Share(share), Bound::AtMost) => (Some(share.floor_of(of)), Some(share)),
            // A share of zero cases rounds to zero, but the gate needs at least one compared case.
            (Limit::Share(share), Bound::AtLeast) => (Some(share.ceil_of(of).max(1)), Some(share)),
        };
        let passed = limit.is_none_or(|limit| match bound {
            Bound::AtMost => actual <= limit,
            Bound::AtLeast => actual >= limit,
        });
        GateRule {
            code: code.to_owned(),
            scope: scope.cloned(),
            bound,
            limit,
            share,
            actual,
            of: Some(of),
            test: None,
            passed,
        }
    }
}

/// The outcome of all rules: an exceeded maximum fails the gate; a missed minimum alone means not enough data; met rules
/// without a basis mean that nothing was judged.
fn decide(rules: Vec<GateRule>, basis: Basis) -> Gate {
    let violated = |bound| rules.iter().any(|rule| rule.bound == bound && !rule.passed);
    let outcome = match (violated(Bound::AtMost), violated(Bound::AtLeast), basis) {
        (true, _, _) => GateOutcome::Failed,
        (false, true, _) | (false, false, Basis::Outage) => GateOutcome::NotEnoughData,
        (false, false, Basis::Missing) => GateOutcome::NotJudged,
        (false, false, Basis::Sufficient) => GateOutcome::Passed,
    };
    Gate { passed: outcome == GateOutcome::Passed, outcome, rules, review: Vec::new() }
}

/// A scope that no case is in, so its rules are always met; most likely its name is misspelt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownScope {
    /// The scope.
    pub scope: GateScope,
    /// The names that there are, sorted.
    pub known: Vec<String>,
}

/// The scopes that have rules but no case: for tags and suites no case of the cases file, for risks no compared case.
pub fn unknown_scopes(limits: &GateRules, specs: &[CaseSpec], cases: &[CaseEvaluation]) -> Vec<UnknownScope> {
    let unknown = limits.scopes().iter().filter_map(|ScopeRules { scope, .. }| {
        let (name, mut known): (&str, Vec<&str>) = match scope {
            GateScope::Risk(level) => {
                (level.as_str(), cases.iter().filter_map(|case| case.risk_level).map(RiskLevel::as_str).collect())
            }
            GateScope::Tag(tag) => {
                (tag, specs.iter().flat_map(|spec| &spec.metadata.tags).map(String::as_str).collect())
            }
            GateScope::Suite(suite) => (suite, specs.iter().filter_map(|spec| spec.suite.as_deref()).collect()),
        };
        // Sorted and without duplicates, because the list is shown as a hint.
        known.sort_unstable();
        known.dedup();
        let is_known = known.binary_search(&name).is_ok();
        (!is_known)
            .then(|| UnknownScope { scope: scope.clone(), known: known.into_iter().map(str::to_owned).collect() })
    });
    unknown.collect()
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::evaluation::RuleTest;

    use super::*;
    use crate::gate::review::{ReviewCode, ReviewSet};
    use crate::gate::rules::AddedCase;

    fn case(verdict: Verdict) -> GateCase<'static> {
        GateCase {
            verdict,
            unconfirmed: false,
            risk: None,
            met: None,
            added: None,
            review: ReviewSet::default(),
            tags: &[],
            suite: None,
        }
    }

    fn cases(counts: &[(Verdict, usize)]) -> Vec<GateCase<'static>> {
        counts.iter().flat_map(|(verdict, count)| vec![case(*verdict); *count]).collect()
    }

    /// The gate over cases whose differences have a basis to be judged by.
    fn judged(cases: &[GateCase<'_>], limits: &GateRules) -> Gate {
        judge(GateInput {
            cases,
            tested: Vec::new(),
            limits,
            is_repeated: true,
            outage_cases: 0,
            unmet: None,
            review: Vec::new(),
        })
    }

    fn outcome(counts: &[(Verdict, usize)], limits: &GateRules) -> GateOutcome {
        judged(&cases(counts), limits).outcome
    }

    fn limits(text: &str) -> GateRules {
        toml::from_str(text).unwrap()
    }

    fn find<'a>(gate: &'a Gate, code: &str, scope: Option<&GateScope>) -> &'a GateRule {
        gate.rules.iter().find(|rule| rule.code == code && rule.scope.as_ref() == scope).unwrap()
    }

    #[test]
    fn a_clean_comparison_passes_and_lists_every_rule() {
        let mut cases = cases(&[(Verdict::Unchanged, 3), (Verdict::Changed, 2)]);
        cases[0].met = Some(false);
        let gate = judged(&cases, &GateRules::default());
        assert!(gate.passed);
        assert_eq!(gate.rules.len(), 14);
        assert!(gate.rules.iter().all(|rule| rule.passed));
        let (unmet, compared) = (find(&gate, "unmet", None), find(&gate, "compared", None));
        assert_eq!((unmet.actual, unmet.of, compared.actual, compared.of), (1, Some(1), 5, Some(5)));
    }

    #[test]
    fn each_kind_of_trouble_fails_it() {
        for verdict in [Verdict::Regressed, Verdict::Broken, Verdict::Invalid, Verdict::Missing, Verdict::Added] {
            let counts = [(Verdict::Unchanged, 9), (verdict, 1)];
            assert_eq!(outcome(&counts, &GateRules::default()), GateOutcome::Failed, "{verdict}");
        }
    }

    #[test]
    fn every_verdict_but_unchanged_can_have_a_limit_of_its_own() {
        let none = Measure::ALL
            .iter()
            .copied()
            .fold(GateRules::default(), |limits, measure| limits.with(measure, Limit::None));
        for verdict in Verdict::ALL.into_iter().filter(|verdict| *verdict != Verdict::Unchanged) {
            let measure = Measure::parse(verdict.as_str()).unwrap();
            let only = none.clone().with(measure, Limit::Count(1));
            let with = |count| outcome(&[(Verdict::Unchanged, 8), (verdict, count)], &only);
            assert_eq!((with(1), with(2)), (GateOutcome::Passed, GateOutcome::Failed), "{verdict}");
        }
    }

    #[test]
    fn nothing_compared_is_an_answer_of_its_own() {
        assert_eq!(outcome(&[], &GateRules::default()), GateOutcome::NotEnoughData);
        assert_eq!(outcome(&[(Verdict::StillBroken, 4)], &GateRules::default()), GateOutcome::NotEnoughData);
    }

    #[test]
    fn unpaired_cases_pass_only_when_told_so() {
        let counts = [(Verdict::Unchanged, 8), (Verdict::Missing, 1), (Verdict::Added, 1)];
        let outcome_with = |limit| outcome(&counts, &GateRules::default().with(Measure::Unpaired, limit));
        assert_eq!(
            (outcome_with(Limit::None), outcome_with(Limit::Count(1))),
            (GateOutcome::Passed, GateOutcome::Failed)
        );
        // A few cases compared with all of the baseline, which the user allows.
        let few = [(Verdict::Unchanged, 1), (Verdict::Missing, 9)];
        assert_eq!(outcome(&few, &GateRules::default().with(Measure::Unpaired, Limit::None)), GateOutcome::Passed);
    }

    #[test]
    fn an_added_case_is_judged_by_its_expectations_alone() {
        let added = |found| GateCase { added: Some(found), ..case(Verdict::Added) };
        let with = |found: &[AddedCase], text: &str| {
            let mut cases = cases(&[(Verdict::Unchanged, 2)]);
            cases.extend(found.iter().copied().map(added));
            judged(&cases, &limits(text))
        };
        // More cases were added than compared, and the share of compared cases is not about them.
        assert_eq!(with(&[AddedCase::Good; 9], "").outcome, GateOutcome::Passed);
        for failed in [AddedCase::Unmet, AddedCase::Unanswered] {
            let gate = with(&[AddedCase::Good, failed], "");
            let violated: Vec<_> = gate.rules.iter().filter(|rule| !rule.passed).collect();
            assert_eq!(violated.len(), 1, "{violated:?}");
            assert_eq!((&*violated[0].code, violated[0].actual, violated[0].of), ("added_failed", 1, Some(2)));
            assert_eq!(with(&[failed], "added_failed = \"none\"").outcome, GateOutcome::Passed);
            // Cases of one side that are allowed may still fail.
            assert_eq!(with(&[failed], "unpaired = \"none\"").outcome, GateOutcome::Failed);
        }
        assert_eq!(with(&[AddedCase::Good], "added = 0").outcome, GateOutcome::Failed);
        assert!(with(&[], "").rules.iter().all(|rule| rule.code != "added_failed"));
    }

    #[test]
    fn added_cases_alone_are_enough_unless_the_others_are_lost() {
        let good = GateCase { added: Some(AddedCase::Good), ..case(Verdict::Added) };
        assert_eq!(judged(&[good], &GateRules::default()).outcome, GateOutcome::Passed);
        let lost = [good, case(Verdict::Missing)];
        assert_eq!(judged(&lost, &limits("unpaired = \"none\"")).outcome, GateOutcome::NotEnoughData);
    }

    #[test]
    fn by_default_four_of_five_cases_need_answers_on_both_sides() {
        let compared = |unchanged, broken| {
            outcome(&[(Verdict::Unchanged, unchanged), (Verdict::Recovered, broken)], &GateRules::default())
        };
        assert_eq!((compared(8, 2), compared(7, 3)), (GateOutcome::Passed, GateOutcome::NotEnoughData));
    }

    #[test]
    fn review_items_of_a_case_violate_the_rules_that_count_them() {
        for (code, rule, fails) in [
            (ReviewCode::MustUnmet, "must", true),
            (ReviewCode::FabricatedArgument, "fabricated", true),
            (ReviewCode::FailedEvidence, "failed_evidence", false),
            (ReviewCode::Signal, "signals", false),
            (ReviewCode::HighRiskChanged, "high_risk_changed", false),
            (ReviewCode::UnmetOnBothSides, "unmet", false),
        ] {
            let mut cases = cases(&[(Verdict::Changed, 5)]);
            cases[0].review.insert(code);
            assert_eq!(!judged(&cases, &GateRules::default()).passed, fails, "{rule}");
        }
        let mut cases = cases(&[(Verdict::Changed, 5)]);
        cases[0].review.insert(ReviewCode::HighRiskChanged);
        assert_eq!(judged(&cases, &limits("high_risk_changed = 0")).outcome, GateOutcome::Failed);
    }

    #[test]
    fn failed_evidence_counts_where_the_regression_is_confirmed() {
        let outcome = |unconfirmed: bool| {
            let mut cases = cases(&[(Verdict::Unchanged, 5), (Verdict::Regressed, 1)]);
            cases[5].review.insert(ReviewCode::FailedEvidence);
            cases[5].unconfirmed = unconfirmed;
            judged(&cases, &limits("regressed = \"none\"")).outcome
        };
        assert_eq!((outcome(true), outcome(false)), (GateOutcome::Passed, GateOutcome::Failed));
    }

    #[test]
    fn a_fall_of_the_expectations_violates_unmet_unless_the_user_sets_a_number() {
        let cases = cases(&[(Verdict::Unchanged, 5)]);
        let test = RuleTest { p: 0.01, level: 0.05, fell: 9, rose: 1, expected: None };
        let outcome = |limits: &GateRules, fell| {
            let unmet = Some(UnmetTest { test, fell });
            judge(GateInput {
                cases: &cases,
                tested: Vec::new(),
                limits,
                is_repeated: true,
                outage_cases: 0,
                unmet,
                review: Vec::new(),
            })
        };
        let gate = outcome(&GateRules::default(), true);
        let rule = find(&gate, "unmet", None);
        assert_eq!((gate.outcome, rule.test, rule.limit), (GateOutcome::Failed, Some(test), None));
        assert!(outcome(&GateRules::default(), false).passed);
        assert!(outcome(&limits("unmet = 3"), true).passed);
    }

    #[test]
    fn a_share_is_of_the_cases_that_could_have_counted() {
        let limits = limits("regressed = \"10 %\"\nbroken = \"10 %\"\nunpaired = \"10 %\"\nmin_compared = \"50 %\"");
        // Of 10 compared cases one may regress; of 11 that both sides have one may be broken; of 12 one may be unpaired.
        let at_limit = [(Verdict::Unchanged, 9), (Verdict::Regressed, 1), (Verdict::Broken, 1), (Verdict::Added, 1)];
        let gate = judged(&cases(&at_limit), &limits);
        assert!(gate.passed, "{gate:?}");
        let of = |code| find(&gate, code, None).of;
        assert_eq!(
            (of("regressed"), of("broken"), of("unpaired"), of("compared")),
            (Some(10), Some(11), Some(12), Some(12))
        );
        let beyond = [(Verdict::Unchanged, 8), (Verdict::Regressed, 1), (Verdict::Broken, 1), (Verdict::Added, 1)];
        let gate = judged(&cases(&beyond), &limits);
        assert_eq!((find(&gate, "regressed", None).limit, gate.outcome), (Some(0), GateOutcome::Failed));
        assert_eq!(outcome(&[(Verdict::Unchanged, 1), (Verdict::StillBroken, 2)], &limits), GateOutcome::NotEnoughData);
    }

    #[test]
    fn a_scope_has_rules_over_its_own_cases() {
        let (money, smoke) = (["money".to_owned()], "smoke");
        let mut cases = cases(&[(Verdict::Changed, 3), (Verdict::Unchanged, 1)]);
        cases[0].tags = &money;
        cases[1].risk = Some(RiskLevel::High);
        cases[2].suite = Some(smoke);
        for (table, scope, failed) in [
            ("tag.money", GateScope::Tag("money".to_owned()), true),
            ("tag.mony", GateScope::Tag("mony".to_owned()), false),
            ("risk.high", GateScope::Risk(RiskLevel::High), true),
            ("risk.low", GateScope::Risk(RiskLevel::Low), false),
            ("suite.smoke", GateScope::Suite("smoke".to_owned()), true),
        ] {
            let gate = judged(&cases, &limits(&format!("[{table}]\nchanged = 0")));
            let rule = find(&gate, "changed", Some(&scope));
            assert_eq!((rule.passed, rule.of == Some(0)), (!failed, !failed), "{table}");
            assert_eq!(gate.passed, !failed, "{table}");
        }
    }

    #[test]
    fn differences_of_one_pair_of_runs_without_expectations_are_not_judged() {
        let limits = GateRules::default();
        let outcome = |cases: &[GateCase<'_>], limits: &GateRules, is_repeated| {
            judge(GateInput {
                cases,
                tested: Vec::new(),
                limits,
                is_repeated,
                outage_cases: 0,
                unmet: None,
                review: Vec::new(),
            })
            .outcome
        };
        let differing = cases(&[(Verdict::Unchanged, 3), (Verdict::Changed, 2)]);
        assert_eq!(outcome(&differing, &limits, false), GateOutcome::NotJudged);
        // Each of these gives the gate something to judge by.
        assert_eq!(outcome(&differing, &limits, true), GateOutcome::Passed);
        assert_eq!(outcome(&cases(&[(Verdict::Unchanged, 3)]), &limits, false), GateOutcome::Passed);
        assert_eq!(
            outcome(&differing, &limits.clone().with(Measure::Changed, Limit::Count(2)), false),
            GateOutcome::Passed
        );
        let mut expected = differing.clone();
        expected[0].met = Some(true);
        assert_eq!(outcome(&expected, &limits, false), GateOutcome::Passed);
        // Violated rules and missing answers come first.
        let worse = cases(&[(Verdict::Unchanged, 3), (Verdict::Invalid, 1)]);
        assert_eq!(outcome(&worse, &limits, false), GateOutcome::Failed);
        assert_eq!(outcome(&cases(&[(Verdict::StillBroken, 1)]), &limits, false), GateOutcome::NotEnoughData);
    }

    #[test]
    fn a_scope_without_the_cases_that_it_needs_is_not_enough_data() {
        let limits = limits("[tag.money]\nmin_compared = 1");
        assert_eq!(outcome(&[(Verdict::Unchanged, 1)], &limits), GateOutcome::NotEnoughData);
    }
}
