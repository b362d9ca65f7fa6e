//! Noise: does new differ from baseline at a place more often than baseline differs from itself?
//!
//! A place is anything that has a value in each run, such as an argument of a tool. Within a case, every pair of baseline runs
//! and every pair of a baseline and a new run agree or disagree there. The statistic is the share of baseline–new pairs that
//! disagree minus the share of baseline pairs that do, summed over the cases. If new is no different, the labels of the runs
//! of a case are exchangeable. The p-value is the share of all relabelings within each case whose statistic is at least as large (Fisher 1935; the statistic is the between-minus-within contrast of Székely & Rizzo's energy test, 2004,
//! with a distance of 0 or 1). It is exact: a case has few distinct values, and a sum over cases is a convolution.

use std::collections::BTreeMap;

use super::exact::Distribution;

/// The sum over the cases is computed on a lattice. Up to this many steps, the lattice represents every value exactly.
const STEPS: u64 = 5_000;

/// The minimum number of steps between 0 and 1, used with many cases. The mass of a value between two steps is split between
/// both. This keeps the mean and adds at most 1/144 to the variance of a case, so the p-value is slightly too large.
const COARSE: u64 = 6;

/// The maximum number of partial relabelings that are enumerated for one pattern.
const STATES: usize = 100_000;

/// The values that the runs of one case have at a place, as hashes. A missing value has a hash too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlaceValues {
    /// One hash per run of baseline.
    pub baseline: Vec<u64>,
    /// One hash per run of new.
    pub new: Vec<u64>,
}

/// Pairs of runs, and how many of them disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunPairs {
    /// Pairs that disagree.
    pub disagree: u64,
    /// All pairs.
    pub all: u64,
}

impl RunPairs {
    /// The share of pairs that disagree; `None` without pairs.
    pub fn share(self) -> Option<f64> {
        (self.all > 0).then(|| self.disagree as f64 / self.all as f64)
    }

    fn plus(self, other: Self) -> Self {
        Self { disagree: self.disagree + other.disagree, all: self.all + other.all }
    }
}

/// How often runs disagree at a place.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Disagreement {
    /// Pairs of baseline runs (d0).
    pub baseline: RunPairs,
    /// Pairs of a baseline run and a new one (d1).
    pub across: RunPairs,
    /// One-sided p-value for new differing more from baseline than baseline from itself. `None` if no case has two baseline
    /// runs and one new run, or if the runs have too many relabelings to enumerate.
    pub p: Option<f64>,
}

/// One place, over all cases and in each.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaceJudgement {
    /// All cases together.
    pub pooled: Disagreement,
    /// Each case, in the order of the cases.
    pub cases: Vec<Disagreement>,
}

/// Tests one place over all cases that have it.
pub fn judge_place(cases: &[PlaceValues]) -> PlaceJudgement {
    let counted: Vec<Counted> = cases.iter().map(Counted::new).collect();
    // Most cases share a few patterns, and the relabelings depend on the pattern only, so each is enumerated once.
    let mut relabelings: BTreeMap<&Pattern, Option<Relabelings>> = BTreeMap::new();
    for pattern in counted.iter().filter_map(|case| case.pattern.as_ref()) {
        if let Some(relabelings) = relabelings.entry(pattern).or_insert_with(|| pattern.relabelings()) {
            relabelings.cases += 1;
        }
    }
    let relabelings: BTreeMap<&Pattern, Relabelings> =
        // Patterns with too many relabelings have no p-value, neither per case nor in the pooled test.
        relabelings.into_iter().filter_map(|(pattern, relabelings)| Some((pattern, relabelings?))).collect();
    let judged = counted.iter().map(|case| {
        let relabelings = case.pattern.as_ref().and_then(|pattern| relabelings.get(pattern));
        // `>=` on exact fractions: a tie with the observed value counts as at least as extreme.
        let as_much = |(statistic, mass): &(Statistic, f64)| (*statistic >= case.statistic).then_some(*mass);
        let p = relabelings.map(|relabelings| relabelings.of_one.iter().filter_map(as_much).sum::<f64>().min(1.0));
        Disagreement { baseline: case.baseline, across: case.across, p }
    });
    let judged: Vec<Disagreement> = judged.collect();
    let mut pooled = judged.iter().fold(Disagreement::default(), |sum, case| Disagreement {
        baseline: sum.baseline.plus(case.baseline),
        across: sum.across.plus(case.across),
        p: None,
    });
    if !relabelings.is_empty() {
        let seen = counted
            .iter()
            .filter(|case| case.pattern.as_ref().is_some_and(|pattern| relabelings.contains_key(pattern)));
        pooled.p = Some(pooled_p(&seen.collect::<Vec<_>>(), relabelings.values()));
    }
    PlaceJudgement { pooled, cases: judged }
}

