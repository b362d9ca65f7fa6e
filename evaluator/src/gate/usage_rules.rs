//! The rules about time, size and cost: `slower`, `costlier` and `longer`. Each tests whether a quantity grew by more than the
//! growth that its limit allows.

use counterproof_artifact::Share;
use counterproof_artifact::evaluation::{
    Bound, CaseEvaluation, GateRule, ReviewItem, RuleTest, UsageCode, UsageMeasure,
};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

use super::review::ReviewCode;
use crate::messages::usage as text;
use crate::statistics::usage;

/// What a limit on growth may be, in messages.
const GROWTH: &str = "0, a share such as \"20 %\" or 0.2, or \"none\"";

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

impl<'de> Deserialize<'de> for GrowthLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl Visitor<'_> for Written {
            type Value = GrowthLimit;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(GROWTH)
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<GrowthLimit, E> {
                match count {
                    0 => self.visit_f64(0.0),
                    _ => Err(E::custom(format!("the limit is a growth, not a number of cases: expected {GROWTH}"))),
                }
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<GrowthLimit, E> {
                u64::try_from(count)
                    .map_err(|_| E::custom(format!("expected {GROWTH}")))
                    .and_then(|it| self.visit_u64(it))
            }

            fn visit_f64<E: Error>(self, share: f64) -> Result<GrowthLimit, E> {
                Share::try_from(share).map(GrowthLimit::Share).map_err(|_| E::custom(format!("expected {GROWTH}")))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<GrowthLimit, E> {
                if text == "none" {
                    return Ok(GrowthLimit::None);
                }
                text.parse().map(GrowthLimit::Share).map_err(|_| E::custom(format!("expected {GROWTH}")))
            }
        }

        deserializer.deserialize_any(Written)
    }
}

/// The codes of the rules about time, size and cost.
pub(crate) const CODES: [&str; 3] = ["slower", "costlier", "longer"];

/// All rules about time, size and cost, in the order of [`CODES`]. A rule without a limit is for information. `alpha` is divided
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
    let level = if limited == 0 { text::ROSE_AT } else { alpha / limited as f64 };
    let codes = [UsageCode::Duration, costlier, UsageCode::Steps];
    let rule_of = |((name, code), limit): ((&str, UsageCode), GrowthLimit)| {
        let growth = match limit {
            GrowthLimit::None => 0.0,
            GrowthLimit::Share(share) => share.value(),
        };
        let measure = measures.iter().find(|measure| measure.code == code);
        rule(name, limit, level, measure.map(|measure| (measure, usage::growth_p(code, cases, growth))))
    };
    CODES.into_iter().zip(codes).zip(all).map(rule_of).collect()
}

/// A rule on the growth of a quantity. Without a case in which both sides have it, the rule is met.
fn rule(name: &str, limit: GrowthLimit, level: f64, tested: Option<(&UsageMeasure, f64)>) -> GateRule {
    let share = match limit {
        GrowthLimit::None => None,
        GrowthLimit::Share(share) => Some(share),
    };
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
        test: share.and(tested).map(|(measure, p)| RuleTest { p, level, fell: measure.rose, rose: measure.fell }),
        passed: share.is_none() || !grew,
    }
}

/// The growth from which on a single case is named. One run says little about one case, so only an order of magnitude counts.
const OUTLIER_FROM: f64 = 10.0;

/// What a person should look at: quantities that rose over all cases, then single cases that are out of all proportion.
pub(crate) fn usage_review(cases: &[CaseEvaluation], measures: &[UsageMeasure]) -> Vec<ReviewItem> {
    let rose = measures.iter().filter(|measure| text::rose(measure)).map(|measure| {
        ReviewCode::UsageRose.item(None, format!("per case: {}", text::mean_per_case(measure)), Vec::new())
    });
    rose.chain(outliers(cases)).collect()
}

/// The cases with a quantity that is at least [`OUTLIER_FROM`] times baseline's, and larger than in any case of baseline.
fn outliers(cases: &[CaseEvaluation]) -> impl Iterator<Item = ReviewItem> {
    // Tool time is left out: it is part of the duration, and often a few milliseconds.
    let codes = [UsageCode::Duration, UsageCode::Steps, UsageCode::Tokens, UsageCode::Cost];
    let largest = codes.map(|code| {
        let on_baseline = |case: &CaseEvaluation| case.usage.as_ref()?.baseline.as_ref()?.get(code);
        cases.iter().filter_map(on_baseline).fold(0.0, f64::max)
    });
    cases.iter().filter_map(move |case| {
        let usage = case.usage.as_ref()?;
        let currency = usage.new.as_ref()?.currency.as_deref();
        let grown = codes.into_iter().zip(largest).filter_map(|(code, largest)| {
            let (old, new) = usage.compared(code)?;
            if old <= 0.0 || new < OUTLIER_FROM * old || new <= largest {
                return None;
            }
            let [before, after] = [old, new].map(|value| text::amount(code, value, currency));
            let growth = text::notable_change(code, old, new)?;
            Some(format!("{} {before} → {after} ({growth})", text::quantity(code)))
        });
        let grown: Vec<_> = grown.collect();
        (!grown.is_empty())
            .then(|| ReviewCode::UsageOutlier.item(Some(case.case_id.clone()), grown.join(", "), Vec::new()))
    })
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::evaluation::{CaseUsage, SideUsage, Verdict};

    use super::*;

    /// Cases with these steps on baseline and new.
    fn cases(steps: &[(f64, f64)]) -> Vec<CaseEvaluation> {
        let side = |steps: f64| Some(SideUsage { steps: steps.into(), ..SideUsage::default() });
        let case = |(number, (baseline, new)): (usize, &(f64, f64))| CaseEvaluation {
            usage: Some(CaseUsage { baseline: side(*baseline), new: side(*new) }),
            ..serde_json::from_value(
                serde_json::json!({"case_id": format!("c{number}"), "verdict": Verdict::Unchanged, "reasons": []}),
            )
            .unwrap()
        };
        steps.iter().enumerate().map(case).collect()
    }

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

    #[test]
    fn a_rise_over_all_cases_and_a_case_out_of_proportion_are_review_items() {
        let mut steps: Vec<_> = (0..12).map(|_| (5.0, 7.0)).collect();
        steps.push((5.0, 95.0));
        let cases = cases(&steps);
        let review = usage_review(&cases, &usage::compare_all(&cases));
        let items: Vec<_> = review.iter().map(|item| (item.code.as_str(), item.message.as_str())).collect();
        assert_eq!(
            items,
            [
                ("usage-rose", "per case: steps 5 → 13.8 (×2.75, p below 0.001)"),
                ("usage-outlier", "steps 5 → 95 (×19)")
            ]
        );
        assert_eq!(review[1].case_id.as_ref().map(ToString::to_string).as_deref(), Some("c12"));
    }

    #[test]
    fn a_duration_of_a_few_milliseconds_is_never_out_of_proportion() {
        let review = |baseline: f64, new: f64| {
            let mut cases = cases(&[(5.0, 5.0)]);
            let side = |millis: f64| SideUsage { duration_ms: Some(millis.into()), ..SideUsage::default() };
            cases[0].usage = Some(CaseUsage { baseline: Some(side(baseline)), new: Some(side(new)) });
            usage_review(&cases, &usage::compare_all(&cases)).len()
        };
        assert_eq!((review(1.0, 69.0), review(10.0, 690.0)), (0, 1));
    }
}
