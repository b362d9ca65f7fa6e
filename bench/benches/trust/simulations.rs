//! False alarms and power of the built program over nights of synthetic agents with known pass rates.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_bench::Outcome;
use fastrand::Rng;

use crate::night::{BadHours, CaseRates, Confirmation, Design, Night};

/// The number of cases of every suite.
const CASES: usize = 50;

/// The number of cases in a suite with a name.
const SUITE: usize = 12;

/// Rates of cases from steady to flaky, in turn.
const MIXED: [f64; 10] = [1.0, 0.98, 0.95, 0.9, 0.7, 0.5, 0.3, 1.0, 0.0, 0.85];

/// The share of runner errors in most rows.
const ERRORS: f64 = 0.02;

/// One line of the report.
struct Row {
    name: String,
    cases: Vec<CaseRates>,
    design: Design,
    errors: f64,
    bad_hours: Option<BadHours>,
    expectations: bool,
}

/// Hours in which 30 % of the answers are wrong, in one run of five.
const BAD_HOURS: BadHours = BadHours { share: 0.2, wrong: 0.3 };

/// Simulates nights, and prints a row for each design.
pub(crate) fn run(program: &Utf8Path, nights: u32, only: Option<&str>) -> Outcome {
    let mut out = io::stdout().lock();
    for (title, rows) in [("Same agent: nights that fail", unchanged()), ("Worse agent: nights that fail", worse())] {
        let _ = writeln!(out, "\n{title}, of {nights} each, with the 95 % interval\n");
        for row in rows.iter().filter(|row| only.is_none_or(|text| row.name.contains(text))) {
            let red = row.count_red(program, nights)?;
            let (low, high) = wilson(red, nights);
            let share = 100.0 * f64::from(red) / f64::from(nights);
            let _ = writeln!(out, "{:<78} {share:>5.1} % ({low:.1}–{high:.1})", row.name);
        }
    }
    Ok(())
}

const fn design(baseline: u32, new: u32, confirmation: Confirmation) -> Design {
    Design { baseline, new, confirmation }
}

/// The same rates on both sides.
fn same(rates: &[f64]) -> Vec<CaseRates> {
    rates.iter().cycle().take(CASES).map(|rate| CaseRates { baseline: *rate, new: *rate }).collect()
}

/// How often each side runs in the rows: one run, several, and a confirmation.
const DESIGNS: [(&str, Design); 8] = [
    ("1/1", design(1, 1, Confirmation::None)),
    ("1/1 + auto, baseline's agent too", design(1, 1, Confirmation::AutoBothSides)),
    ("1/1 + 4/4", design(1, 1, Confirmation::BothSides(4))),
    ("3/3", design(3, 3, Confirmation::None)),
    ("5/5", design(5, 5, Confirmation::None)),
    ("10/10", design(10, 10, Confirmation::None)),
    ("5/1 + auto", design(5, 1, Confirmation::AutoNewAlone)),
    ("20/1 + 0/4", design(20, 1, Confirmation::NewAlone(4))),
];

/// Nights in which nothing changed.
fn unchanged() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, design) in DESIGNS {
        for (suffix, errors, bad_hours, expectations) in [
            ("", 0.0, None, true),
            (", 2 % errors", ERRORS, None, true),
            (", 2 % errors, without expectations", ERRORS, None, false),
            (", bad hours", 0.0, Some(BAD_HOURS), true),
        ] {
            let name = format!("{name}, steady to flaky{suffix}");
            rows.push(Row { name, cases: same(&MIXED), design, errors, bad_hours, expectations });
        }
    }
    for rate in [0.97, 0.75, 0.5] {
        for (name, design) in DESIGNS.into_iter().filter(|(name, _)| name.starts_with("1/1") || name.starts_with("5/1"))
        {
            let name = format!("{name}, all at {:.0} %, 2 % errors", 100.0 * rate);
            rows.push(Row { name, cases: same(&[rate]), design, errors: ERRORS, bad_hours: None, expectations: true });
        }
    }
    rows
}

/// Nights in which new is worse.
fn worse() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: String, cases: Vec<CaseRates>, design, errors| {
        rows.push(Row { name, cases, design, errors, bad_hours: None, expectations: true });
    };
    for errors in [0.0, ERRORS] {
        let percent = format!("{:.0} % errors", 100.0 * errors);
        for (name, design) in DESIGNS {
            let all = vec![CaseRates { baseline: 0.90, new: 0.82 }; CASES];
            add(format!("{name}, all fall from 90 % to 82 %, {percent}"), all, design, errors);
            let mut one = same(&[0.9]);
            one[0] = CaseRates { baseline: 1.0, new: 0.0 };
            add(format!("{name}, 1 case from 100 % to 0, others 90 %, {percent}"), one, design, errors);
            let mut steady = same(&[1.0]);
            steady[0] = CaseRates { baseline: 1.0, new: 0.0 };
            add(format!("{name}, 1 case from 100 % to 0, others 100 %, {percent}"), steady, design, errors);
            let mut cases = same(&[0.9]);
            cases[..SUITE].fill(CaseRates { baseline: 0.9, new: 0.7 });
            add(format!("{name}, a suite of {SUITE} from 90 % to 70 %, {percent}"), cases, design, errors);
        }
    }
    add(
        "1/1, all fall from 75 % to 45 %, 2 % errors".to_owned(),
        vec![CaseRates { baseline: 0.75, new: 0.45 }; CASES],
        design(1, 1, Confirmation::None),
        ERRORS,
    );
    rows
}

impl Row {
    /// The number of nights in which the program fails the gate. The seeds are fixed.
    fn count_red(&self, program: &Utf8Path, nights: u32) -> io::Result<u32> {
        let (next, red) = (AtomicU32::new(0), AtomicU32::new(0));
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let work = || -> io::Result<()> {
            let temporary = tempfile::tempdir()?;
            let scratch = Utf8PathBuf::from(temporary.path().to_string_lossy().into_owned());
            loop {
                let night = next.fetch_add(1, Ordering::Relaxed);
                if night >= nights {
                    return Ok(());
                }
                let folder = scratch.join(night.to_string());
                std::fs::create_dir_all(&folder)?;
                let simulated = Night {
                    cases: &self.cases,
                    design: self.design,
                    errors: self.errors,
                    bad_hours: self.bad_hours,
                    suite: SUITE,
                    expectations: self.expectations,
                };
                let is_red = simulated.is_red(program, &folder, &mut Rng::with_seed(u64::from(night)))?;
                red.fetch_add(u32::from(is_red), Ordering::Relaxed);
                std::fs::remove_dir_all(&folder)?;
            }
        };
        let results: Vec<io::Result<()>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, io::Result<()>>| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a simulation stopped")))
            };
            threads.into_iter().map(join).collect()
        });
        results.into_iter().collect::<io::Result<()>>()?;
        Ok(red.into_inner())
    }
}

/// The interval of Wilson (1927) at 95 %, in percent.
fn wilson(count: u32, all: u32) -> (f64, f64) {
    const QUANTILE: f64 = 1.959_964;
    let (all, rate) = (f64::from(all), f64::from(count) / f64::from(all));
    let square = QUANTILE * QUANTILE;
    let middle = rate + square / (2.0 * all);
    let half = QUANTILE * (rate * (1.0 - rate) / all + square / (4.0 * all * all)).sqrt();
    let scale = (1.0 + square / all) / 100.0;
    ((middle - half).max(0.0) / scale, (middle + half) / scale)
}
