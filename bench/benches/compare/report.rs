//! The size of large reports, and the time until a reader can use them.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use camino::Utf8Path;
use counterproof_bench::{Outcome, peak_memory, root, target_folder};
use counterproof_report::PageSelection;

use crate::generate::write_runs;
use crate::stages::compare_into;
use crate::{print_line, run_stage};

/// Default numbers of case pairs. 100,000 need about 10 GB of disk and 10 minutes.
pub(crate) const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// For each size, writes the report of generated runs, measures its size, and opens its first page from disk.
pub(crate) fn measure(sizes: &[usize]) -> Outcome {
    for cases in sizes {
        let scratch = target_folder().join("bench-report");
        clear(&scratch)?;
        print_line(&run_stage(&["weigh", scratch.as_str(), &cases.to_string()])?)?;
        open(&scratch.join("report"))?;
        clear(&scratch)?;
    }
    Ok(())
}

/// Opens the first page in the browser, which prints the time until it is interactive.
fn open(report: &Utf8Path) -> Outcome {
    let suite = root().join("tests/browser");
    let Ok(browser) = fs::read_to_string(suite.join("node_modules/.browser")) else {
        return print_line("skipped: the time in a browser (`cargo xtask browser` installs one)");
    };
    let mut command = Command::new("node");
    command.arg("interactive.mjs").arg(report).current_dir(suite).env("CHROMIUM", browser.trim());
    if command.status()?.success() { Ok(()) } else { Err("node tests/browser/interactive.mjs failed".into()) }
}

/// Removes the folder with the system's `rm` if there is one: it can contain millions of files.
pub(crate) fn clear(folder: &Utf8Path) -> Outcome {
    if !folder.exists() {
        return Ok(());
    }
    let removed = Command::new("rm").arg("-rf").arg(folder).stdin(Stdio::null()).status();
    if !removed.is_ok_and(|status| status.success()) {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// Generates runs of this number of case pairs, writes their report, and prints its size and the time.
pub(crate) fn weigh_report(root: &Utf8Path, seed: u64, cases: usize) -> Outcome {
    write_runs(root, seed, cases)?;
    let out = root.join("report");
    let started = Instant::now();
    compare_into(root, &out, PageSelection::None)?;
    let compared = started.elapsed().as_secs_f64();
    let started = Instant::now();
    compare_into(root, &out, PageSelection::All)?;
    let written = started.elapsed().as_secs_f64();
    let changed = root.join("report-changed");
    let since = Instant::now();
    compare_into(root, &changed, PageSelection::Changed)?;
    let written_changed = since.elapsed().as_secs_f64();
    let of_changed = Weight::of(&changed)?;
    fs::remove_dir_all(&changed)?;
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    let (runs, _) = weigh(&root.join("runs"))?;
    let all = Weight::of(&out)?;
    let index = fs::metadata(out.join("index.html"))?.len();
    let peak = peak_memory().unwrap_or(f64::NAN);
    print_line(&format!(
        "{cases} case pairs of seed {seed}: runs of {:.1} MiB, compared in {compared:.1} s without pages\n",
        mib(runs)
    ))?;
    print_line(
        "| pages | report, MiB | of it copies of the runs, MiB | report ÷ copies | index, KiB | largest page, KiB | compare and write, s |",
    )?;
    print_line("|---|---|---|---|---|---|---|")?;
    for (pages, weight, seconds) in [("all", all, written), ("changed", of_changed, written_changed)] {
        print_line(&format!(
            "| {pages} | {:.1} | {:.1} | {:.2} | {:.0} | {:.0} | {seconds:.1} |",
            mib(weight.folder),
            mib(weight.copies),
            weight.folder as f64 / weight.copies as f64,
            index as f64 / 1024.0,
            weight.largest as f64 / 1024.0,
        ))?;
    }
    print_line(&format!("\npeak memory {peak:.0} MiB"))
}

/// The size of a report in bytes.
struct Weight {
    folder: u64,
    /// Of the folder, the copies of the runs' files.
    copies: u64,
    /// The largest page.
    largest: u64,
}

impl Weight {
    fn of(report: &Utf8Path) -> Outcome<Self> {
        let (folder, largest) = weigh(report)?;
        let (copies, _) = weigh(&report.join("artifacts"))?;
        Ok(Self { folder, copies, largest })
    }
}

/// The bytes of all files below a folder, and of its largest page.
fn weigh(folder: &Utf8Path) -> Outcome<(u64, u64)> {
    let (mut all, mut largest) = (0, 0);
    for entry in folder.read_dir_utf8()? {
        let entry = entry?;
        let (bytes, page) = if entry.file_type()?.is_dir() {
            weigh(entry.path())?
        } else {
            let bytes = entry.metadata()?.len();
            (bytes, if entry.path().extension() == Some("html") { bytes } else { 0 })
        };
        all += bytes;
        largest = largest.max(page);
    }
    Ok((all, largest))
}
