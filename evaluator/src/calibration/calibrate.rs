//! Compares every deal of the runs of a baseline, and counts the failed gates.

use counterproof_artifact::CaseId;
use counterproof_artifact::evaluation::{GateOutcome, Tier};
use counterproof_store::ReadError;
use rayon::prelude::*;

use super::deals::{Deal, Deals, Design};
use super::smallest_fall::{SmallestFall, smallest_falls};
use crate::comparison::{Request, compare_confirmed};
use crate::load::{ComparedRun, SideRuns, pair};
use crate::repeats::solved_tallies;
use crate::statistics::{CaseTallies, Interval, TWO_SIDED_95, Tally, Thresholds, judge, wilson};

/// What the runs of a baseline show about the gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The false alarms of each design that the runs allow.
    pub false_alarms: Vec<FalseAlarms>,
    /// The smallest fall of the suite that is found, by the number of runs a side.
    pub smallest_fall: Vec<SmallestFall>,
    /// The cases that cannot be judged with as many runs as the baseline has.
    pub noisy: Vec<CaseId>,
}

/// How often the gate fails although both sides are the same agent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FalseAlarms {
    /// The numbers of runs.
    pub design: Design,
    /// The deals with a failed gate.
    pub red: usize,
    /// All deals that were compared.
    pub deals: usize,
    /// Whether these are all ways to deal the runs, and not a sample.
    pub is_complete: bool,
    /// The interval of the share at 95 %, as if the deals were independent.
    pub interval: Interval,
}

impl FalseAlarms {
    /// The share of deals with a failed gate.
    pub fn share(&self) -> f64 {
        self.red as f64 / self.deals.max(1) as f64
    }
}

/// Deals the runs of the baseline out anew, and compares the sides of each deal. `request.new` is not used. A design with more
/// than `most_deals` deals is measured with a sample of that many.
pub fn calibrate(request: &Request<'_>, most_deals: usize) -> Result<Calibration, ReadError> {
    let runs = request.baseline.iter().map(|run| run.clone().into_memory()).collect::<Result<Vec<_>, _>>()?;
    let measure = |design: Design| measure(request, &runs, design, most_deals);
    let false_alarms = Design::up_to(runs.len()).into_iter().map(measure).collect::<Result<_, _>>()?;
    let ids = pair(&request.baseline, &request.baseline)?;
    let tallies = solved_tallies(&runs, &ids, &request.expectations);
    let noisy = ids.into_iter().zip(&tallies).filter(|(_, tally)| is_noisy(**tally, &request.thresholds));
    Ok(Calibration {
        false_alarms,
        noisy: noisy.map(|(id, _)| id).collect(),
        smallest_fall: smallest_falls(&tallies, &request.thresholds),
    })
}

fn measure(
    request: &Request<'_>,
    runs: &[ComparedRun],
    design: Design,
    most_deals: usize,
) -> Result<FalseAlarms, ReadError> {
    let dealt = Deals::new(design, runs.len(), most_deals);
    let outcomes = dealt.deals.par_iter().map(|deal| is_red(request, runs, deal)).collect::<Result<Vec<_>, _>>()?;
    let red: Tally = outcomes.iter().copied().collect();
    let interval = wilson(red, TWO_SIDED_95).unwrap_or(Interval { low: 0.0, high: 1.0 });
    let is_complete = dealt.is_complete;
    Ok(FalseAlarms { design, red: red.passed as usize, deals: outcomes.len(), is_complete, interval })
}

/// Whether `compare` would exit with the code of a failed gate.
fn is_red(request: &Request<'_>, runs: &[ComparedRun], deal: &Deal) -> Result<bool, ReadError> {
    let side = |indexes: &[usize]| SideRuns::new(indexes.iter().map(|at| runs[*at].clone()).collect());
    let (Some(baseline), Some(new)) = (side(&deal.baseline), side(&deal.new)) else { return Ok(false) };
    let further = deal.confirmation.iter().map(|at| runs[*at].clone());
    let evaluation = compare_confirmed(Request { baseline, new, ..request.clone() }, further)?;
    Ok(matches!(evaluation.gate.outcome, GateOutcome::Failed | GateOutcome::NotEnoughData))
}

/// Whether a case is solved in some runs only, and so seldom that even an agent that never solves it would not stand out, in as
/// many runs and without any other case.
fn is_noisy(solved: Tally, thresholds: &Thresholds) -> bool {
    let fallen = CaseTallies { baseline: solved, new: Tally::new(0, solved.runs()) };
    let is_found = judge(&[fallen], thresholds).cases[0].tier == Tier::Regression;
    solved.passed > 0 && solved.failed > 0 && !is_found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_noisy_if_its_complete_fall_would_not_stand_out() {
        let noisy = |passed, failed| is_noisy(Tally::new(passed, failed), &Thresholds::default());
        assert!(noisy(1, 4) && noisy(1, 1));
        assert!(!noisy(4, 1) && !noisy(6, 4));
        // Never solved, or always: nothing varies.
        assert!(!noisy(0, 5) && !noisy(2, 0));
    }
}
