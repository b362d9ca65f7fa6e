//! Processes that record, and are killed or share a ledger.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use counterproof_ledger::event::{Action, RunStatus};
use counterproof_ledger::location::{LedgerLocation, StateFolder};
use counterproof_ledger::query::{RunFilter, RunState, runs};
use counterproof_ledger::recorder::{BacklogLimits, Recorder, RecorderOptions};
use counterproof_ledger::spool::{SpoolFolder, replay};

use crate::kit::{Kit, LIMIT, call, origin, record_call, run_end, run_start};
#[cfg(unix)]
use crate::server::Server;
use crate::tables::texts;

/// States what a process of this test records: the ledger, the folder for state, the run, the shim, and the number of calls.
const WORK: &str = "COUNTERPROOF_TEST_RECORDING";

/// How long such a process tries to move its events.
const LIMIT_MS: &str = "COUNTERPROOF_TEST_LIMIT_MS";

/// Kills of each test.
const KILLS: u32 = 25;

/// Records what the environment states, and prints the number of each event after it was recorded. Does nothing as a normal test.
#[test]
fn recording_process() {
    let Ok(work) = std::env::var(WORK) else { return };
    let [ledger, state, run, shim, calls] = work.split('|').collect::<Vec<_>>().try_into().unwrap();
    let options = RecorderOptions {
        ledger: Some(ledger.parse().unwrap()),
        state: StateFolder::new(state),
        events_file: None,
        origin: origin(run, shim),
        limits: BacklogLimits::default(),
    };
    let recorder = Recorder::start(options).unwrap();
    let mut seq = 0_u64;
    let mut record = |body| {
        recorder.record(body).unwrap();
        seq += 1;
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nrecorded {seq}").and_then(|()| out.flush()).unwrap();
    };
    record(run_start());
    for number in 1..=calls.parse().unwrap() {
        call(Action::Block, number).into_iter().for_each(&mut record);
    }
    record(run_end(RunStatus::Succeeded));
    let limit = std::env::var(LIMIT_MS).map_or(LIMIT, |limit| Duration::from_millis(limit.parse().unwrap()));
    let finished = recorder.finish(limit).unwrap();
    assert_eq!(finished.left_bytes, 0, "{finished:?}");
}

/// Returns the command of a process that records.
pub(crate) fn recording(kit: &Kit, ledger: &str, names: [&str; 2], calls: u64) -> Command {
    let [run, shim] = names;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["killed::recording_process", "--exact", "--nocapture"]).stdout(Stdio::piped());
    command.env(WORK, format!("{ledger}|{}|{run}|{shim}|{calls}", kit.path("state")));
    command
}

fn spawn(kit: &Kit, ledger: &str, names: [&str; 2], calls: u64) -> Child {
    recording(kit, ledger, names, calls).spawn().unwrap()
}

/// Returns the number of the last event that a process has printed, after its output has ended.
fn acknowledged(lines: impl Iterator<Item = String>) -> usize {
    lines.filter_map(|line| line.strip_prefix("recorded ")?.parse().ok()).max().unwrap()
}

/// Kills processes at different times, and checks that the ledger has all that they have acknowledged.
fn kill_and_check(kit: &Kit, location: &LedgerLocation, ledger: &str) {
    let mut expected = Vec::new();
    for round in 0..KILLS {
        let run = format!("r{round}");
        let mut child = spawn(kit, ledger, [&run, "s"], u64::MAX);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let first = lines.find(|line| line.starts_with("recorded ")).unwrap();
        // From the first event to after several transactions. The output fills the pipe meanwhile, so a thread reads it.
        let reader = std::thread::spawn(move || acknowledged(lines.chain([first])));
        std::thread::sleep(Duration::from_millis(u64::from(round * 7919 % 101)));
        child.kill().unwrap();
        child.wait().unwrap();
        expected.push((run, reader.join().unwrap()));
    }
    let mut store = counterproof_ledger::open_or_create(location).unwrap();
    let state = StateFolder::new(kit.path("state"));
    let folder = SpoolFolder::new(location.spool_folder(&state));
    let replayed = replay(&folder, store.as_mut()).unwrap();
    assert!(replayed.failures.is_empty() && folder.is_empty().unwrap(), "{replayed:?}");
    for (run, acknowledged) in expected {
        let query = format!("SELECT CAST(seq AS TEXT) FROM events WHERE run_id = '{run}' ORDER BY events.seq");
        let stored = texts(location, &query);
        assert!(stored.len() >= acknowledged, "{run}: {} of {acknowledged}", stored.len());
        assert!(stored.iter().enumerate().all(|(index, seq)| *seq == (index + 1).to_string()), "{run}: {stored:?}");
        let found = runs(store.as_mut(), &RunFilter { run_id: Some(run), since: None, limit: 1 }).unwrap();
        assert_eq!((found[0].state(), found[0].status.as_deref()), (RunState::Lost, Some("FAILED")));
    }
    assert!(store.diagnose().unwrap().iter().all(|check| check.remedy.is_none()));
}

