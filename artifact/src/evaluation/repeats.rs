//! Statistics over repeated runs: rates, their changes, and the noise of the agent.

use serde::{Deserialize, Serialize};

use super::{ComparedRun, SidePointer};
use crate::number::whole;

/// All runs of both sides, and the statistics over all cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// The runs of the baseline, in the order of the command line.
    pub baseline: Vec<ComparedRun>,
    /// The runs of new, in the order of the command line.
    pub new: Vec<ComparedRun>,
    /// The rates over all cases: one entry for each measure that at least one case has. Each case is compared with itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suite: Vec<SuiteMeasure>,
}

/// A property that is counted over the runs of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureCode {
    /// Runs that solve the case: the agent answered, every expectation of the cases file is met, every evidence ref resolves,
    /// and every high-risk action has one. What is not required counts as met. This measure decides; the others explain it.
    Solved,
    /// Runs with an answer, of the runs of the case.
    Answered,
    /// Runs that meet all expectations of the cases file, of the runs with an answer.
    Expectations,
    /// Runs where every evidence ref resolves and every high-risk action has one, of the runs with an answer.
    Evidence,
}

impl MeasureCode {
    /// All measures, the one that decides first.
    pub const ALL: [MeasureCode; 4] =
        [MeasureCode::Solved, MeasureCode::Answered, MeasureCode::Expectations, MeasureCode::Evidence];

    /// The word used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            MeasureCode::Solved => "solved",
            MeasureCode::Answered => "answered",
            MeasureCode::Expectations => "expectations",
            MeasureCode::Evidence => "evidence",
        }
    }
}

/// The share of runs with a property.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Runs with the property.
    #[serde(deserialize_with = "whole::required")]
    pub passed: u64,
    /// All counted runs.
    #[serde(deserialize_with = "whole::required")]
    pub runs: u64,
    /// The 95 % confidence interval of the share (Wilson 1927); absent without runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Rate {
    /// True where less than half of the runs have the property.
    pub const fn is_in_less_than_half(&self) -> bool {
        self.passed.saturating_mul(2) < self.runs
    }
}

/// The statistics of one case and one measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseMeasure {
    /// The counted property.
    pub code: MeasureCode,
    /// The rate on the baseline.
    pub baseline: Rate,
    /// The rate on new.
    pub new: Rate,
    /// The one-sided p-value of a decrease like this, without correction.
    pub p: f64,
    /// The p-value, corrected for the number of cases.
    pub corrected: f64,
    /// The conclusion.
    pub tier: Tier,
    /// The number of additional runs per side that would give a decision at the current rates. Absent if there is a
    /// decision, or where no number of runs would give one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    pub more_runs: Option<u64>,
    /// The number of additional runs of the baseline alone that would give a decision at the current rates. Absent like
    /// `more_runs`, and where runs of the baseline alone would not decide.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    pub more_baseline_runs: Option<u64>,
}

impl CaseMeasure {
    /// True where new has the lower rate.
    pub fn is_lower_on_new(&self) -> bool {
        // Cross-multiplied, so that no rounding makes equal rates differ.
        let product = |passed: &Rate, runs: &Rate| u128::from(passed.passed) * u128::from(runs.runs);
        product(&self.new, &self.baseline) < product(&self.baseline, &self.new)
    }

    /// True where new has the lower rate on too few runs to rule out chance, and a known number of further runs would decide.
    pub fn is_open_fall(&self) -> bool {
        let is_open = matches!(self.tier, Tier::Likely | Tier::Watch | Tier::Unknown);
        is_open && self.more_runs.is_some() && self.is_lower_on_new()
    }
}

/// A conclusion from counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// A significant decrease.
    Regression,
    /// A large decrease that is not significant.
    Likely,
    /// A decrease that is large enough for a review, with too few runs for a stronger conclusion.
    Watch,
    /// Too few runs for a conclusion.
    Unknown,
    /// No decrease, with enough runs to detect one.
    Steady,
    /// A significant increase.
    Improvement,
}