/// The largest p-value that counts, so that the expected share of wrong claims among those that count is at most `share`: the step-up
/// rule of Benjamini & Hochberg (1995). `None` if none counts.
pub fn discovery_level(p: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut all: Vec<f64> = p.collect();
    all.sort_unstable_by(f64::total_cmp);
    let number = all.len() as f64;
    let counts = |(index, p): &(usize, f64)| *p <= share * (index + 1) as f64 / number;
    all.into_iter().enumerate().filter(counts).map(|(_, p)| p).max_by(f64::total_cmp)
}

/// The probability that the sum over all cases is at least as large as observed.
fn pooled_p<'d>(counted: &[&Counted], relabelings: impl Iterator<Item = &'d Relabelings>) -> f64 {
    let relabelings: Vec<_> = relabelings.collect();
    // A case whose relabelings all give the same statistic adds a constant to the sum and needs no lattice steps.
    let informative: usize = relabelings
        .iter()
        .filter(|relabelings| relabelings.of_one.len() > 1)
        .map(|relabelings| relabelings.cases)
        .sum();
    // The sum has up to `informative * lattice` steps, so more cases allow fewer steps per case.
    let most = (STEPS / (informative as u64).max(1)).max(COARSE);
    let all = relabelings.iter().flat_map(|relabelings| &relabelings.of_one);
    let common = all.fold(1, |common, (statistic, _)| lowest_common_multiple(common, statistic.denominator, most));
    let lattice = common.min(most);
    let sum = relabelings.iter().fold(Distribution::zero(), |sum, relabelings| {
        sum.plus(&on_lattice(&relabelings.of_one, lattice).times(relabelings.cases))
    });
    // Shifted up by one per case, like the lattice: a statistic is at least −1.
    let seen: f64 = counted.iter().map(|case| (case.statistic.value() + 1.0) * lattice as f64).sum();
    // The tolerance covers rounding errors of `seen`; the values on the lattice are whole numbers.
    let as_much = sum.iter().filter(|(number, _)| *number as f64 >= seen - 1e-6);
    as_much.map(|(_, mass)| mass).sum::<f64>().min(1.0)
}

/// The relabelings of one case on the lattice, shifted up by 1 so that no value is negative.
fn on_lattice(relabelings: &[(Statistic, f64)], lattice: u64) -> Distribution {
    let mut masses: BTreeMap<u64, f64> = BTreeMap::new();
    for (statistic, mass) in relabelings {
        let whole = u64::try_from(statistic.numerator + i64::try_from(statistic.denominator).unwrap_or(i64::MAX));
        let scaled = u128::from(whole.unwrap_or(0)) * u128::from(lattice);
        let denominator = u128::from(statistic.denominator);
        // Splitting the mass in proportion to the distance from both neighbours keeps the mean of the distribution.
        let below = u64::try_from(scaled / denominator).unwrap_or(u64::MAX);
        let above = (scaled % denominator) as f64 / denominator as f64;
        *masses.entry(below).or_default() += mass * (1.0 - above);
        if above > 0.0 {
            *masses.entry(below + 1).or_default() += mass * above;
        }
    }
    Distribution::from_masses(&masses)
}

fn lowest_common_multiple(left: u64, right: u64, limit: u64) -> u64 {
    let (mut divisor, mut rest) = (left, right);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    // Values beyond the limit only need to stay beyond it.
    (left / divisor).saturating_mul(right).min(limit.saturating_mul(2))
}

struct Counted {
    baseline: RunPairs,
    across: RunPairs,
    statistic: Statistic,
    /// `None` if baseline has fewer than two runs, or new has none.
    pattern: Option<Pattern>,
}

