//! `evaluation.json`: what a comparison found, as data. It names no path and no time of its own, so that the same two
//! runs always give the same bytes.

mod alignment;
mod expectation;
mod explanation;
mod gate;
mod repeats;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use alignment::{Alignment, Divergence, DivergenceKind, Operations};
pub use expectation::{ExpectationResult, Judgement};
pub use explanation::{CaseFinding, Cause, Cluster, Severity, SeverityShare};
pub use gate::{Bound, Gate, GateOutcome, GateRule, GateScope};
pub use repeats::{
    CaseMeasure, CaseRepeats, DifferingPairs, MeasureCode, NoiseBasis, PlaceNoise, Rate, Repeats, ShownRuns,
    SuiteMeasure, Tier,
};

use crate::number::whole;
use crate::run::point_in_time;
use crate::{CaseId, Extra, RiskLevel, RunId, Side};

/// The version of the evaluation document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum EvaluationSchema {
    /// `evaluation.v1`
    #[default]
    #[serde(rename = "evaluation.v1")]
    V1,
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Always `evaluation.v1`.
    pub schema_version: EvaluationSchema,
    /// The program that compared, and its version.
    pub evaluator_version: String,
    /// The run that is known to be good; the first, where there are several.
    pub baseline: ComparedRun,
    /// The run under test; the first, where there are several.
    pub new: ComparedRun,
    /// Every run of both sides, where a side has more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// How many cases have each verdict; every verdict is listed, with 0 too.
    #[serde(deserialize_with = "whole::by_key")]
    pub counts: BTreeMap<Verdict, u64>,
    /// Whether it may go out.
    pub gate: Gate,
    /// Every rule of comparison, with how often it acted; absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleUse>,
    /// One for each case of either side: in the baseline's order, then those that only the new side has.
    pub cases: Vec<CaseEvaluation>,
    /// The causes, each with the cases that share it: those of most cases first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A rule of comparison and what it was good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleUse {
    /// The rule, in words.
    pub rule: String,
    /// At how many places of both sides it acted; a rule that never did is probably misspelt.
    #[serde(deserialize_with = "whole::required")]
    pub matched: u64,
}

impl Evaluation {
    /// The cases in the order in which a reader wants to see them: worst verdict first, and within it the most severe.
    pub fn worst_first(&self) -> Vec<&CaseEvaluation> {
        let rank = |case: &CaseEvaluation| Verdict::WORST_FIRST.iter().position(|verdict| *verdict == case.verdict);
        let score = |case: &CaseEvaluation| case.severity.as_ref().map_or(0.0, |severity| severity.score);
        let mut cases: Vec<_> = self.cases.iter().collect();
        cases.sort_by(|a, b| rank(a).cmp(&rank(b)).then(score(b).total_cmp(&score(a))));
        cases
    }
}

/// One of the two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedRun {
    /// The run's id.
    pub run_id: RunId,
    /// When it started, in ISO 8601.
    pub generated_at: String,
    /// The program that wrote it.
    pub runner_version: String,
    /// The commit it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_commit: Option<String>,
    /// True where that checkout had uncommitted changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// Cases it set out to ask.
    #[serde(deserialize_with = "whole::required")]
    pub cases_selected: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ComparedRun {
    /// When it started, in nanoseconds since 1970, whatever its offset and precision; `None` for a text that is no time.
    pub fn started(&self) -> Option<i128> {
        point_in_time(&self.generated_at).map(Timestamp::as_nanosecond)
    }
}

/// What is said of one case: the first that applies, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// An artifact of either side breaks the contract.
    Invalid,
    /// The case is on the baseline side only.
    Missing,
    /// The case is on the new side only.
    Added,
    /// New could not be run, baseline could.
    Broken,
    /// Baseline could not be run, new could.
    Recovered,
    /// Neither side could be run.
    StillBroken,
    /// An expectation fails that held; evidence is gone; a risk rose without evidence.
    Regressed,
    /// An expectation holds that failed.
    Improved,
    /// They differ, and nothing says whether for better or worse.
    Changed,
    /// They differ, but no more than the baseline differs from itself.
    Noisy,
    /// No difference after the rules of comparison.
    Unchanged,
}

