//! Review items about what the agent uses: time, steps, tokens and cost.

use counterproof_artifact::evaluation::{CaseEvaluation, ReviewItem, UsageCode, UsageMeasure};

use super::review::ReviewCode;
use crate::messages::usage as messages;
use crate::statistics::usage;

/// The growth from which on a single case is named. One run says little about one case, so only an order of magnitude counts.
const OUTLIER_FROM: f64 = 10.0;

/// What a person should look at: quantities that rose over all cases, a strong fall of the steps, then single cases that are out of
/// all proportion.
pub(crate) fn items(cases: &[CaseEvaluation], measures: &[UsageMeasure], agent: Repeatability) -> Vec<ReviewItem> {
    let item = |code: ReviewCode, means: String| code.item(None, format!("per case: {means}"), Vec::new());
    // What a deterministic agent takes differs only where its versions do, except for the time.
    let is_certain = |measure: &UsageMeasure| {
        agent == Repeatability::Deterministic && !matches!(measure.code, UsageCode::Duration | UsageCode::ToolTime)
    };
    let rose =
        |measure: &&UsageMeasure| messages::rose(measure) || is_certain(measure) && messages::is_named_rise(measure);
    let fell = |measure: &&UsageMeasure| {
        let is_beyond_chance = || usage::fall_p(measure.code, cases) <= messages::ROSE_AT;
        measure.code == UsageCode::Steps
            && messages::fell_strongly(measure)
            && (is_certain(measure) || is_beyond_chance())
    };
    let rose =
        measures.iter().filter(rose).map(|measure| item(ReviewCode::UsageRose, messages::mean_per_case(measure)));
    let fell =
        measures.iter().filter(fell).map(|measure| item(ReviewCode::StepsFell, messages::fall_per_case(measure)));
    rose.chain(fell).chain(outliers(cases)).chain(idle(cases)).collect()
}

/// Whether an agent that is asked the same does the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeatability {
    /// It does, so a single difference is not chance.
    Deterministic,
    /// It may not, so a test over the runs decides.
    Variable,
}

/// The cases in which new takes a tenth of baseline's steps or none, and fewer than baseline in any case.
fn idle(cases: &[CaseEvaluation]) -> impl Iterator<Item = ReviewItem> {
    let steps = |case: &CaseEvaluation| case.usage.as_ref()?.compared(UsageCode::Steps);
    let on_baseline = |case: &CaseEvaluation| case.usage.as_ref()?.baseline.as_ref()?.get(UsageCode::Steps);
    let least = cases.iter().filter_map(on_baseline).fold(f64::INFINITY, f64::min);
    cases.iter().filter_map(move |case| {
        let (old, new) = steps(case)?;
        (new < least && new * OUTLIER_FROM <= old).then(|| {
            let [before, after] = [old, new].map(|steps| messages::amount(UsageCode::Steps, steps, None));
            ReviewCode::StepsFell.item(Some(case.case_id.clone()), format!("steps {before} → {after}"), Vec::new())
        })
    })
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
            let [before, after] = [old, new].map(|value| messages::amount(code, value, currency));
            let growth = messages::notable_change(code, old, new)?;
            Some(format!("{} {before} → {after} ({growth})", messages::quantity(code)))
        });
        let grown: Vec<_> = grown.collect();
        (!grown.is_empty())
            .then(|| ReviewCode::UsageOutlier.item(Some(case.case_id.clone()), grown.join(", "), Vec::new()))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use counterproof_artifact::evaluation::{CaseUsage, SideUsage, Verdict};

    use super::*;

    /// Cases with these steps on baseline and new.
    pub(in crate::gate) fn cases(steps: &[(f64, f64)]) -> Vec<CaseEvaluation> {
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

    #[test]
    fn a_rise_over_all_cases_and_a_case_out_of_proportion_are_review_items() {
        let mut steps: Vec<_> = (0..12).map(|_| (5.0, 7.0)).collect();
        steps.push((5.0, 95.0));
        let cases = cases(&steps);
        let review = items(&cases, &usage::compare_all(&cases), Repeatability::Variable);
        let found: Vec<_> = review.iter().map(|item| (item.code.as_str(), item.message.as_str())).collect();
        assert_eq!(
            found,
            [("usage-rose", "per case: steps 5 → 13.8 (×2.75, not chance)"), ("usage-outlier", "steps 5 → 95 (×19)")]
        );
        assert_eq!(review[1].case_id.as_ref().map(ToString::to_string).as_deref(), Some("c12"));
    }

    #[test]
    fn a_duration_of_a_few_milliseconds_is_never_out_of_proportion() {
        let review = |baseline: f64, new: f64| {
            let mut cases = cases(&[(5.0, 5.0)]);
            let side = |millis: f64| SideUsage { duration_ms: Some(millis.into()), ..SideUsage::default() };
            cases[0].usage = Some(CaseUsage { baseline: Some(side(baseline)), new: Some(side(new)) });
            items(&cases, &usage::compare_all(&cases), Repeatability::Variable).len()
        };
        assert_eq!((review(1.0, 69.0), review(10.0, 690.0)), (0, 1));
    }

    fn codes(cases: &[CaseEvaluation], agent: Repeatability) -> Vec<(String, String)> {
        let review = items(cases, &usage::compare_all(cases), agent);
        review.into_iter().map(|item| (item.code, item.message)).collect()
    }

    #[test]
    fn a_strong_fall_of_steps_is_a_review_item() {
        let found = |steps: &[(f64, f64)], agent| codes(&cases(steps), agent);
        let item = |message: &str| vec![("steps-fell".to_owned(), message.to_owned())];
        assert_eq!(
            found(&[(6.0, 2.0); 12], Repeatability::Variable),
            item("per case: steps 6 → 2 (−67 %, not chance)")
        );
        assert_eq!(found(&[(6.0, 5.0); 12], Repeatability::Variable), Vec::new(), "a sixth fewer");
        assert_eq!(found(&[(6.0, 2.0); 3], Repeatability::Variable), Vec::new(), "three cases may be chance");
        assert_eq!(
            found(&[(6.0, 2.0); 3], Repeatability::Deterministic),
            item("per case: steps 6 → 2 (−67 %, not chance)")
        );
        let mut one = vec![(6.0, 6.0); 12];
        one[0].1 = 0.0;
        assert_eq!(found(&one, Repeatability::Variable), item("steps 6 → 0"));
    }

    #[test]
    fn a_rise_is_named_from_ten_percent_on() {
        let found = |steps: &[(f64, f64)], agent| codes(&cases(steps), agent).len();
        assert_eq!(found(&[(20.0, 21.0); 12], Repeatability::Variable), 0);
        assert_eq!(found(&[(20.0, 22.0); 12], Repeatability::Variable), 1);
        assert_eq!(found(&[(20.0, 21.0); 3], Repeatability::Deterministic), 0);
        assert_eq!(found(&[(20.0, 22.0); 3], Repeatability::Deterministic), 1);
        assert_eq!(found(&[(20.0, 22.0); 3], Repeatability::Variable), 0, "three cases may be chance");
    }
}
