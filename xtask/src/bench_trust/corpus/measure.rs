//! The measurement: compares every pair with the program and prints what comes out.

use std::io::{self, Write as _};

use camino::Utf8Path;

use super::labels;
use super::pair::{Compared, Ranking, compare, json, names};
use crate::step::Failure;

/// Measures the program on the corpus in this folder.
pub(in super::super) fn run(program: &Utf8Path, corpus: &Utf8Path) -> Result<(), Failure> {
    let scratch = tempfile::tempdir().map_err(|source| Failure::File { path: "a temporary folder".into(), source })?;
    let scratch = Utf8Path::from_path(scratch.path()).unwrap_or(Utf8Path::new("."));
    let mut compared = Vec::new();
    for pair in names(corpus)?.into_iter().filter(|name| corpus.join(name).join("runs").is_dir()) {
        let (baseline, new) =
            (names(&corpus.join(&pair).join("runs/baseline"))?, names(&corpus.join(&pair).join("runs/new"))?);
        // Several baseline runs are measured one by one: a label and a fall are about one run of each side.
        for (run, other) in baseline.iter().flat_map(|run| new.iter().map(move |other| (run, other))) {
            let evaluation = compare(program, corpus, scratch, [&pair, run, other])?;
            let truth = json(&corpus.join(&pair).join("cases/truth.json"))?;
            compared.push(Compared::new(&pair, [run, other], &evaluation, &truth));
        }
    }
    print_rankings(&compared);
    let labels = json(&corpus.join("labels.json"))?;
    labels::print(&compared, &labels);
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
