//! What is measured, and the table that comes of it.

use std::fmt::Write as _;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_artifact::write::{self, Durability};
use counterproof_runner::{Environment, Settings, Silent};

use crate::machine::{notes, peak_memory};
use crate::{Outcome, answer, first_line, role, say};

/// So many cases at once, and so many of them that a measurement takes a few seconds.
const POINTS: [(usize, usize); 4] = [(1, 2_000), (16, 10_000), (64, 15_000), (256, 15_000)];

/// The points at which memory is measured.
const MEMORY: [usize; 2] = [1_000, 50_000];

/// A file system in memory, where a sync costs nothing: the difference is what syncing costs.
const IN_MEMORY: &str = "/dev/shm";

/// The whole bench.
pub(crate) fn all() -> Outcome {
    say(&format!("machine: {}", notes()))?;
    let mut server = role(&["serve"])?;
    let url = first_line(&mut server)?;
    // In the build folder and not in the system's, which is often no disk.
    let here = Utf8PathBuf::try_from(std::env::current_exe()?)?;
    let disk = tempfile::tempdir_in(here.parent().ok_or("this program is nowhere")?)?;
    let memory = tempfile::tempdir_in(IN_MEMORY).ok();
    let path = |folder: &tempfile::TempDir| Utf8PathBuf::try_from(folder.path().to_owned());

    say("")?;
    say(
        "| at once | ceiling, requests/s | runner, cases/s | of the ceiling | without a disk, cases/s | share of syncing |",
    )?;
    say("|---|---|---|---|---|---|")?;
    for (concurrency, cases) in POINTS {
        let ceiling: f64 = answer(&["load", &url, &concurrency.to_string()])?.parse()?;
        let durable = Measured::of(&url, &path(&disk)?, cases, concurrency)?;
        let volatile = match &memory {
            Some(folder) => Some(Measured::of(&url, &path(folder)?, cases, concurrency)?),
            None => None,
        };
        let mut row =
            format!("| {concurrency} | {ceiling:.0} | {:.0} | {:.0} % |", durable.rate, 100.0 * durable.rate / ceiling);
        match volatile {
            Some(volatile) => {
                let share = 100.0 * (1.0 - durable.rate / volatile.rate);
                write!(row, " {:.0} | {:.0} % |", volatile.rate, share.max(0.0))?;
            }
            None => row.push_str(" unknown | unknown |"),
        }
        say(&row)?;
    }
    say("")?;
    say("| cases, 64 at once | peak memory, MiB | cases/s |")?;
    say("|---|---|---|")?;
    for cases in MEMORY {
        let measured = Measured::of(&url, &path(&disk)?, cases, 64)?;
        say(&format!("| {cases} | {:.0} | {:.0} |", measured.peak, measured.rate))?;
    }
    // Its standard input closes, and it ends.
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

/// What one run of the runner says of itself.
struct Measured {
    rate: f64,
    peak: f64,
}

impl Measured {
    fn of(url: &str, root: &Utf8Path, cases: usize, concurrency: usize) -> Outcome<Self> {
        let folder = tempfile::tempdir_in(root)?;
        let folder = Utf8Path::from_path(folder.path()).ok_or("the folder's name is not UTF-8")?;
        let line = answer(&["run", url, folder.as_str(), &cases.to_string(), &concurrency.to_string()])?;
        let (rate, peak) = line.split_once(' ').ok_or("the run said something else")?;
        Ok(Self { rate: rate.parse()?, peak: peak.parse()? })
    }
}

/// One run; says cases per second and peak memory.
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
    let settings = Settings {
        concurrency: concurrency.to_string().parse()?,
        ..Settings::new("r1".parse()?, Side::New, url.parse()?, cases_path, folder.join("runs"))
    };
    let start = Instant::now();
    let summary = counterproof_runner::run(&settings, &suite.cases, Environment::of_system(), &mut Silent)?;
    let rate = cases as f64 / start.elapsed().as_secs_f64();
    if summary.counts.answered != cases {
        return Err(format!("not every case was answered: {:?}", summary.counts).into());
    }
    say(&format!("{rate:.1} {:.1}", peak_memory().unwrap_or(f64::NAN)))
}