impl Tier {
    /// The word used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Tier::Regression => "regression",
            Tier::Likely => "likely",
            Tier::Watch => "watch",
            Tier::Unknown => "unknown",
            Tier::Steady => "steady",
            Tier::Improvement => "improvement",
        }
    }
}

/// The statistics of one measure over all cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuiteMeasure {
    /// The counted property.
    pub code: MeasureCode,
    /// The rate on the baseline, over all cases.
    pub baseline: Rate,
    /// The rate on new, over all cases.
    pub new: Rate,
    /// The one-sided p-value of a decrease like this. Each case is compared with itself.
    pub p: f64,
    /// True where the decrease is significant. For the parts of `solved`: where `solved` fell too.
    pub fell: bool,
    /// The number of cases with a lower rate on new.
    #[serde(default, deserialize_with = "whole::required")]
    pub cases_fell: u64,
    /// The number of cases with a higher rate on new.
    #[serde(default, deserialize_with = "whole::required")]
    pub cases_rose: u64,
}

/// The statistics of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseRepeats {
    /// The pair of runs that the reasons and pointers of the case refer to.
    pub shown: ShownRuns,
    /// One entry for each measure that the case has.
    pub measures: Vec<CaseMeasure>,
    /// The parts that differ in any pair of runs; those that are not noise come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceNoise>,
    /// The number of differing parts that are not listed.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "whole::required")]
    pub places_omitted: u64,
    /// The differences of the displayed pair that are noise; empty where all or none of them are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<SidePointer>,
    /// The number of noisy differences that are not listed.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "whole::required")]
    pub noise_omitted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The displayed run of each side, as an index into the lists of [`Repeats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownRuns {
    /// The index of the baseline run, from 0.
    #[serde(deserialize_with = "whole::required")]
    pub baseline: u64,
    /// The index of the new run, from 0.
    #[serde(deserialize_with = "whole::required")]
    pub new: u64,
}

/// A part of the answer in which runs differ, and the number of pairs that differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlaceNoise {
    /// The name of the part, such as `refund_order amount`, `tool sequence` or `output`.
    pub place: String,
    /// Pairs of two baseline runs that differ there.
    pub baseline: DifferingPairs,
    /// Pairs of a baseline run and a new run that differ there.
    pub new: DifferingPairs,
    /// True where new differs from the baseline no more than the baseline runs differ from each other.
    pub noise: bool,
    /// The basis of the decision.
    pub basis: NoiseBasis,
}

/// The number of pairs of runs that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DifferingPairs {
    /// Pairs that differ.
    #[serde(deserialize_with = "whole::required")]
    pub differ: u64,
    /// All pairs.
    #[serde(deserialize_with = "whole::required")]
    pub of: u64,
}

/// The basis of the decision whether a difference is noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseBasis {
    /// A statistical test on the runs of this case.
    CaseTest,
    /// A statistical test on the same part in all cases.
    PooledTest,
    /// No test shows that new differs more, and the baseline runs of this case differ there.
    CaseSeen,
    /// No test shows that new differs more, and the baseline runs of other cases differ there.
    PooledSeen,
    /// The baseline runs of this case never differ there. For proposed actions, differences in other cases do not count.
    CaseNeverSeen,
    /// The baseline runs of this case differ there, and none of them has what a run of new has: another id, recipient or amount of a
    /// high-risk action, or no action that all of them propose.
    NeverInBaseline,
    /// The baseline runs of no case differ there.
    NeverSeen,
    /// No case has two baseline runs that could differ there. For the presence of a proposed action, only this case counts.
    NotKnown,
}

impl NoiseBasis {
    /// The word used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            NoiseBasis::CaseTest => "case_test",
            NoiseBasis::PooledTest => "pooled_test",
            NoiseBasis::CaseSeen => "case_seen",
            NoiseBasis::PooledSeen => "pooled_seen",
            NoiseBasis::CaseNeverSeen => "case_never_seen",
            NoiseBasis::NeverInBaseline => "never_in_baseline",
            NoiseBasis::NeverSeen => "never_seen",
            NoiseBasis::NotKnown => "not_known",
        }
    }
}
