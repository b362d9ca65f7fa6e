//! Statistics over repeats: whether a case, or the whole suite, regressed, or chance explains the difference.
//!
//! Pure functions from counts of passes to p-values, intervals, tiers and the number of further runs needed. The same counts always
//! give the same judgement. `docs/statistics.md` has the methods, their sources and their measured
//! power.

mod confirmation;
mod disagreement;
mod exact;
mod family;
mod lost;
mod plan;
mod suite_decision;
mod tally;
pub(crate) mod usage;
mod whole_runs;

pub use confirmation::{CaseRuns, judge_confirmed, judge_first_runs};
pub use disagreement::{Disagreement, PlaceJudgement, PlaceValues, RunPairs, discovery_level, judge_place};
pub use exact::{BOSCHLOO_UP_TO, CaseTests, Method, fisher};
pub(crate) use lost::division_bound;
pub(crate) use lost::poisson_binomial_tail;
pub use lost::{ConfirmationCount, Decides, LostRuns, LostTest, deciding_baseline, probability_bound};
pub use plan::{MoreRuns, Planner};
pub(crate) use suite_decision::suite_p;
pub use suite_decision::{CaseJudgement, SuiteDecision, SuiteJudgement, is_hint, judge, judge_with};
pub use suite_decision::{Fraction, Thresholds};
pub use tally::{CaseTallies, Interval, ONE_SIDED_95, TWO_SIDED_95, Tally, is_at_most, newcombe, wilson};
pub(crate) use whole_runs::{CasePasses, DeviatingRun, deviating, judge_whole_runs};