impl Counted {
    fn new(case: &PlaceValues) -> Self {
        let mut classes: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for value in &case.baseline {
            classes.entry(*value).or_default().0 += 1;
        }
        for value in &case.new {
            classes.entry(*value).or_default().1 += 1;
        }
        let (old, new) = (case.baseline.len() as u64, case.new.len() as u64);
        let agree: u64 = classes.values().map(|(old, _)| pairs(*old)).sum();
        let agree_across: u64 = classes.values().map(|(old, new)| old * new).sum();
        let mut sizes: Vec<u64> = classes.values().map(|(old, new)| old + new).collect();
        // Sorted, so that cases with the same sizes share a pattern whatever their values are.
        sizes.sort_unstable();
        Self {
            baseline: RunPairs { disagree: pairs(old) - agree, all: pairs(old) },
            across: RunPairs { disagree: old * new - agree_across, all: old * new },
            statistic: Statistic::new(old, new, agree, agree_across),
            pattern: (old > 1 && new > 0).then_some(Pattern { old, new, sizes }),
        }
    }
}

/// What every relabeling preserves: the number of runs per side, and how many runs share each value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pattern {
    old: u64,
    new: u64,
    sizes: Vec<u64>,
}

/// A partial relabeling: the runs assigned to baseline so far, and the pairs of runs that agree as a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Dealt {
    old: u64,
    agree: u64,
    /// Pairs of a baseline and a new run that agree.
    agree_across: u64,
}

/// The distribution of the statistic in the cases of one pattern.
struct Relabelings {
    cases: usize,
    /// Each value in one case, with its share of all relabelings.
    of_one: Vec<(Statistic, f64)>,
}

impl Pattern {
    /// The distribution of the statistic; `None` beyond [`STATES`], which takes dozens of runs with many values.
    fn relabelings(&self) -> Option<Relabelings> {
        // One value at a time. Runs with the same value are interchangeable, so only their number on each side matters.
        let mut states = BTreeMap::from([(Dealt::default(), 1.0)]);
        for size in &self.sizes {
            let mut after = BTreeMap::new();
            for (dealt, ways) in states {
                for taken in 0..=(*size).min(self.old - dealt.old) {
                    let state = Dealt {
                        old: dealt.old + taken,
                        agree: dealt.agree + pairs(taken),
                        agree_across: dealt.agree_across + taken * (size - taken),
                    };
                    *after.entry(state).or_default() += ways * choose(*size, taken);
                }
            }
            // The number of states and not the time is bounded, so that a p-value never depends on the machine.
            if after.len() > STATES {
                return None;
            }
            states = after;
        }
        states.retain(|dealt, _| dealt.old == self.old);
        let all: f64 = states.values().sum();
        let mut relabelings: BTreeMap<Statistic, f64> = BTreeMap::new();
        for (dealt, ways) in states {
            let statistic = Statistic::new(self.old, self.new, dealt.agree, dealt.agree_across);
            *relabelings.entry(statistic).or_default() += ways / all;
        }
        Some(Relabelings { cases: 0, of_one: relabelings.into_iter().collect() })
    }
}

/// The share of pairs across that disagree minus the share of baseline pairs that do: an exact fraction, from −1 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Statistic {
    /// Fractions of one case all have the same denominator, so their numerators give their order.
    numerator: i64,
    denominator: u64,
}

impl Statistic {
    fn new(old: u64, new: u64, agree: u64, across: u64) -> Self {
        let narrow = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        // (1 − across / (old · new)) − (1 − agree / pairs) = (agree · old · new − across · pairs) / (pairs · old · new)
        let numerator = narrow(agree * old * new) - narrow(across * pairs(old));
        Self { numerator, denominator: (pairs(old) * old * new).max(1) }
    }

    fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

fn pairs(runs: u64) -> u64 {
    runs * runs.saturating_sub(1) / 2
}

fn choose(from: u64, taken: u64) -> f64 {
    (0..taken.min(from - taken)).fold(1.0, |ways, step| ways * (from - step) as f64 / (step + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(baseline: &[u64], new: &[u64]) -> PlaceValues {
        PlaceValues { baseline: baseline.to_vec(), new: new.to_vec() }
    }

    fn close(p: Option<f64>, known: f64) -> bool {
        p.is_some_and(|p| (p - known).abs() < 1e-9)
    }

    #[test]
    fn the_level_of_many_tests_is_that_of_the_last_one_below_the_line() {
        let level = |p: &[f64]| discovery_level(p.iter().copied(), 0.05);
        assert_eq!(level(&[]), None);
        assert_eq!(level(&[0.04]), Some(0.04));
        assert_eq!(level(&[0.04, 0.5]), None, "one of two");
        // The lines are 0.0125, 0.025, 0.0375 and 0.05: the third counts, and with it the second.
        assert_eq!(level(&[0.9, 0.037, 0.03, 0.01]), Some(0.037));
    }

    #[test]
    fn a_change_in_every_case_is_no_noise_even_with_two_runs_and_one() {
        let cases = vec![values(&[1, 1], &[2]); 50];
        let judged = judge_place(&cases);
        assert_eq!(judged.pooled.baseline, RunPairs { disagree: 0, all: 50 });
        assert_eq!(judged.pooled.across, RunPairs { disagree: 100, all: 100 });
        assert!(judged.pooled.p.unwrap() < 1e-20);
        // One of the three runs differs, and it is new's in one of three relabelings.
        assert!(close(judged.cases[0].p, 1.0 / 3.0));
    }

    #[test]
    fn what_baseline_does_with_itself_is_noise() {
        let mut cases = vec![values(&[1, 2], &[1]); 10];
        cases.extend(vec![values(&[1, 1], &[2]); 5]);
        cases.extend(vec![values(&[1, 2], &[3]); 10]);
        cases.extend(vec![values(&[1, 1], &[1]); 25]);
        let judged = judge_place(&cases);
        // Five of fifteen odd ones are new's, as one of three is expected to be.
        assert!(judged.pooled.p.unwrap() > 0.3, "{judged:?}");
        assert!(close(judged.cases[20].p, 1.0), "all differ, however the labels are dealt");
    }

    #[test]
    fn the_pooled_value_is_that_of_all_deals() {
        // New is the odd one in three cases of four: as likely as at least three heads of four coins that fall so one in three.
        let cases = [values(&[1, 1], &[2]), values(&[1, 1], &[2]), values(&[5, 5], &[7]), values(&[3, 4], &[4])];
        let heads = 4.0 * (1.0_f64 / 3.0).powi(3) * (2.0 / 3.0) + (1.0_f64 / 3.0).powi(4);
        assert!(close(judge_place(&cases).pooled.p, heads));
    }

    #[test]
    fn cases_with_different_numbers_of_runs_are_pooled() {
        let cases = [values(&[1, 1, 1], &[2, 2, 2]), values(&[1, 1], &[2]), values(&[1, 1, 1], &[2, 2])];
        // Six runs that fall into three and three do so for either half.
        assert!(close(judge_place(&cases).pooled.p, 2.0 / 20.0 / 3.0 / 10.0));
    }

    #[test]
    fn without_a_second_baseline_run_nothing_can_be_known() {
        let judged = judge_place(&[values(&[1], &[2]), values(&[1, 1], &[])]);
        assert_eq!((judged.pooled.p, judged.cases[0].p, judged.cases[1].p), (None, None, None));
        assert_eq!(judged.pooled.across, RunPairs { disagree: 1, all: 1 });
        assert_eq!(judged.cases[1].across.share(), None);
    }

    #[test]
    fn so_many_cases_that_the_lattice_is_coarse_are_judged_much_the_same() {
        // Of each kind, just as many odd ones are new's as chance expects.
        let mut cases = vec![values(&[1, 1, 1], &[2, 1, 1]); 700];
        cases.extend(vec![values(&[1, 1, 2], &[1, 1, 1]); 700]);
        cases.extend(vec![values(&[1, 1], &[2]); 700]);
        cases.extend(vec![values(&[1, 2], &[1]); 1400]);
        let p = judge_place(&cases).pooled.p.unwrap();
        assert!((0.47..0.53).contains(&p), "{p}");
        cases.extend(vec![values(&[1, 1, 1], &[2, 2, 2]); 200]);
        assert!(judge_place(&cases).pooled.p.unwrap() < 1e-6);
    }
}
