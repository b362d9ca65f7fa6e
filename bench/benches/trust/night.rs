//! One simulated night: writes the run folders of a synthetic agent, and lets the program compare them.

use std::fs;
use std::io;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use fastrand::Rng;

/// Ways to word the same answer, so that runs differ as those of a real agent do.
const WORDINGS: u64 = 8;

/// The default of `--confirm-max`.
const MOST_CONFIRMATIONS: u32 = 8;

/// The number of runs per side, and how they are confirmed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Design {
    pub(crate) baseline: u32,
    pub(crate) new: u32,
    pub(crate) confirmation: Confirmation,
}

/// Which sides run the flipped cases again, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmation {
    None,
    BothSides(u32),
    NewAlone(u32),
    /// As `--confirm auto`: as many runs as one lost case of the suite needs. A case ends when it can no longer be lost.
    AutoBothSides,
    AutoNewAlone,
}

/// A case of a synthetic agent: the probability that an answer is right.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CaseRates {
    pub(crate) baseline: f64,
    pub(crate) new: f64,
}

/// Whole runs that are worse.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BadHours {
    /// The probability that a run is in one.
    pub(crate) share: f64,
    /// The probability that an answer is wrong for this reason alone.
    pub(crate) wrong: f64,
}

/// The synthetic agent and the design of a night.
#[derive(Debug)]
pub(crate) struct Night<'a> {
    pub(crate) cases: &'a [CaseRates],
    pub(crate) design: Design,
    /// The probability of a runner error, on both sides.
    pub(crate) errors: f64,
    /// The hours in which a provider answers worse, on both sides. Each run lies in one hour.
    pub(crate) bad_hours: Option<BadHours>,
    /// The first cases form a suite with a name.
    pub(crate) suite: usize,
    /// Whether the cases file has expectations.
    pub(crate) expectations: bool,
}

/// What one run shows of one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Right,
    Wrong,
    Error,
}

/// The outcomes of a side: one row per run, one entry per case. `None` where the run does not select the case.
type Runs = Vec<Vec<Option<Outcome>>>;

/// The confirmation runs of each side.
#[derive(Debug, Clone, Copy)]
struct Rounds {
    baseline: u32,
    new: u32,
    /// Whether a case is asked no more once it cannot be lost.
    ends_early: bool,
}

impl Design {
    fn confirmation_runs(&self, cases: usize) -> Rounds {
        let (baseline, new, ends_early) = match self.confirmation {
            Confirmation::None => (0, 0, false),
            Confirmation::BothSides(runs) => (runs, runs, false),
            Confirmation::NewAlone(runs) => (0, runs, false),
            Confirmation::AutoBothSides => {
                let runs = self.smallest(cases, |runs| (runs, runs));
                (runs, runs, true)
            }
            Confirmation::AutoNewAlone => (0, self.smallest(cases, |runs| (0, runs)), true),
        };
        Rounds { baseline, new, ends_early }
    }

    /// The smallest number of runs, at most 8, at which chance explains one lost case of the suite in at most 2 % of nights.
    fn smallest(&self, cases: usize, added: impl Fn(u32) -> (u32, u32)) -> u32 {
        let explains = |runs: u32| {
            let (baseline, new) = added(runs);
            let (a, b) = (f64::from(self.baseline + baseline), f64::from(self.new + new));
            cases as f64 * (a / (a + b)).powf(a) * (b / (a + b)).powf(b)
        };
        (1..=MOST_CONFIRMATIONS).find(|runs| explains(*runs) <= 0.02).unwrap_or(MOST_CONFIRMATIONS)
    }
}