impl Verdict {
    /// All verdicts, first match first.
    pub const ALL: [Verdict; 11] = [
        Verdict::Invalid,
        Verdict::Missing,
        Verdict::Added,
        Verdict::Broken,
        Verdict::Recovered,
        Verdict::StillBroken,
        Verdict::Regressed,
        Verdict::Improved,
        Verdict::Changed,
        Verdict::Noisy,
        Verdict::Unchanged,
    ];

    /// All verdicts in the order in which a reader wants to hear of them.
    pub const WORST_FIRST: [Verdict; 11] = [
        Verdict::Regressed,
        Verdict::Broken,
        Verdict::Invalid,
        Verdict::Missing,
        Verdict::Added,
        Verdict::Changed,
        Verdict::Noisy,
        Verdict::StillBroken,
        Verdict::Improved,
        Verdict::Recovered,
        Verdict::Unchanged,
    ];

    /// The word used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Invalid => "invalid",
            Verdict::Missing => "missing",
            Verdict::Added => "added",
            Verdict::Broken => "broken",
            Verdict::Recovered => "recovered",
            Verdict::StillBroken => "still_broken",
            Verdict::Regressed => "regressed",
            Verdict::Improved => "improved",
            Verdict::Changed => "changed",
            Verdict::Noisy => "noisy",
            Verdict::Unchanged => "unchanged",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What was found in one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseEvaluation {
    /// The case.
    pub case_id: CaseId,
    /// Its title in the cases file, or else in its artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is said of it.
    pub verdict: Verdict,
    /// Why, the deciding reason first.
    pub reasons: Vec<Reason>,
    /// The first step at which the two sides differ in meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_divergence: Option<Divergence>,
    /// How the events of the two sides line up; absent where not both sides answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment: Option<Alignment>,
    /// From where the difference comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// What is wrong with the new side by itself, whatever the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<CaseFinding>,
    /// How much the case deserves a look. It ranks, and is never a gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The highest risk of an action on either side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<RiskLevel>,
    /// The tools that either side called or proposed, sorted; long names are cut, and long lists too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Its tags in the cases file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its suite in the cases file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// The expectations of the cases file, judged on both sides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<ExpectationResult>,
    /// What the runs of both sides say, where a side has more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<CaseRepeats>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CaseEvaluation {
    /// True where new does not meet the expectations: of several runs, less than half do.
    pub fn is_unmet_on_new(&self) -> bool {
        self.met(|measure| &measure.new).map_or_else(|| !self.unmet_on_new().is_empty(), Rate::is_in_less_than_half)
    }

    /// True where the expectations could be judged on new: in any run.
    pub fn is_judged_on_new(&self) -> bool {
        self.met(|measure| &measure.new).is_some() || self.expectations.iter().any(|result| result.new.is_some())
    }

    /// True where the baseline does not meet the expectations either that new does not meet.
    pub fn was_unmet_before(&self) -> bool {
        let failed = |side: &Option<Judgement>| side.as_ref().is_some_and(|side| !side.is_met());
        let in_pair = || self.unmet_on_new().iter().all(|result| failed(&result.baseline));
        self.met(|measure| &measure.baseline).map_or_else(in_pair, Rate::is_in_less_than_half)
    }

    /// In how many runs of a side the expectations are met, where several runs could be counted.
    fn met(&self, side: fn(&CaseMeasure) -> &Rate) -> Option<&Rate> {
        self.measure(MeasureCode::Expectations).map(side).filter(|rate| rate.runs > 0)
    }

    /// What several runs say of a measure, where the case has it.
    pub fn measure(&self, code: MeasureCode) -> Option<&CaseMeasure> {
        self.repeats.iter().flat_map(|repeats| &repeats.measures).find(|measure| measure.code == code)
    }

    /// The expectations that new does not meet, in the run that is shown.
    pub fn unmet_on_new(&self) -> Vec<&ExpectationResult> {
        let unmet = |result: &&ExpectationResult| result.new.as_ref().is_some_and(|new| !new.is_met());
        self.expectations.iter().filter(unmet).collect()
    }
}

/// Why a case has its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// A stable kebab-case name.
    pub code: String,
    /// One sentence with the values that moved.
    pub message: String,
    /// Where to look.
    pub pointers: Vec<SidePointer>,
}

/// A place in the artifact of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SidePointer {
    /// Whose artifact.
    pub side: Side,
    /// A JSON Pointer (RFC 6901) into it.
    pub pointer: String,
}