fn share_and_check(kit: &Kit, location: &LedgerLocation, ledger: &str) {
    let children: Vec<_> = ["s1", "s2", "s3"].map(|shim| spawn(kit, ledger, ["r1", shim], 200)).into();
    for mut child in children {
        assert_eq!(acknowledged(BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap)), 602);
        assert!(child.wait().unwrap().success());
    }
    let mut store = counterproof_ledger::open(location).unwrap();
    let found = runs(store.as_mut(), &RunFilter { limit: 9, ..RunFilter::default() }).unwrap();
    let run = &found[0];
    assert_eq!((found.len(), run.sources, run.calls, run.refused, run.state()), (1, 3, 600, 600, RunState::Ended));
}

#[test]
fn whatever_was_recorded_survives_a_kill() {
    let kit = Kit::new();
    kill_and_check(&kit, &LedgerLocation::SqliteFile(kit.ledger()), kit.ledger().as_str());
}

#[test]
fn processes_share_a_file() {
    let kit = Kit::new();
    share_and_check(&kit, &LedgerLocation::SqliteFile(kit.ledger()), kit.ledger().as_str());
}

#[cfg(unix)]
mod postgres {
    use super::*;

    #[test]
    #[ignore = "needs a PostgreSQL server: cargo xtask interop postgres"]
    fn whatever_was_recorded_survives_a_kill() {
        let (kit, server) = (Kit::new(), Server::start());
        kill_and_check(&kit, &server.location(), &server.url());
    }

    #[test]
    #[ignore = "needs a PostgreSQL server: cargo xtask interop postgres"]
    fn processes_share_a_database() {
        let (kit, server) = (Kit::new(), Server::start());
        share_and_check(&kit, &server.location(), &server.url());
    }

    #[test]
    #[ignore = "needs a PostgreSQL server: cargo xtask interop postgres"]
    fn a_server_that_is_gone_gets_the_events_when_it_is_back() {
        let (kit, server) = (Kit::new(), Server::start());
        let mut options = kit.options("r1", "s1");
        options.ledger = Some(server.location());
        let recorder = Recorder::start(options).unwrap();
        recorder.record(run_start()).unwrap();
        let count = || texts(&server.location(), "SELECT CAST(count(*) AS TEXT) FROM events");
        let start = std::time::Instant::now();
        while counterproof_ledger::open(&server.location()).is_err() && start.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(10));
        }
        server.stop();
        for number in 1..=100 {
            record_call(&recorder, Action::Allow, number);
        }
        recorder.record(run_end(RunStatus::Succeeded)).unwrap();
        server.resume();
        let finished = recorder.finish(LIMIT).unwrap();
        assert_eq!((finished.events, finished.left_bytes), (302, 0), "{finished:?}");
        assert_eq!(count(), ["302"]);
    }

    #[test]
    #[ignore = "needs a PostgreSQL server: cargo xtask interop postgres"]
    fn a_server_that_stays_away_leaves_the_events_in_the_spool() {
        let (kit, server) = (Kit::new(), Server::start());
        let mut options = kit.options("r1", "s1");
        options.ledger = Some(server.location());
        server.stop();
        let recorder = Recorder::start(options).unwrap();
        recorder.record(run_start()).unwrap();
        let finished = recorder.finish(Duration::from_millis(200)).unwrap();
        assert!(finished.left_bytes > 0 && finished.left_in.unwrap().exists(), "{:?}", finished.store_error);
    }
}
