//! The measurements, and the tables of their results.

use std::fmt::Write as _;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_runner::{Environment, Settings, Silent};
use counterproof_store::write::{self, Durability};

use counterproof_bench::{Outcome, peak_memory};

use crate::{answer, first_line, print_line, role};

/// Concurrency and number of cases of each measurement. Each takes a few seconds.
const POINTS: [(usize, usize); 4] = [(1, 2_000), (16, 10_000), (64, 15_000), (256, 15_000)];

/// The numbers of cases for which memory is measured.
const MEMORY: [usize; 2] = [1_000, 50_000];

/// A file system in memory, where a sync is free: the difference to a disk is the cost of syncing.
const IN_MEMORY: &str = "/dev/shm";

/// Runs all measurements, and prints the tables.
pub(crate) fn all() -> Outcome {
    let mut server = role(&["serve"])?;
    let url = first_line(&mut server)?;
    // In the build folder, because the temporary folder of the system is often in memory.
    let here = Utf8PathBuf::try_from(std::env::current_exe()?)?;
    let disk = tempfile::tempdir_in(here.parent().ok_or("this program has no folder")?)?;
    let memory = tempfile::tempdir_in(IN_MEMORY).ok();
    let path = |folder: &tempfile::TempDir| Utf8PathBuf::try_from(folder.path().to_owned());

    print_line("")?;
    print_line(
        "| at once | ceiling, requests/s | runner, cases/s | of the ceiling | without a disk, cases/s | lost to the disk |",
    )?;
    print_line("|---|---|---|---|---|---|")?;
    for (concurrency, cases) in POINTS {
        let ceiling: f64 = answer(&["load", &url, &concurrency.to_string()])?.parse()?;
        let durable = Measured::run(&url, &path(&disk)?, cases, concurrency)?;
        let volatile = match &memory {
            Some(folder) => Some(Measured::run(&url, &path(folder)?, cases, concurrency)?),
            None => None,
        };
        let share = 100.0 * durable.rate / ceiling;
        let mut row = format!("| {concurrency} | {ceiling:.0} | {:.0} | {share:.0} % |", durable.rate);
        match volatile {
            Some(volatile) => {
                let share = 100.0 * (1.0 - durable.rate / volatile.rate);
                write!(row, " {:.0} | {:.0} % |", volatile.rate, share.max(0.0))?;
            }
            None => row.push_str(" unknown | unknown |"),
        }
        print_line(&row)?;
    }
    print_line("")?;
    print_line("| cases, 64 at once | memory once loaded, MiB | peak memory, MiB | cases/s |")?;
    print_line("|---|---|---|---|")?;
    for cases in MEMORY {
        let measured = Measured::run(&url, &path(&disk)?, cases, 64)?;
        print_line(&format!("| {cases} | {:.0} | {:.0} | {:.0} |", measured.loaded, measured.peak, measured.rate))?;
    }
    // The server ends when its standard input closes.
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

/// The figures of one run.
struct Measured {
    /// Cases per second, all files synced.
    rate: f64,
    /// Peak memory in MiB once the cases file is loaded.
    loaded: f64,
    /// Peak memory in MiB.
    peak: f64,
}

impl Measured {
    fn run(url: &str, root: &Utf8Path, cases: usize, concurrency: usize) -> Outcome<Self> {
        let folder = tempfile::tempdir_in(root)?;
        let folder = Utf8Path::from_path(folder.path()).ok_or("the folder's name is not UTF-8")?;
        let line = answer(&["run", url, folder.as_str(), &cases.to_string(), &concurrency.to_string()])?;
        let figures: Vec<f64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [rate, loaded, peak] = figures[..] else { return Err("unexpected output of the run".into()) };
        Ok(Self { rate, loaded, peak })
    }
}

/// Makes one run; prints cases per second, and peak memory after loading and at the end.
pub(crate) fn run(url: &str, folder: &Utf8Path, cases: usize, concurrency: usize) -> Outcome {
    let cases_path = folder.join("cases.jsonl");
    let mut lines = String::new();
    for number in 0..cases {
        writeln!(
            lines,
            r#"{{"id":"case_{number:05}","title":"Refund {number}","input":{{"user":"Where is my money?","context":{{"order":{number}}}}},"expected":{{"tool_required":["create_ticket"]}},"metadata":{{"tags":["refund"]}}}}"#
        )?;
    }
    write::write(&cases_path, lines.as_bytes(), Durability::Cached)?;
    drop(lines);
    let suite = counterproof_cases::load(&cases_path)?;
    let loaded = peak_memory().unwrap_or(f64::NAN);
    let settings = Settings {
        // The default of the program: two files per case.
        save_requests: true,
        concurrency: concurrency.to_string().parse()?,
        ..Settings::new("r1".parse()?, Side::New, url.parse()?, cases_path, folder.join("runs"))
    };
    let start = Instant::now();
    let summary = counterproof_runner::run(&settings, &suite.cases, Environment::from_system(), &mut Silent)?;
    let took = start.elapsed().as_secs_f64();
    let rate = cases as f64 / took;
    if summary.counts.answered != cases {
        return Err(format!("not every case was answered: {:?}", summary.counts).into());
    }
    print_line(&format!("{rate:.1} {loaded:.1} {:.1}", peak_memory().unwrap_or(f64::NAN)))
}
