//! One pair of runs: its evaluation by the program, and how severity ranks the cases that fell.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::step::Failure;

/// Number of the most severe cases that a reader looks at.
const TOP: usize = 10;

/// A reward counts as solved from here. Rewards are 0 or 1.
const SOLVED: f64 = 0.5;

/// A pair of runs, as the program evaluated it.
pub(super) struct Compared {
    pub(super) pair: String,
    pub(super) runs: [String; 2],
    cases: Vec<ComparedCase>,
}

/// A case of a pair.
struct ComparedCase {
    /// The case in `evaluation.json`.
    row: Value,
    /// Whether baseline and new solved it by their rewards.
    solved: [bool; 2],
}

/// How severity ranks the cases.
pub(super) struct Ranking {
    pub(super) solved: usize,
    pub(super) fell: usize,
    /// `None` if no case fell, or all did.
    pub(super) area: Option<f64>,
    pub(super) precision: f64,
    pub(super) precision_of_solved: f64,
}

impl Compared {
    pub(super) fn new(pair: &str, runs: [&str; 2], evaluation: &Value, truth: &Value) -> Self {
        let rewards: HashMap<&str, [bool; 2]> =
            list(truth).filter_map(|case| Some((case["case_id"].as_str()?, rewards(case, runs)))).collect();
        let case = |row: &Value| {
            let solved = *rewards.get(row["case_id"].as_str()?)?;
            Some(ComparedCase { row: row.clone(), solved })
        };
        let cases = list(&evaluation["cases"]).filter_map(case).collect();
        Self { pair: pair.to_owned(), runs: runs.map(str::to_owned), cases }
    }

    pub(super) fn name(&self) -> String {
        format!("{} {}", self.pair, self.runs[0])
    }

    pub(super) const fn cases(&self) -> usize {
        self.cases.len()
    }

    /// Returns the number of findings per case.
    pub(super) fn flags(&self) -> f64 {
        let flags: usize = self.cases.iter().map(|case| list(&case.row["findings"]).count()).sum();
        flags as f64 / self.cases.len().max(1) as f64
    }

    /// Returns a case in `evaluation.json`.
    pub(super) fn case(&self, id: &str) -> Option<&Value> {
        self.cases.iter().map(|case| &case.row).find(|row| row["case_id"] == id)
    }

    pub(super) fn ranking(&self) -> Ranking {
        let mut ranked: Vec<_> = self.cases.iter().collect();
        // The sort is stable: equally severe cases keep the order of the evaluation.
        ranked.sort_by(|a, b| b.severity().total_cmp(&a.severity()));
        let solved: Vec<_> = ranked.iter().copied().filter(|case| case.solved[0]).collect();
        let (fell, held): (Vec<_>, Vec<_>) = solved.iter().partition(|case| case.fell());
        let precision = |cases: &[&ComparedCase]| {
            let top = &cases[..cases.len().min(TOP)];
            top.iter().filter(|case| case.fell()).count() as f64 / TOP as f64
        };
        Ranking {
            solved: solved.len(),
            fell: fell.len(),
            area: area(&fell, &held),
            precision: precision(&ranked),
            precision_of_solved: precision(&solved),
        }
    }
}

impl ComparedCase {
    fn severity(&self) -> f64 {
        self.row["severity"]["score"].as_f64().unwrap_or_default()
    }

    const fn fell(&self) -> bool {
        self.solved[0] && !self.solved[1]
    }
}

/// The area under the ROC curve: the share of pairs of a case that fell and one that held in which the first is more severe.
fn area(fell: &[&ComparedCase], held: &[&ComparedCase]) -> Option<f64> {
    let pairs = fell.len() * held.len();
    let above = fell.iter().flat_map(|case| held.iter().map(|other| (case.severity(), other.severity())));
    let credit = |(case, other): (f64, f64)| match case.total_cmp(&other) {
        Ordering::Greater => 1.0,
        Ordering::Equal => 0.5,
        Ordering::Less => 0.0,
    };
    let above: f64 = above.map(credit).sum();
    (pairs > 0).then(|| above / pairs as f64)
}

/// The rewards of a case: by side, or by the name of the run.
fn rewards(case: &Value, runs: [&str; 2]) -> [bool; 2] {
    let reward = |side: &str, run: &str| case.get(side).or_else(|| case.get(run)).and_then(Value::as_f64);
    [reward("baseline_reward", runs[0]), reward("new_reward", runs[1])]
        .map(|reward| reward.unwrap_or_default() > SOLVED)
}

/// Runs `compare` on one run of each side, and returns its evaluation.
#[expect(clippy::disallowed_methods, reason = "a temporary file of this measurement need not survive a crash")]
pub(super) fn compare(
    program: &Utf8Path,
    corpus: &Utf8Path,
    scratch: &Utf8Path,
    [pair, baseline, new]: [&str; 3],
) -> Result<Value, Failure> {
    let runs = corpus.join(pair).join("runs");
    let out = scratch.join(pair).join(baseline);
    // An empty configuration: that of the current folder must not change the result.
    let config = scratch.join("empty.toml");
    fs::write(&config, "").map_err(|source| Failure::File { path: config.clone(), source })?;
    let mut command = Command::new(program);
    command.arg("compare").arg("--baseline").arg(runs.join("baseline").join(baseline));
    command.arg("--new").arg(runs.join("new").join(new)).arg("--out").arg(&out).arg("--config").arg(&config);
    command.args(["--pages", "none", "--no-write-back"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |source| Failure::Measure { path: program.to_owned(), source };
    let output = command.output().map_err(failed)?;
    // 1 means that the gate failed.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(failed(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())));
    }
    json(&out.join("evaluation.json"))
}

pub(super) fn json(path: &Utf8Path) -> Result<Value, Failure> {
    let file = |source| Failure::File { path: path.to_owned(), source };
    let bytes = fs::read(path).map_err(file)?;
    serde_json::from_slice(&bytes).map_err(|error| file(error.into()))
}

/// Lists the folders in a folder by name.
pub(super) fn names(folder: &Utf8Path) -> Result<Vec<String>, Failure> {
    let file = |source| Failure::File { path: folder.to_owned(), source };
    let entries = Utf8PathBuf::from(folder).read_dir_utf8().map_err(file)?;
    let folders = entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().to_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn area_and_precision_count_falls_among_cases_that_baseline_solved() {
        let row = |id: &str, score: f64| json!({"case_id": id, "severity": {"score": score}});
        let reward =
            |id: &str, baseline: f64, new: f64| json!({"case_id": id, "baseline_reward": baseline, "new_reward": new});
        let evaluation = json!({"cases": [row("a", 0.9), row("b", 0.5), row("c", 0.5), row("d", 1.0), row("e", 0.1)]});
        let truth = json!([
            reward("a", 1.0, 0.0),
            reward("b", 1.0, 1.0),
            reward("c", 1.0, 0.0),
            reward("d", 0.0, 0.0),
            reward("e", 1.0, 1.0)
        ]);
        let ranking = Compared::new("pair", ["1", "2"], &evaluation, &truth).ranking();
        assert_eq!((ranking.solved, ranking.fell, ranking.area), (4, 2, Some(3.5 / 4.0)));
        assert_eq!((ranking.precision, ranking.precision_of_solved), (0.2, 0.2));
    }
}
