//! Severity, flags, first divergences and causes on a corpus of real runs, compared with its rewards and labels.
//!
//! The corpus is a folder with a folder for each pair (`runs/baseline/*`, `runs/new/*`, `cases/truth.json`) and `labels.json`.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::Outcome;

/// Measures the program on the corpus in this folder.
pub fn run(program: &Utf8Path, corpus: &Utf8Path) -> Outcome {
    let scratch = tempfile::tempdir()?;
    let scratch = Utf8Path::from_path(scratch.path()).ok_or("the path of the temporary folder is not UTF-8")?;
    let mut compared = Vec::new();
    for pair in pairs(corpus)? {
        let (baseline, new) =
            (names(&corpus.join(&pair).join("runs/baseline"))?, names(&corpus.join(&pair).join("runs/new"))?);
        // Several baseline runs are measured one by one: a label and a fall are about one run of each side.
        for (run, other) in baseline.iter().flat_map(|run| new.iter().map(move |other| (run, other))) {
            let runs = corpus.join(&pair).join("runs");
            let (old, new) = (runs.join("baseline").join(run), runs.join("new").join(other));
            let evaluation = compare(program, scratch, &[old], &[new])?.evaluation;
            let truth = json(&corpus.join(&pair).join("cases/truth.json"))?;
            compared.push(Compared::new(&pair, [run, other], &evaluation, &truth));
        }
    }
    print_rankings(&compared);
    let labels = json(&corpus.join("labels.json"))?;
    print_labels(&compared, &labels);
    Ok(())
}

fn print_rankings(compared: &[Compared]) {
    let mut out = io::stdout().lock();
    let _ = writeln!(
        out,
        "\ncorpus: severity, one run a side, no expectations\n\
         area: probability that a case that fell ranks above one that did not, among cases that baseline solved (ties count half)\n\
         P@10: cases that fell among the 10 most severe of all cases; P@10 solved: of the cases that baseline solved\n"
    );
    let header = ["pair", "cases", "solved", "fell", "area", "P@10", "P@10 solved", "flags a case"];
    let [pair, cases, solved, fell, area, precision, of_solved, flags] = header;
    let _ = writeln!(
        out,
        "{pair:<44} {cases:>5} {solved:>6} {fell:>5} {area:>6} {precision:>5} {of_solved:>12} {flags:>13}"
    );
    let mut areas = Vec::new();
    for pair in compared {
        let Ranking { solved, fell, area, precision, precision_of_solved } = pair.ranking();
        let shown = area.map_or_else(|| "–".to_owned(), |area| format!("{area:.3}"));
        let _ = writeln!(
            out,
            "{:<44} {:>5} {solved:>6} {fell:>5} {shown:>6} {precision:>5.2} {precision_of_solved:>12.2} {:>13.2}",
            pair.name(),
            pair.cases(),
            pair.flags()
        );
        areas.extend(area);
    }
    let mean = areas.iter().sum::<f64>() / areas.len().max(1) as f64;
    let worst = areas.iter().copied().fold(f64::INFINITY, f64::min);
    let _ = writeln!(out, "area over {} pairs: mean {mean:.3}, worst {worst:.3}", areas.len());
}

/// Number of the most severe cases that a reader looks at.
const TOP: usize = 10;

/// A reward counts as solved from here. Rewards are 0 or 1.
const SOLVED: f64 = 0.5;

/// A pair of runs, as the program evaluated it.
struct Compared {
    pair: String,
    runs: [String; 2],
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
struct Ranking {
    solved: usize,
    fell: usize,
    /// `None` if no case fell, or all did.
    area: Option<f64>,
    precision: f64,
    precision_of_solved: f64,
}

impl Compared {
    fn new(pair: &str, runs: [&str; 2], evaluation: &Value, truth: &Value) -> Self {
        let rewards: HashMap<&str, [bool; 2]> =
            list(truth).filter_map(|case| Some((case["case_id"].as_str()?, rewards(case, runs)))).collect();
        let case = |row: &Value| {
            let solved = *rewards.get(row["case_id"].as_str()?)?;
            Some(ComparedCase { row: row.clone(), solved })
        };
        let cases = list(&evaluation["cases"]).filter_map(case).collect();
        Self { pair: pair.to_owned(), runs: runs.map(str::to_owned), cases }
    }

    fn name(&self) -> String {
        format!("{} {}", self.pair, self.runs[0])
    }

    const fn cases(&self) -> usize {
        self.cases.len()
    }

    /// Returns the number of findings per case.
    fn flags(&self) -> f64 {
        let flags: usize = self.cases.iter().map(|case| list(&case.row["findings"]).count()).sum();
        flags as f64 / self.cases.len().max(1) as f64
    }

    /// Returns a case in `evaluation.json`.
    fn case(&self, id: &str) -> Option<&Value> {
        self.cases.iter().map(|case| &case.row).find(|row| row["case_id"] == id)
    }

