//! The gate: what is said of the whole comparison. It never passes silently: every rule is listed, with its limit and
//! what was counted.

use std::collections::BTreeMap;

use counterproof_artifact::evaluation::{Bound, Gate, GateOutcome, GateRule, Verdict};
use serde::{Deserialize, Deserializer, Serialize};

/// How many cases of each kind may go out: the `[gate]` table of `counterproof.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateLimits {
    /// Cases that got worse.
    pub regressed: Limit,
    /// Cases that new could not run and the baseline could: a budget of its own, apart from regressions.
    pub broken: Limit,
    /// Cases that neither side could run.
    pub still_broken: Limit,
    /// Cases with an artifact that breaks the contract.
    pub invalid: Limit,
    /// Cases that only one side has.
    pub unpaired: Limit,
    /// Cases that differ, for better or worse.
    pub changed: Limit,
    /// Cases in which new does not meet what the cases file expects, whether or not the baseline did.
    pub unmet: Limit,
    /// Measures that fell over all cases together, where a side has several runs.
    pub suite_fell: Limit,
    /// Cases in which something held less often on new, and too few runs say whether that is chance.
    pub undecided: Limit,
    /// Cases in which both sides answered: with fewer, the gate says that it has not enough data.
    pub min_compared: u64,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self {
            regressed: Limit::AtMost(0),
            broken: Limit::AtMost(0),
            still_broken: Limit::None,
            invalid: Limit::AtMost(0),
            unpaired: Limit::AtMost(0),
            changed: Limit::None,
            unmet: Limit::None,
            suite_fell: Limit::AtMost(0),
            undecided: Limit::None,
            min_compared: 1,
        }
    }
}

/// How many are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Any number: the count is for information.
    None,
    /// So many, and no more.
    AtMost(u64),
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A published format: a number, or the word that says that there is none.
        #[derive(Deserialize, Serialize)]
        #[serde(untagged, expecting = "expected a whole number of zero or more, or \"none\"")]
        enum Written {
            Number(u64),
            Word(NoLimit),
        }
        #[derive(Deserialize, Serialize)]
        #[serde(rename_all = "lowercase")]
        enum NoLimit {
            None,
        }
        Written::deserialize(deserializer).map(|written| match written {
            Written::Number(limit) => Limit::AtMost(limit),
            Written::Word(NoLimit::None) => Limit::None,
        })
    }
}

/// A rule that holds where no more than the limit is counted.
pub(crate) fn at_most(code: &str, limit: Limit, actual: u64) -> GateRule {
    let limit = match limit {
        Limit::None => None,
        Limit::AtMost(limit) => Some(limit),
    };
    let passed = limit.is_none_or(|limit| actual <= limit);
    GateRule { code: code.to_owned(), bound: Bound::AtMost, limit, actual, passed }
}

/// Holds the counts against the limits. `unmet` counts the cases whose expectations new does not meet; `of_repeats` are
/// the rules that only several runs a side can be held against.
pub fn judge(counts: &BTreeMap<Verdict, u64>, unmet: u64, of_repeats: Vec<GateRule>, limits: &GateLimits) -> Gate {
    let count = |verdict: Verdict| counts.get(&verdict).copied().unwrap_or(0);
    let compared: u64 = [Verdict::Regressed, Verdict::Improved, Verdict::Changed, Verdict::Noisy, Verdict::Unchanged]
        .into_iter()
        .map(count)
        .sum();
    let enough = compared >= limits.min_compared;
    let mut rules = vec![
        at_most("regressed", limits.regressed, count(Verdict::Regressed)),
        at_most("broken", limits.broken, count(Verdict::Broken)),
        at_most("still_broken", limits.still_broken, count(Verdict::StillBroken)),
        at_most("invalid", limits.invalid, count(Verdict::Invalid)),
        at_most("unpaired", limits.unpaired, count(Verdict::Missing) + count(Verdict::Added)),
        at_most("changed", limits.changed, count(Verdict::Changed)),
        at_most("unmet", limits.unmet, unmet),
        GateRule {
            code: "compared".to_owned(),
            bound: Bound::AtLeast,
            limit: Some(limits.min_compared),
            actual: compared,
            passed: enough,
        },
    ];
    rules.splice(rules.len() - 1..rules.len() - 1, of_repeats);
    let broken_rule = rules.iter().any(|rule| rule.bound == Bound::AtMost && !rule.passed);
    let outcome = match (broken_rule, enough) {
        (true, _) => GateOutcome::Failed,
        (false, false) => GateOutcome::NotEnoughData,
        (false, true) => GateOutcome::Passed,
    };
    Gate { passed: outcome == GateOutcome::Passed, outcome, rules }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(counts: &[(Verdict, u64)], limits: &GateLimits) -> GateOutcome {
        judge(&counts.iter().copied().collect(), 0, Vec::new(), limits).outcome
    }

    #[test]
    fn a_clean_comparison_passes_and_lists_every_rule() {
        let gate = judge(
            &[(Verdict::Unchanged, 3), (Verdict::Changed, 2)].into_iter().collect(),
            4,
            Vec::new(),
            &GateLimits::default(),
        );
        assert!(gate.passed);
        assert_eq!(gate.rules.len(), 8);
        assert!(gate.rules.iter().all(|rule| rule.passed));
    }

    #[test]
    fn each_kind_of_trouble_fails_it() {
        for verdict in [Verdict::Regressed, Verdict::Broken, Verdict::Invalid, Verdict::Missing, Verdict::Added] {
            let counts = [(Verdict::Unchanged, 9), (verdict, 1)];
            assert_eq!(outcome(&counts, &GateLimits::default()), GateOutcome::Failed, "{verdict}");
        }
    }

    #[test]
    fn nothing_compared_is_an_answer_of_its_own() {
        assert_eq!(outcome(&[], &GateLimits::default()), GateOutcome::NotEnoughData);
        assert_eq!(outcome(&[(Verdict::StillBroken, 4)], &GateLimits::default()), GateOutcome::NotEnoughData);
    }

    #[test]
    fn unpaired_cases_pass_only_when_told_so() {
        let counts = [(Verdict::Unchanged, 1), (Verdict::Missing, 1), (Verdict::Added, 1)];
        let limits = GateLimits { unpaired: Limit::None, ..GateLimits::default() };
        assert_eq!(outcome(&counts, &limits), GateOutcome::Passed);
        let limits = GateLimits { unpaired: Limit::AtMost(1), ..GateLimits::default() };
        assert_eq!(outcome(&counts, &limits), GateOutcome::Failed);
    }
}
