//! Attacks the programs at random for a given time, and prints the attempts and faults of each kind. `docs/security.md` says what
//! each kind shows.
//!
//! Arguments: seconds, a seed, and the kinds to run; without kinds, all of them. An attempt is reproduced by its seed and number:
//! `KIND:NUMBER` runs that one only.

mod attempt;
mod disks;
mod encoders;
mod kills;
mod prepared;
mod process;
mod proxies;
mod rollbacks;
mod servers;
mod sessions;
mod signals;
mod snapshot;
mod supervision;
mod trees;
mod workflows;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use attempt::{Attempt, Fault, Kind};

/// The kinds in the order of the table.
const KINDS: [Kind; 11] = [
    Kind { name: "kill", about: "SIGKILL of a writing command", run: kills::run },
    Kind { name: "disk", about: "full disk, or no inodes", run: disks::run },
    Kind { name: "signal", about: "signals to safe-run and run", run: signals::run },
    Kind { name: "supervision", about: "commands that stop their supervisor", run: supervision::run },
    Kind { name: "server", about: "slow, closing and lying servers", run: servers::run },
    Kind { name: "tree", about: "damaged and hostile run folders", run: trees::run },
    Kind { name: "proxy", about: "slow and lying clients of the proxy", run: proxies::run },
    Kind { name: "session", about: "SIGKILL of the recorder of an agent", run: sessions::run },
    Kind { name: "workflow", about: "SIGKILL of a workflow and its resumes", run: workflows::run },
    Kind { name: "rollback", about: "hostile repositories before a rollback", run: rollbacks::run },
    Kind { name: "encoder", about: "secrets through encoders", run: encoders::run },
];

/// What became of the attempts of one kind.
#[derive(Debug, Default)]
struct Tally {
    attempts: u64,
    faults: u64,
    spent: Duration,
    skipped: Option<String>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(seconds), Some(seed)) = (parsed(arguments.next()), parsed(arguments.next())) else {
        say("usage: torture SECONDS SEED [KIND | KIND:NUMBER]...");
        return ExitCode::from(2);
    };
    let wanted: Vec<String> = arguments.collect();
    if let Some(unknown) = wanted.iter().find(|wanted| !is_known(wanted)) {
        say(&format!(
            "`{unknown}` is neither a kind nor KIND:NUMBER; kinds: {}",
            KINDS.map(|kind| kind.name).join(", ")
        ));
        return ExitCode::from(2);
    }
    // Built before the time is measured.
    let _ = (counterproof_tests::program(), counterproof_tests::safe_run());
    say(&format!("seed {seed}, {seconds} seconds"));
    let tallies = torture(Duration::from_secs(seconds), seed, &wanted);
    print_table(&tallies);
    let faults: u64 = tallies.iter().map(|tally| tally.faults).sum();
    if faults > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Whether a text is a kind, or the number of an attempt of one.
fn is_known(wanted: &str) -> bool {
    let (name, number) = wanted.split_once(':').unwrap_or((wanted, "0"));
    KINDS.iter().any(|kind| kind.name == name) && number.parse::<u64>().is_ok()
}

fn parsed(argument: Option<String>) -> Option<u64> {
    argument?.parse().ok()
}

/// Runs the kinds in turn until the time is over. Each kind gets its share of the time and not of the attempts.
fn torture(limit: Duration, seed: u64, wanted: &[String]) -> Vec<Tally> {
    let start = Instant::now();
    let mut tallies: Vec<Tally> = KINDS.iter().map(|_| Tally::default()).collect();
    for request in wanted {
        if let Some((name, number)) = request.split_once(':')
            && let (Some(at), Ok(number)) = (KINDS.iter().position(|kind| kind.name == name), number.parse())
        {
            attempt_once(at, Attempt::new(seed, name, number), &mut tallies[at]);
        }
    }
    let is_wanted = |kind: &Kind| wanted.is_empty() || wanted.iter().any(|name| name == kind.name);
    let kinds: Vec<usize> = (0..KINDS.len()).filter(|at| is_wanted(&KINDS[*at])).collect();
    while start.elapsed() < limit {
        let open = kinds.iter().copied().filter(|at| tallies[*at].skipped.is_none());
        let Some(at) = open.min_by_key(|at| tallies[*at].spent) else { break };
        let attempt = Attempt::new(seed, KINDS[at].name, tallies[at].attempts);
        attempt_once(at, attempt, &mut tallies[at]);
    }
    tallies
}

fn attempt_once(at: usize, mut attempt: Attempt, tally: &mut Tally) {
    let (kind, start) = (&KINDS[at], Instant::now());
    let outcome = (kind.run)(&mut attempt);
    tally.spent += start.elapsed();
    match outcome {
        Err(Fault::Skipped(why)) => tally.skipped = Some(why),
        Ok(()) => tally.attempts += 1,
        Err(fault) => {
            tally.attempts += 1;
            tally.faults += 1;
            let number = attempt.number();
            let folder = attempt.keep();
            say(&format!("FAULT {}:{number} {fault}\n  folder: {folder}", kind.name));
        }
    }
}

fn print_table(tallies: &[Tally]) {
    say(&format!("{:<12}{:>9}{:>8}{:>9}  attack", "kind", "attempts", "faults", "seconds"));
    for (kind, tally) in KINDS.iter().zip(tallies) {
        let note = tally.skipped.as_ref().map(|why| format!(" (skipped: {why})")).unwrap_or_default();
        let seconds = tally.spent.as_secs();
        say(&format!("{:<12}{:>9}{:>8}{seconds:>9}  {}{note}", kind.name, tally.attempts, tally.faults, kind.about));
    }
}

fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
