//! What is measured, and the table that comes of it.

use std::fmt::Write as _;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_runner::{Environment, Settings, Silent};
use counterproof_store::write::{self, Durability};

use crate::machine::peak_memory;
use crate::{Outcome, answer, first_line, role, say};

/// So many cases at once, and so many of them that a measurement takes a few seconds.
const POINTS: [(usize, usize); 4] = [(1, 2_000), (16, 10_000), (64, 15_000), (256, 15_000)];

/// The points at which memory is measured.
const MEMORY: [usize; 2] = [1_000, 50_000];

/// A file system in memory, where a sync costs nothing: the difference is what syncing costs.
const IN_MEMORY: &str = "/dev/shm";

/// The whole bench.
pub(crate) fn all() -> Outcome {
    let mut server = role(&["serve"])?;
    let url = first_line(&mut server)?;
    // In the build folder and not in the system's, which is often no disk.
    let here = Utf8PathBuf::try_from(std::env::current_exe()?)?;
    let disk = tempfile::tempdir_in(here.parent().ok_or("this program is nowhere")?)?;
    let memory = tempfile::tempdir_in(IN_MEMORY).ok();
    let path = |folder: &tempfile::TempDir| Utf8PathBuf::try_from(folder.path().to_owned());

    say("")?;
    say(
        "| at once | ceiling, requests/s | runner, cases/s | of the ceiling | time with a sync under way | without a disk, cases/s | lost to the disk |",
    )?;
    say("|---|---|---|---|---|---|---|")?;
    for (concurrency, cases) in POINTS {
        let ceiling: f64 = answer(&["load", &url, &concurrency.to_string()])?.parse()?;
        let durable = Measured::of(&url, &path(&disk)?, cases, concurrency)?;
        let volatile = match &memory {
            Some(folder) => Some(Measured::of(&url, &path(folder)?, cases, concurrency)?),
            None => None,
        };
        let (share, syncing) = (100.0 * durable.rate / ceiling, 100.0 * durable.syncing);
        let mut row = format!("| {concurrency} | {ceiling:.0} | {:.0} | {share:.0} % | {syncing:.0} % |", durable.rate);
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
    say("| cases, 64 at once | memory once loaded, MiB | peak memory, MiB | cases/s |")?;
    say("|---|---|---|---|")?;
    for cases in MEMORY {
        let measured = Measured::of(&url, &path(&disk)?, cases, 64)?;
        say(&format!("| {cases} | {:.0} | {:.0} | {:.0} |", measured.loaded, measured.peak, measured.rate))?;
    }
    // Its standard input closes, and it ends.
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

/// What one run of the runner says of itself.
struct Measured {
    /// Cases per second, to the last sync.
    rate: f64,
    /// The share of the run's time in which a sync was under way; cases are asked meanwhile.
    syncing: f64,
    /// Peak memory in MiB once the cases file is loaded.
    loaded: f64,
    /// Peak memory in MiB.
    peak: f64,
}

impl Measured {
    fn of(url: &str, root: &Utf8Path, cases: usize, concurrency: usize) -> Outcome<Self> {
        let folder = tempfile::tempdir_in(root)?;
        let folder = Utf8Path::from_path(folder.path()).ok_or("the folder's name is not UTF-8")?;
        let line = answer(&["run", url, folder.as_str(), &cases.to_string(), &concurrency.to_string()])?;
        let figures: Vec<f64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [rate, syncing, loaded, peak] = figures[..] else { return Err("the run said something else".into()) };
        Ok(Self { rate, syncing, loaded, peak })
    }
}

/// One run; says cases per second, the share of syncing, and peak memory after loading and at the end.
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
        // As the program does unless it is told otherwise: two files a case.
        save_requests: true,
        concurrency: concurrency.to_string().parse()?,
        ..Settings::new("r1".parse()?, Side::New, url.parse()?, cases_path, folder.join("runs"))
    };
    let start = Instant::now();
    let summary = counterproof_runner::run(&settings, &suite.cases, Environment::from_system(), &mut Silent)?;
    let took = start.elapsed().as_secs_f64();
    let (rate, syncing) = (cases as f64 / took, summary.syncing.as_secs_f64() / took);
    if summary.counts.answered != cases {
        return Err(format!("not every case was answered: {:?}", summary.counts).into());
    }
    say(&format!("{rate:.1} {syncing:.3} {loaded:.1} {:.1}", peak_memory().unwrap_or(f64::NAN)))
}