impl Night<'_> {
    /// Simulates the night in an empty folder. Returns whether the program fails the gate.
    pub(crate) fn is_red(&self, program: &Utf8Path, folder: &Utf8Path, random: &mut Rng) -> io::Result<bool> {
        let Design { baseline, new, .. } = self.design;
        let everything = vec![true; self.cases.len()];
        let old: Runs = (0..baseline).map(|_| self.run(&everything, |case| case.baseline, random)).collect();
        let other: Runs = (0..new).map(|_| self.run(&everything, |case| case.new, random)).collect();
        let mut folders = [Vec::new(), Vec::new()];
        for (number, run) in old.iter().enumerate() {
            folders[0].push(write_run(folder, "baseline", &format!("b{number}"), run, None, random)?);
        }
        for (number, run) in other.iter().enumerate() {
            folders[1].push(write_run(folder, "new", &format!("n{number}"), run, None, random)?);
        }
        let mut flipped: Vec<bool> = (0..self.cases.len()).map(|case| self.is_flipped(case, &old, &other)).collect();
        let rounds = self.design.confirmation_runs(self.cases.len());
        let planned = format!(r#""of": "n0", "count": {}, "ends_early": {}"#, rounds.new, rounds.ends_early);
        // A case without an answer runs once more than planned.
        let mut answers = [vec![0; self.cases.len()], vec![0; self.cases.len()]];
        for number in 0..if rounds.ends_early { MOST_CONFIRMATIONS } else { rounds.baseline.max(rounds.new) } {
            if !flipped.contains(&true) {
                break;
            }
            let mut sides = Vec::new();
            if number < rounds.baseline || (rounds.ends_early && rounds.baseline > 0) {
                sides.push((0, "baseline", true, self.run(&flipped, |case| case.baseline, random)));
            }
            if number < rounds.new || rounds.ends_early {
                sides.push((1, "new", false, self.run(&flipped, |case| case.new, random)));
            }
            for (side, name, solves, run) in sides {
                let id = format!("n0-c{number}");
                folders[side].push(write_run(folder, name, &id, &run, Some(&planned), random)?);
                if rounds.ends_early {
                    // A case that the baseline fails once, or new solves once, is not lost. An error shows neither.
                    let is_error = |outcome: &Option<Outcome>| *outcome == Some(Outcome::Error);
                    let is_lost = |outcome: &Option<Outcome>| outcome.is_some_and(|it| self.is_solved(it) == solves);
                    for (case, outcome) in run.iter().enumerate() {
                        flipped[case] &= is_lost(outcome) || is_error(outcome);
                        answers[side][case] += u32::from(!is_error(outcome));
                    }
                }
            }
            if rounds.ends_early {
                for (case, asked) in flipped.iter_mut().enumerate() {
                    *asked &= answers[0][case] < rounds.baseline || answers[1][case] < rounds.new;
                }
            }
        }
        write(folder.join("cases.json"), self.cases_file())?;
        compare(program, folder, &folders)
    }

    /// One run of the selected cases.
    fn run(&self, selected: &[bool], rate: fn(&CaseRates) -> f64, random: &mut Rng) -> Vec<Option<Outcome>> {
        let wrong = self.bad_hours.filter(|hours| random.f64() < hours.share).map_or(0.0, |hours| hours.wrong);
        let outcome = |(case, selected): (&CaseRates, &bool)| {
            selected.then(|| {
                if random.f64() < self.errors {
                    Outcome::Error
                } else if random.f64() < rate(case) * (1.0 - wrong) {
                    Outcome::Right
                } else {
                    Outcome::Wrong
                }
            })
        };
        self.cases.iter().zip(selected).map(outcome).collect()
    }

    /// Whether `run --confirm` would run the case again: its share of solved runs fell by at least the default `watch_drop`.
    fn is_flipped(&self, case: usize, baseline: &Runs, new: &Runs) -> bool {
        let is_solved = |outcome: Option<Outcome>| outcome.is_some_and(|it| self.is_solved(it));
        let share = |runs: &Runs| runs.iter().filter(|run| is_solved(run[case])).count() as f64 / runs.len() as f64;
        share(baseline) - share(new) >= 0.35
    }

    const fn is_solved(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Right => true,
            Outcome::Wrong => !self.expectations,
            Outcome::Error => false,
        }
    }

    fn cases_file(&self) -> String {
        let expected = if self.expectations { r#", "expected": {"must_include": ["50 EUR"]}"# } else { "" };
        let case = |number: usize| {
            let suite = if number < self.suite { r#", "suite": "refunds""# } else { "" };
            format!(
                r#"{{"id": "case_{number}", "title": "Case {number}", "input": {{"user": "My refund"}}{suite}{expected}}}"#
            )
        };
        let cases: Vec<_> = (0..self.cases.len()).map(case).collect();
        format!("[{}]", cases.join(",\n"))
    }
}

/// Runs the program. True for the exit code of a failed gate.
fn compare(program: &Utf8Path, folder: &Utf8Path, runs: &[Vec<Utf8PathBuf>; 2]) -> io::Result<bool> {
    let mut command = Command::new(program);
    command.args(["compare", "--cases", "cases.json", "--out", "report", "--pages", "none", "--no-write-back"]);
    command.arg("--baseline").args(&runs[0]).arg("--new").args(&runs[1]);
    // Several nights run at the same time.
    command.env("RAYON_NUM_THREADS", "1").env_remove("GITHUB_STEP_SUMMARY");
    let output = command.current_dir(folder).stdin(Stdio::null()).output()?;
    match output.status.code() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

/// Writes a run folder, and returns its path below `folder`.
fn write_run(
    folder: &Utf8Path,
    side: &str,
    id: &str,
    run: &[Option<Outcome>],
    confirmation: Option<&str>,
    random: &mut Rng,
) -> io::Result<Utf8PathBuf> {
    let relative = Utf8Path::new("runs").join(side).join(id);
    let out = folder.join(&relative);
    fs::create_dir_all(&out)?;
    let mut selected = Vec::new();
    for (number, outcome) in run.iter().enumerate() {
        let Some(outcome) = outcome else { continue };
        selected.push(format!("\"case_{number}\""));
        write(out.join(format!("case_{number}.json")), artifact(side, number, *outcome, random))?;
    }
    let confirmation = confirmation.map(|fields| format!(r#""confirmation": {{{fields}}}, "#)).unwrap_or_default();
    let document = format!(
        r#"{{"schema_version": "run.v1", "run_id": "{id}", "version": "{side}", "generated_at": "2026-11-20T00:00:00Z",
"base_url": "http://agent.example", "cases_path": "../../../cases.json", "out_dir": "../..", "runner_version": "simulation 1",
{confirmation}"stats": {{"cases_total": {count}, "cases_completed": {count}, "cases_failed": 0, "duration_ms": 1000}},
"selected_case_ids": [{selected}]}}"#,
        count = selected.len(),
        selected = selected.join(", ")
    );
    write(out.join("run.json"), document)?;
    Ok(relative)
}

/// Writes a file of a night, whose folder is removed at its end.
fn write(path: Utf8PathBuf, text: String) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a file of a simulation that is lost with the process")]
    fs::write(path, text)
}

/// The artifact of one case in one run.
fn artifact(side: &str, number: usize, outcome: Outcome, random: &mut Rng) -> String {
    let head = format!(r#"{{"schema_version": "case.v1", "case_id": "case_{number}", "version": "{side}""#);
    let amount = match outcome {
        Outcome::Error => {
            return format!(
                r#"{head}, "status": "runner_error", "runner_failure": {{"class": "timeout", "url": "http://agent.example", "attempt": 1, "timeout_ms": 1000, "latency_ms": 1000, "body_snippet": null, "full_body_saved_to": null}}}}"#
            );
        }
        Outcome::Right => "50",
        Outcome::Wrong => "40",
    };
    let wording = random.u64(..WORDINGS);
    format!(
        r#"{head}, "status": "ok", "proposed_actions": [], "events": [], "final_output": {{"content_type": "text", "content": "Your refund is {amount} EUR ({wording})."}}}}"#
    )
}
