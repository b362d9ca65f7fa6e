//! `evaluation.json`: the result of a comparison as data. It contains no path and no time of the comparison: the same runs
//! always give the same bytes.

mod case_details;
mod gate;
mod repeats;
mod story;
mod usage;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use case_details::{Alignment, Divergence, DivergenceKind, Operations};
pub use case_details::{CaseFinding, Cause, Cluster, Severity, SeverityLevel, SeverityShare};
pub use case_details::{ExpectationResult, Judgement};
pub use gate::{Bound, Gate, GateOutcome, GateRule, GateScope, ReviewItem, RuleTest};
pub use repeats::{
    CaseMeasure, CaseRepeats, DifferingPairs, MeasureCode, NoiseBasis, PlaceNoise, Rate, Repeats, ShownRuns,
    SuiteMeasure, Tier,
};

pub use story::{ChangedArgument, Effect, Harm, Story};
pub use usage::{CaseUsage, SideUsage, UsageCode, UsageMeasure, UsageMethod, UsageRatio};

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

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "an object with the fields of an evaluation")]
pub struct Evaluation {
    /// Always `evaluation.v1`.
    pub schema_version: EvaluationSchema,
    /// The program that compared the runs, and its version.
    pub evaluator_version: String,
    /// The run of the known-good version; the first one if there are several.
    pub baseline: ComparedRun,
    /// The run of the version under test; the first one if there are several.
    pub new: ComparedRun,
    /// All runs of both sides; absent where each side has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// True where the agent is declared deterministic, or its runs show it beyond chance: one run then decides a case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
    /// Facts that a reader must know before any number below, most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// The rates over all cases: one entry for each measure that at least one case has, also with one run per side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suite: Vec<SuiteMeasure>,
    /// The number of cases with each verdict. Every verdict is listed, also with 0.
    #[serde(deserialize_with = "whole::by_key")]
    pub counts: BTreeMap<Verdict, u64>,
    /// Time, size and cost over all cases: one entry for each quantity that both sides have in some case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<UsageMeasure>,
    /// The result of the gate.
    pub gate: Gate,
    /// All rules of the comparison with their number of matches; absent if there are no rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleUse>,
    /// One evaluation for each case: in the order of the baseline, then the cases that only new has.
    pub cases: Vec<CaseEvaluation>,
    /// Cases grouped by cause, the largest group first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A fact that puts the whole comparison in doubt, such as an outage of the agent's provider. It stands above everything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// A stable kebab-case name.
    pub code: String,
    /// One sentence without a full stop.
    pub message: String,
    /// The cases that it is about; empty if it is about all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub case_ids: Vec<CaseId>,
}

/// A rule of the comparison and its number of matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleUse {
    /// A description of the rule.
    pub rule: String,
    /// The number of matches on both sides. A rule without a match probably has a spelling mistake.
    #[serde(deserialize_with = "whole::required")]
    pub matched: u64,
}

/// A compared run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedRun {
    /// The run's id.
    pub run_id: RunId,
    /// The start time, in ISO 8601.
    pub generated_at: String,
    /// The program that wrote the run, and its version.
    pub runner_version: String,
    /// The commit of the working directory of the runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_commit: Option<String>,
    /// True where there were uncommitted changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The number of selected cases.
    #[serde(deserialize_with = "whole::required")]
    pub cases_selected: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ComparedRun {
    /// The start time in nanoseconds since 1970-01-01T00:00:00Z, for times of any offset and precision; `None` if it is not
    /// a valid time.
    pub fn started(&self) -> Option<i128> {
        point_in_time(&self.generated_at).map(Timestamp::as_nanosecond)
    }
}

/// The result of one case: the first verdict that applies, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// An artifact of at least one side is invalid.
    Invalid,
    /// The case is on the baseline side only.
    Missing,
    /// The case is on the new side only.
    Added,
    /// The two sides were asked different things, so that neither is the measure of the other.
    NotComparable,
    /// Only new has a runner error.
    Broken,
    /// Only the baseline has a runner error.
    Recovered,
    /// Both sides have runner errors.
    StillBroken,
    /// A met expectation is now unmet, evidence was lost, or a risk rose without evidence.
    Regressed,
    /// An unmet expectation is now met.
    Improved,
    /// The sides differ, with no sign of a regression or an improvement.
    Changed,
    /// The sides differ, and no test of their several runs can tell whether by more than chance.
    Undecided,
    /// The sides differ no more than the baseline runs differ from each other.
    Noisy,
    /// No difference remains after the rules of the comparison.
    Unchanged,
}

impl Verdict {
    /// All verdicts, in the order in which they are tested.
    pub const ALL: [Verdict; 13] = [
        Verdict::Invalid,
        Verdict::Missing,
        Verdict::Added,
        Verdict::NotComparable,
        Verdict::Broken,
        Verdict::Recovered,
        Verdict::StillBroken,
        Verdict::Regressed,
        Verdict::Improved,
        Verdict::Changed,
        Verdict::Undecided,
        Verdict::Noisy,
        Verdict::Unchanged,
    ];

