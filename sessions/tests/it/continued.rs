//! Sessions whose recorder is killed, and which other processes go on with.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use camino::Utf8Path;
use counterproof_ledger::location::LedgerLocation;
use counterproof_sessions::event::{EventBody, Opaque, SessionEvent};
use counterproof_sessions::recorder::{RecordError, RecorderOptions, SessionRecorder, SessionSpool, recover};
use counterproof_sessions::session::{SessionHead, SessionStatus};
use jiff::Timestamp;
use serde_json::Value;

#[cfg(unix)]
use crate::server::Server;
use crate::store::{all, file, head, store};

/// States what a process of this test records: the ledger, the spool folder, whether it goes on with the session, and the
/// prefix of its texts.
const WORK: &str = "COUNTERPROOF_TEST_SESSION";

/// Records until it is killed, and prints the number of each record after it was recorded. Does nothing as a normal test.
#[test]
fn recording_process() {
    let Ok(work) = std::env::var(WORK) else { return };
    let [ledger, spool, continues, prefix] = work.split('|').collect::<Vec<_>>().try_into().unwrap();
    let options = options(&ledger.parse().unwrap(), &SessionSpool::new(Utf8Path::new(spool)), continues == "true");
    let recorder = SessionRecorder::start(options).unwrap();
    for number in 0_u64.. {
        recorder.record(vec![opaque(prefix, number)]).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nrecorded {number}").and_then(|()| out.flush()).unwrap();
    }
}

fn running() -> SessionHead {
    SessionHead { status: SessionStatus::Running, ended_at: None, ..head("s") }
}

fn options(ledger: &LedgerLocation, spool: &SessionSpool, continues: bool) -> RecorderOptions {
    let (ledger, spool, head, warn) = (ledger.clone(), spool.clone(), running(), Box::new(|_: &str| {}));
    RecorderOptions { ledger, spool, head, continues, held: None, requires_store: false, secrets: Vec::new(), warn }
}

fn opaque(prefix: &str, number: u64) -> SessionEvent {
    let data = Value::from(format!("{prefix}{number}"));
    SessionEvent::captured(Timestamp::now(), EventBody::Opaque(Opaque { data }))
}

/// Starts a process that records, and returns it with the number of its last record that was read.
fn spawn(ledger: &str, spool: &Utf8Path, continues: bool, prefix: &str) -> (Child, u64) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["continued::recording_process", "--exact", "--nocapture"]).stdout(Stdio::piped());
    command.env(WORK, format!("{ledger}|{spool}|{continues}|{prefix}"));
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let acknowledged = lines.by_ref().filter_map(|line| line.strip_prefix("recorded ")?.parse().ok()).nth(4).unwrap();
    // The pipe stays open, so that the process ends by the signal alone.
    std::thread::spawn(move || lines.count());
    (child, acknowledged)
}

fn a_session_goes_on_after_each_kill(ledger: &LedgerLocation) {
    let folder = tempfile::tempdir().unwrap();
    let place = Utf8Path::from_path(folder.path()).unwrap();
    let spool = SessionSpool::new(place);
    let missing = SessionRecorder::start(options(ledger, &spool, true)).map(drop);
    assert!(matches!(missing, Err(RecordError::Spool(_) | RecordError::Missing(_))), "{missing:?}");
    // The first process cannot open the database: there is a folder in its place.
    let ledgers = [place.as_str(), ledger.expose(), ledger.expose()];
    let mut acknowledged = Vec::new();
    for (number, name) in ledgers.into_iter().enumerate() {
        let (mut child, last) = spawn(name, place, number > 0, &format!("{number}-"));
        assert_eq!(spool.holder("s"), Some(child.id()));
        let second = SessionRecorder::start(options(ledger, &spool, true)).map(drop);
        assert!(matches!(second, Err(RecordError::Running(_))), "{second:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(spool.holder("s"), None);
        acknowledged.push(last);
        if number == 1 {
            let mut store = store(ledger);
            assert_eq!(store.find("s").unwrap().unwrap().status, "running");
            recover(&mut store, &spool, true).unwrap();
            assert_eq!(store.find("s").unwrap().unwrap().status, "interrupted");
        }
    }
    let recorder = SessionRecorder::start(options(ledger, &spool, true)).unwrap();
    assert_eq!(store(ledger).find("s").unwrap().unwrap().status, "running");
    recorder.record(vec![opaque("3-", 0)]).unwrap();
    let end = SessionHead { status: SessionStatus::Completed, ended_at: head("s").ended_at, ..running() };
    let summary = recorder.finish(&end, Duration::from_mins(1)).unwrap();
    assert!(!summary.has_waiting);
    let mut store = store(ledger);
    let found = store.find("s").unwrap().unwrap();
    assert_eq!((found.status.as_str(), found.head().unwrap()), ("completed", end));
    let events = all(&mut store, "s");
    let of_process: Vec<Vec<&Value>> = (0..=3)
        .map(|number| {
            let prefix = format!("{number}-");
            events.iter().filter(|event| event["data"].as_str().unwrap().starts_with(&prefix)).collect()
        })
        .collect();
    let mut seq = 0_u64;
    for (number, of_process) in of_process.iter().enumerate() {
        let last = acknowledged.get(number).copied().unwrap_or_default();
        assert!(of_process.len() as u64 > last, "process {number}: {} records of {last}", of_process.len());
        for (index, event) in of_process.iter().enumerate() {
            seq += 1;
            assert_eq!((&event["seq"], &event["data"]), (&seq.into(), &format!("{number}-{index}").into()));
        }
    }
}

mod sqlite {
    #[test]
    fn a_session_goes_on_after_each_kill() {
        let folder = tempfile::tempdir().unwrap();
        super::a_session_goes_on_after_each_kill(&super::file(&folder));
    }
}

#[cfg(unix)]
mod postgres {
    #[test]
    #[ignore = "needs a PostgreSQL server: cargo xtask interop postgres"]
    fn a_session_goes_on_after_each_kill() {
        let server = super::Server::start();
        super::a_session_goes_on_after_each_kill(&server.location());
    }
}
