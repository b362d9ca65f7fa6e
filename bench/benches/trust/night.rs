//! One simulated night: writes the run folders of a synthetic agent, and lets the program compare them.

use std::fs;
use std::io;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use fastrand::Rng;

/// Ways to word the same answer, so that runs differ as those of a real agent do.
const WORDINGS: u64 = 8;

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
}

/// A case of a synthetic agent: the probability that an answer is right.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CaseRates {
    pub(crate) baseline: f64,
    pub(crate) new: f64,
}

/// The synthetic agent and the design of a night.
#[derive(Debug)]
pub(crate) struct Night<'a> {
    pub(crate) cases: &'a [CaseRates],
    pub(crate) design: Design,
    /// The probability of a runner error, on both sides.
    pub(crate) errors: f64,
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
        let flipped: Vec<bool> = (0..self.cases.len()).map(|case| self.is_flipped(case, &old, &other)).collect();
        let (of_baseline, of_new) = match self.design.confirmation {
            Confirmation::None => (0, 0),
            Confirmation::BothSides(runs) => (runs, runs),
            Confirmation::NewAlone(runs) => (0, runs),
        };
        if flipped.contains(&true) {
            for number in 0..of_baseline {
                let run = self.run(&flipped, |case| case.baseline, random);
                folders[0].push(write_run(folder, "baseline", &format!("n0-c{number}"), &run, Some("n0"), random)?);
            }
            for number in 0..of_new {
                let run = self.run(&flipped, |case| case.new, random);
                folders[1].push(write_run(folder, "new", &format!("n0-c{number}"), &run, Some("n0"), random)?);
            }
        }
        write(folder.join("cases.json"), self.cases_file())?;
        compare(program, folder, &folders)
    }

    /// One run of the selected cases.
    fn run(&self, selected: &[bool], rate: fn(&CaseRates) -> f64, random: &mut Rng) -> Vec<Option<Outcome>> {
        let outcome = |(case, selected): (&CaseRates, &bool)| {
            selected.then(|| {
                if random.f64() < self.errors {
                    Outcome::Error
                } else if random.f64() < rate(case) {
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
        let is_solved = |outcome: Option<Outcome>| match outcome {
            Some(Outcome::Right) => true,
            Some(Outcome::Wrong) => !self.expectations,
            Some(Outcome::Error) | None => false,
        };
        let share = |runs: &Runs| runs.iter().filter(|run| is_solved(run[case])).count() as f64 / runs.len() as f64;
        share(baseline) - share(new) >= 0.35
    }

    fn cases_file(&self) -> String {
        let expected = if self.expectations { r#", "expected": {"must_include": ["50 EUR"]}"# } else { "" };
        let case = |number: usize| {
            format!(
                r#"{{"id": "case_{number}", "title": "Case {number}", "input": {{"user": "My refund"}}{expected}}}"#
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
    confirms: Option<&str>,
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
    let confirmation = confirms.map(|of| format!(r#""confirmation": {{"of": "{of}"}}, "#)).unwrap_or_default();
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