    /// All verdicts in display order.
    pub const WORST_FIRST: [Verdict; 13] = [
        Verdict::Regressed,
        Verdict::Broken,
        Verdict::Invalid,
        Verdict::Missing,
        Verdict::Added,
        Verdict::NotComparable,
        Verdict::Changed,
        Verdict::Undecided,
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
            Verdict::NotComparable => "not_comparable",
            Verdict::Broken => "broken",
            Verdict::Recovered => "recovered",
            Verdict::StillBroken => "still_broken",
            Verdict::Regressed => "regressed",
            Verdict::Improved => "improved",
            Verdict::Changed => "changed",
            Verdict::Undecided => "undecided",
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

/// The evaluation of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseEvaluation {
    /// The case.
    pub case_id: CaseId,
    /// The title in the cases file, or else in the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// True for the verdict `regressed` or `broken` where the runs do not exclude chance: one run per side of an agent that is
    /// not deterministic, and no confirmation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfirmed: bool,
    /// The reasons for the verdict, the decisive one first.
    pub reasons: Vec<Reason>,
    /// The first step at which the two sides differ in meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_divergence: Option<Divergence>,
    /// The step from which the two sides go separate ways to the end; absent where they come together again, or where it is
    /// the first divergence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasting_divergence: Option<Divergence>,
    /// The alignment of the events; absent where a side has no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment: Option<Alignment>,
    /// The root cause of the difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Problems of the new side, independent of the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<CaseFinding>,
    /// The priority for review. It orders cases and does not affect the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The highest risk of an action on either side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<RiskLevel>,
    /// The tools that either side called or proposed, sorted. Long names and long lists are truncated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The tags in the cases file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The suite in the cases file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// What was asked, said and done.
    #[serde(default)]
    pub story: Story,
    /// The results of the expectations in the cases file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<ExpectationResult>,
    /// Time, size and cost; absent where no side has an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<CaseUsage>,
    /// The statistics over all runs; absent where each side has one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<CaseRepeats>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl CaseEvaluation {
    /// The level of the severity; `None` if nothing counts.
    pub fn severity_level(&self) -> Option<SeverityLevel> {
        self.severity.as_ref().and_then(Severity::level)
    }

    /// True where new does not meet the expectations. With several runs: where less than half of them do.
    pub fn is_unmet_on_new(&self) -> bool {
        self.met(|measure| &measure.new).map_or_else(|| !self.unmet_on_new().is_empty(), Rate::is_in_less_than_half)
    }

    /// True where the expectations could be evaluated in at least one run of new.
    pub fn is_judged_on_new(&self) -> bool {
        self.met(|measure| &measure.new).is_some() || self.expectations.iter().any(|result| result.new.is_some())
    }

    /// True where the baseline does not meet the expectations that new does not meet.
    pub fn was_unmet_before(&self) -> bool {
        let failed = |side: &Option<Judgement>| side.as_ref().is_some_and(|side| !side.is_met());
        let in_pair = || self.unmet_on_new().iter().all(|result| failed(&result.baseline));
        self.met(|measure| &measure.baseline).map_or_else(in_pair, Rate::is_in_less_than_half)
    }

    /// The rate of runs of a side that meet the expectations, if there are repeats.
    fn met(&self, side: fn(&CaseMeasure) -> &Rate) -> Option<&Rate> {
        self.measure(MeasureCode::Expectations).map(side).filter(|rate| rate.runs > 0)
    }

    /// Returns the statistics of a measure, where the case has it.
    pub fn measure(&self, code: MeasureCode) -> Option<&CaseMeasure> {
        self.repeats.iter().flat_map(|repeats| &repeats.measures).find(|measure| measure.code == code)
    }

    /// Returns the expectations that new does not meet in the displayed run.
    pub fn unmet_on_new(&self) -> Vec<&ExpectationResult> {
        let unmet = |result: &&ExpectationResult| result.new.as_ref().is_some_and(|new| !new.is_met());
        self.expectations.iter().filter(unmet).collect()
    }
}

/// A reason for a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// A stable kebab-case name.
    pub code: String,
    /// One sentence with the changed values.
    pub message: String,
    /// The parts of the artifacts that show it.
    pub pointers: Vec<SidePointer>,
}

/// A pointer into the artifact of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SidePointer {
    /// The side of the artifact.
    pub side: Side,
    /// A JSON Pointer (RFC 6901) into the artifact.
    pub pointer: String,
}

impl SidePointer {
    /// Creates a pointer into the artifact of a side.
    pub fn new(side: Side, pointer: impl Into<String>) -> Self {
        Self { side, pointer: pointer.into() }
    }

    /// The field of the artifact that it leads into, and the index of the entry: `("events", Some(3))` for `/events/3/args/id`.
    pub fn entry(&self) -> (&str, Option<usize>) {
        // A pointer starts with a slash, so its first segment is empty.
        let mut segments = self.pointer.split('/').skip(1);
        (segments.next().unwrap_or_default(), segments.next().and_then(|index| index.parse().ok()))
    }
}