    fn ranking(&self) -> Ranking {
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

/// The result of `compare`.
#[derive(Debug)]
pub struct Comparison {
    /// The document `evaluation.json`.
    pub evaluation: Value,
    /// Whether the gate passed.
    pub passed: bool,
    /// The outcome of the gate with its reason.
    pub headline: String,
}

/// Runs `compare` without cases and configuration. The report is written below `scratch`.
///
/// # Errors
/// If the program cannot be started, or fails.
#[expect(clippy::disallowed_methods, reason = "a temporary file of this measurement need not survive a crash")]
pub fn compare(
    program: &Utf8Path,
    scratch: &Utf8Path,
    baseline: &[Utf8PathBuf],
    new: &[Utf8PathBuf],
) -> Outcome<Comparison> {
    let out = scratch.join("report");
    // An empty configuration: that of the current folder must not change the result.
    let config = scratch.join("empty.toml");
    fs::write(&config, "")?;
    let mut command = Command::new(program);
    command.arg("compare").arg("--baseline").args(baseline).arg("--new").args(new);
    command.arg("--out").arg(&out).arg("--config").arg(&config).args(["--pages", "none", "--no-write-back"]);
    let output = command.env_remove("GITHUB_STEP_SUMMARY").stdin(Stdio::null()).output()?;
    // 1 means that the gate failed.
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let evaluation = json(&out.join("evaluation.json"))?;
    // Notices stand above it.
    let above = usize::from(list(&evaluation["notices"]).next().is_some());
    let headline = String::from_utf8_lossy(&output.stdout).lines().nth(above).unwrap_or_default().to_owned();
    Ok(Comparison { evaluation, passed: output.status.success(), headline })
}

fn json(path: &Utf8Path) -> Outcome<Value> {
    let bytes = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))?)
}

/// Lists the pairs of runs of a corpus by name.
///
/// # Errors
/// If the folder cannot be read.
pub fn pairs(corpus: &Utf8Path) -> Outcome<Vec<String>> {
    Ok(names(corpus)?.into_iter().filter(|name| corpus.join(name).join("runs").is_dir()).collect())
}

/// Lists the folders in a folder by name.
///
/// # Errors
/// If the folder cannot be read.
pub fn names(folder: &Utf8Path) -> Outcome<Vec<String>> {
    let entries = folder.read_dir_utf8().map_err(|error| format!("{folder}: {error}"))?;
    let folders = entries.filter_map(Result::ok).filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().to_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

/// The items of an array; none for another value.
pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Prints for each label whether the first divergence and the cause are right.
///
/// A first divergence is right if one of its pointers is an accepted one or lies below it, on the same side. A cause is right
/// if its place, up to the first dot or blank, is an accepted place, or if one of its pointers is accepted.
fn print_labels(compared: &[Compared], labels: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "\ncorpus: first divergences and causes, compared with labels.json\n");
    let (mut divergences, mut causes, mut all) = (0, 0, 0);
    for label in list(labels) {
        let Some(case) = find(compared, label) else { continue };
        let (divergence, root) = (is_right_divergence(case, label), is_right_cause(case, label));
        all += 1;
        divergences += usize::from(divergence);
        causes += usize::from(root);
        let mark = |right: bool| if right { "right" } else { "wrong" };
        let name = format!("{} {}", text(&label["pair"]), text(&label["case_id"]));
        let _ = writeln!(
            out,
            "{name:<40} divergence {:<6} cause {:<6} {}: {}",
            mark(divergence),
            mark(root),
            text(&case["cause"]["code"]),
            text(&case["cause"]["place"])
        );
    }
    let _ = writeln!(out, "first divergences right: {divergences} of {all}; causes right: {causes} of {all}");
}

fn find<'a>(compared: &'a [Compared], label: &Value) -> Option<&'a Value> {
    let runs = &label["runs"];
    let is_labelled = |pair: &&Compared| {
        pair.pair == text(&label["pair"])
            && (runs.is_null() || (text(&runs["baseline"]) == pair.runs[0] && text(&runs["new"]) == pair.runs[1]))
    };
    compared.iter().find(is_labelled)?.case(text(&label["case_id"]))
}

fn is_right_divergence(case: &Value, label: &Value) -> bool {
    is_accepted(&case["first_divergence"]["pointers"], &label["first_divergence"]["accept"])
}

fn is_right_cause(case: &Value, label: &Value) -> bool {
    let (found, accepted) = (&case["cause"], &label["cause"]);
    let place = text(&found["place"]).split(['.', ' ']).next().unwrap_or_default();
    let is_place = !place.is_empty() && list(&accepted["accept_places"]).any(|accepted| text(accepted) == place);
    is_place || is_accepted(&found["pointers"], &accepted["accept_pointers"])
}

fn is_accepted(pointers: &Value, accepted: &Value) -> bool {
    list(pointers).any(|place| {
        list(accepted).any(|accepted| {
            let below = text(&place["pointer"]).strip_prefix(text(&accepted["pointer"]));
            place["side"] == accepted["side"] && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    })
}

/// The text of a string; empty for another value.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
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

    #[test]
    fn a_pointer_below_an_accepted_one_is_right() {
        let accepted = json!([{"side": "new", "pointer": "/events/1"}]);
        let is_right = |side: &str, pointer: &str| is_accepted(&json!([{"side": side, "pointer": pointer}]), &accepted);
        assert!(is_right("new", "/events/1") && is_right("new", "/events/1/args"));
        assert!(!is_right("new", "/events/12") && !is_right("baseline", "/events/1"));
    }

    #[test]
    fn a_cause_is_right_by_its_place_up_to_a_dot_or_blank() {
        let label = json!({"cause": {"accept_places": ["refund"], "accept_pointers": []}});
        let is_right = |place: &str| is_right_cause(&json!({"cause": {"place": place, "pointers": []}}), &label);
        assert!(is_right("refund") && is_right("refund.amount") && is_right("refund result"));
        assert!(!is_right("refund_order") && !is_right(""));
    }
}
