//! Runs of one agent, dealt out anew as baseline and new: how often the gate fails although nothing changed.

use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_bench::{Outcome, corpus};

/// Most runs of a set. The number of deals doubles with each run.
const MOST_RUNS: usize = 8;

/// Compares each run with each other one, and each division of the runs into two sides, for every set.
pub(crate) fn run(program: &Utf8Path, sets: &[String]) -> Outcome {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "\nre-deals: runs of one agent as baseline and new, no expectations; red is a false alarm\n");
    for set in sets {
        let runs: Vec<Utf8PathBuf> = set.split(',').map(Utf8PathBuf::from).collect();
        if !(2..=MOST_RUNS).contains(&runs.len()) {
            return Err(format!("`{set}` names {} runs; 2 to {MOST_RUNS} are compared", runs.len()).into());
        }
        let pairs = (0..runs.len()).flat_map(|old| (0..runs.len()).map(move |new| (1 << old, 1 << new)));
        let pairs: Vec<(u32, u32)> = pairs.filter(|(old, new)| old != new).collect();
        let all = (1 << runs.len()) - 1;
        let is_single = |side: u32| side.is_power_of_two();
        let divided = (1..all).map(|old| (old, all & !old)).filter(|(old, new)| !is_single(*old) || !is_single(*new));
        let mut deal = |kind: &str, deals: Vec<(u32, u32)>| -> Outcome {
            let mut red = Vec::new();
            for (old, new) in &deals {
                let chosen = |side: u32| -> Vec<Utf8PathBuf> {
                    let is_in = |at: &usize| side & (1 << at) != 0;
                    (0..runs.len()).filter(is_in).map(|at| runs[at].clone()).collect()
                };
                let scratch = tempfile::tempdir()?;
                let scratch = Utf8Path::from_path(scratch.path()).ok_or("the temporary folder is not UTF-8")?;
                let compared = corpus::compare(program, scratch, &chosen(*old), &chosen(*new))?;
                red.extend((!compared.passed).then_some(compared.headline));
            }
            let _ = writeln!(
                out,
                "{:<44} {kind:<10} red {} of {}",
                runs[0].file_name().unwrap_or(set),
                red.len(),
                deals.len()
            );
            for line in red {
                let _ = writeln!(out, "    {line}");
            }
            Ok(())
        };
        deal("pairs", pairs)?;
        deal("divisions", divided.collect())?;
    }
    Ok(())
}
