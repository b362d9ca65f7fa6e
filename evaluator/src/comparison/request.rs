//! What a comparison is asked: the runs of both sides, the cases, and the settings of all stages.

use counterproof_artifact::Side;
use counterproof_cases::CaseSpec;

use crate::gate::GateRules;
use crate::judge::Expectations;
use crate::judge::signals::SignalSettings;
use crate::load::{ComparedRun, SideRuns};
use crate::repeats::RepeatAnalysis;
use crate::rules::Rules;
use crate::statistics::Thresholds;

/// The runs to compare, and the settings of the comparison.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The runs of the known-good version.
    pub baseline: SideRuns,
    /// The runs of the version under test.
    pub new: SideRuns,
    /// The cases of the cases file, for titles, tags and suites; empty if it is not known.
    pub cases: &'a [CaseSpec],
    /// The compiled expectations of the cases.
    pub expectations: Expectations,
    /// The rules of comparison.
    pub rules: Rules,
    /// The gate's limits.
    pub limits: GateRules,
    /// The statistical thresholds.
    pub thresholds: Thresholds,
    /// Whether the agent is declared to do the same in every run. A single failure then fails the gate.
    pub is_deterministic: bool,
    /// The settings of the signals.
    pub signals: SignalSettings,
    /// Whether there is no baseline: both sides are the new run, and only its expectations are checked.
    pub is_alone: bool,
}

impl Request<'_> {
    /// A comparison of two sides without a cases file, with default settings.
    pub fn new(baseline: SideRuns, new: SideRuns) -> Self {
        Self {
            baseline,
            new,
            cases: &[],
            expectations: Expectations::default(),
            rules: Rules::default(),
            limits: GateRules::default(),
            thresholds: Thresholds::default(),
            is_deterministic: false,
            signals: SignalSettings::default(),
            is_alone: false,
        }
    }

    pub(super) const fn runs(&self, side: Side) -> &SideRuns {
        match side {
            Side::Baseline => &self.baseline,
            Side::New => &self.new,
        }
    }

    /// Whether the configuration or every run declares the agent deterministic.
    pub fn declares_deterministic(&self) -> bool {
        let declares = |run: &ComparedRun| run.reader().run().deterministic == Some(true);
        self.is_deterministic || self.baseline.iter().chain(self.new.iter()).all(declares)
    }

    /// Whether one run decides a case: the agent is declared deterministic, or several runs show that it is.
    pub(super) fn is_deterministic_over(&self, repeated: Option<&RepeatAnalysis>) -> bool {
        repeated.map_or_else(|| self.declares_deterministic(), RepeatAnalysis::is_deterministic)
    }
}
