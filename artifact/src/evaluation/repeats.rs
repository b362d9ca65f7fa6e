//! What several runs of a side tell, and one cannot: how often something holds, and what is the agent's own noise.

use serde::{Deserialize, Serialize};

use super::{ComparedRun, SidePointer};
use crate::number::whole;

/// Every run of both sides, where a side has more than one, and what they tell of the whole suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// The baseline's runs, in the order in which they were named.
    pub baseline: Vec<ComparedRun>,
    /// New's runs, in the order in which they were named.
    pub new: Vec<ComparedRun>,
    /// The rates over all cases, each case held against itself; one for each measure that any case has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suite: Vec<SuiteMeasure>,
}

/// What is counted over the runs of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasureCode {
    /// Runs in which the agent answered, of those that asked it.
    Answered,
    /// Runs in which every expectation of the cases file is met, of those with an answer.
    Expectations,
    /// Runs in which every evidence ref resolves and every action of high risk has one, of those with an answer.
    Evidence,
}

impl MeasureCode {
    /// The word used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            MeasureCode::Answered => "answered",
            MeasureCode::Expectations => "expectations",
            MeasureCode::Evidence => "evidence",
        }
    }
}

/// In how many runs something held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Runs in which it held.
    #[serde(deserialize_with = "whole::required")]
    pub passed: u64,
    /// Runs that were counted.
    #[serde(deserialize_with = "whole::required")]
    pub runs: u64,
    /// Between which shares the true one lies, with 95 % confidence (Wilson 1927); absent without runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

impl Rate {
    /// True where it held in less than half of the runs.
    pub const fn is_in_less_than_half(&self) -> bool {
        self.passed.saturating_mul(2) < self.runs
    }
}

/// What the runs of one case say of a measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseMeasure {
    /// What is counted.
    pub code: MeasureCode,
    /// On the baseline.
    pub baseline: Rate,
    /// On new.
    pub new: Rate,
    /// How likely a fall like this is where nothing changed; one-sided, by itself.
    pub p: f64,
    /// The same, corrected for the number of cases.
    pub corrected: f64,
    /// What is concluded.
    pub tier: Tier,
    /// How many more runs a side would decide, if it goes on as it does; absent where it is decided, or no number would.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    pub more_runs: Option<u64>,
}

/// What is concluded from counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// It fell: chance alone would hardly give these counts.
    Regression,
    /// It fell by much, and chance is not ruled out.
    Likely,
    /// It fell by so much that it is worth a look, on too few runs to say more.
    Watch,
    /// Too few runs to say either way.
    Unknown,
    /// There is nothing to see: no fall, and runs enough to have seen one.
    Steady,
    /// It rose: chance alone would hardly give these counts.
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

/// What all cases together say of a measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuiteMeasure {
    /// What is counted.
    pub code: MeasureCode,
    /// On the baseline, over all cases.
    pub baseline: Rate,
    /// On new, over all cases.
    pub new: Rate,
    /// How likely a fall like this is where nothing changed; one-sided, each case held against itself.
    pub p: f64,
    /// True where it counts as a fall.
    pub fell: bool,
}

/// What the runs of a case say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseRepeats {
    /// Which runs the reasons and pointers of the case are about.
    pub shown: ShownRuns,
    /// How often things held; those only that the case has.
    pub measures: Vec<CaseMeasure>,
    /// The places at which the sides differ in any run, those that are not noise first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceNoise>,
    /// Places that differ too, and are not listed.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "whole::required")]
    pub places_omitted: u64,
    /// What of the pair that is shown is noise, by where it stands; empty where all of it is, or nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noise: Vec<SidePointer>,
    /// Places that are noise too, and are not listed.
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "whole::required")]
    pub noise_omitted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A run of each side, counted from 0 in the order of [`Repeats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownRuns {
    /// The baseline's.
    #[serde(deserialize_with = "whole::required")]
    pub baseline: u64,
    /// New's.
    #[serde(deserialize_with = "whole::required")]
    pub new: u64,
}

/// A place at which runs differ, and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlaceNoise {
    /// The place in words, such as `refund_order amount`, `tool sequence` or `output`.
    pub place: String,
    /// Pairs of two baseline runs that differ there.
    pub baseline: DifferingPairs,
    /// Pairs of a baseline run and a new run that differ there.
    pub new: DifferingPairs,
    /// True where new differs no more than the baseline from itself.
    pub noise: bool,
    /// What that rests on.
    pub basis: NoiseBasis,
}

/// How many pairs of runs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DifferingPairs {
    /// Pairs that differ.
    #[serde(deserialize_with = "whole::required")]
    pub differ: u64,
    /// All pairs.
    #[serde(deserialize_with = "whole::required")]
    pub of: u64,
}

/// What a place was called noise, or not, by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseBasis {
    /// A test on the runs of this case alone.
    CaseTest,
    /// A test on the same place in all cases.
    PooledTest,
    /// No test says that new differs more, and the baseline differs from itself there in this case.
    CaseSeen,
    /// No test says that new differs more, and the baseline differs from itself there in other cases.
    PooledSeen,
    /// The baseline never differs from itself there in this case; that it may in others excuses no proposed action.
    CaseNeverSeen,
    /// The baseline never differs from itself there.
    NeverSeen,
    /// No case has two baseline runs that could differ there; for whether an action is proposed, this case has none.
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
            NoiseBasis::NeverSeen => "never_seen",
            NoiseBasis::NotKnown => "not_known",
        }
    }
}
