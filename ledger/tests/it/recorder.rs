//! The recorder: what is in the ledger, whatever happens to the database.

use std::time::{Duration, Instant};

use counterproof_ledger::event::{Action, Event, EventBody, RunStatus};
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::query::last_events;
use counterproof_ledger::recorder::{BacklogLimits, RecordError, Recorder};
use counterproof_ledger::spool::{SpoolFolder, replay};
use rusqlite::Connection;

use crate::kit::{Kit, LIMIT, call, record_call, run_end, run_start};

#[test]
fn recorded_events_are_in_the_tables_and_as_lines() {
    let kit = Kit::new();
    let mut options = kit.options("r1", "s1");
    options.events_file = Some(kit.path("events.jsonl"));
    let recorder = Recorder::start(options).unwrap();
    recorder.record(run_start()).unwrap();
    for number in 1..=3 {
        record_call(&recorder, if number == 2 { Action::Block } else { Action::Allow }, number);
    }
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    let finished = recorder.finish(LIMIT).unwrap();
    assert_eq!((finished.events, finished.left_bytes), (11, 0), "{finished:?}");

    let lines = std::fs::read_to_string(kit.path("events.jsonl")).unwrap();
    assert_eq!(kit.texts("SELECT line FROM events ORDER BY seq"), lines.lines().collect::<Vec<_>>());
    let events: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seqs: Vec<_> = events.iter().map(|event| event.envelope.seq.unwrap()).collect();
    assert_eq!(seqs, (1..=11).collect::<Vec<_>>());
    assert!(matches!(events[10].body, EventBody::RunEnd { .. }));
    for (line, event) in lines.lines().zip(&events) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value, serde_json::to_value(event).unwrap(), "the line has the fields of the event");
    }
    let columns = "tool_name || ' ' || decision || ' ' || coalesce(rule_id, '-') || ' ' || status || ' ' || bytes_in";
    assert_eq!(
        kit.texts(&format!("SELECT {columns} FROM tool_calls ORDER BY created_at")),
        ["tool-1 ALLOW - OK 101", "tool-2 BLOCK rule ERROR 102", "tool-3 ALLOW - OK 103"]
    );
    let columns = "agent_id || ' ' || client || ' ' || env || ' ' || status || ' ' || (ended_at IS NULL)";
    assert_eq!(kit.texts(&format!("SELECT {columns} FROM runs")), ["agent codex ci SUCCEEDED 0"]);
    assert_eq!(kit.number("SELECT count(*) FROM previews WHERE args_preview LIKE '{%' AND result_preview = 'done'"), 3);
    assert_eq!(kit.texts("SELECT policy_id || version FROM policy_versions"), ["p1"]);
    assert!(kit.spool_files().is_empty(), "{:?}", kit.spool_files());
}

#[test]
fn nothing_is_recorded_after_the_end_of_the_run() {
    let kit = Kit::new();
    let recorder = kit.recorder("r1", "s1");
    recorder.record(run_start()).unwrap();
    recorder.record(run_end(RunStatus::Failed)).unwrap();
    assert!(matches!(recorder.record(run_start()), Err(RecordError::Ended)));
    assert_eq!(recorder.finish(LIMIT).unwrap().events, 2);
    assert_eq!(kit.texts("SELECT status FROM runs"), ["FAILED"]);
}

#[test]
fn events_of_a_database_that_cannot_be_used_stay_in_the_spool_until_it_can() {
    let kit = Kit::new();
    let options = kit.options("r1", "s1");
    // A folder in place of the file.
    std::fs::create_dir_all(kit.ledger()).unwrap();
    let recorder = Recorder::start(options).unwrap();
    recorder.record(run_start()).unwrap();
    record_call(&recorder, Action::Block, 1);
    let finished = recorder.finish(Duration::from_millis(300)).unwrap();
    assert!(finished.left_bytes > 0 && finished.store_error.is_some(), "{finished:?}");
    assert!(finished.left_in.unwrap().exists());

    std::fs::remove_dir(kit.ledger()).unwrap();
    let mut store = counterproof_ledger::open_or_create(&LedgerLocation::SqliteFile(kit.ledger())).unwrap();
    let replayed = replay(&SpoolFolder::new(kit.path("state/ledger.db.spool")), store.as_mut()).unwrap();
    assert_eq!((replayed.files, replayed.added, replayed.rejected), (1, 4, 0), "{replayed:?}");
    assert_eq!(kit.texts("SELECT decision FROM tool_calls"), ["BLOCK"]);
    assert_eq!(kit.texts("SELECT status FROM runs WHERE ended_at IS NULL"), ["FAILED"], "its process has died");
    assert!(kit.spool_files().is_empty());
}

#[test]
fn the_next_recorder_moves_the_events_of_dead_ones() {
    let kit = Kit::new();
    std::fs::create_dir_all(kit.ledger()).unwrap();
    let dead = kit.recorder("r1", "s1");
    dead.record(run_start()).unwrap();
    assert!(dead.finish(Duration::ZERO).unwrap().left_bytes > 0);
    // The database cannot be opened at first, and is tried again.
    let next = kit.recorder("r1", "s2");
    next.record(run_start()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    std::fs::remove_dir(kit.ledger()).unwrap();
    // The thread takes its time.
    let start = std::time::Instant::now();
    while kit.spool_files().len() > 1 && start.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(10));
    }
    next.record(run_end(RunStatus::Succeeded)).unwrap();
    next.finish(LIMIT).unwrap();
    assert_eq!(kit.number("SELECT count(*) FROM events"), 3);
    assert_eq!(kit.texts("SELECT status FROM runs"), ["FAILED"], "the worst status of its sources");
}

#[test]
fn beyond_the_limit_previews_are_dropped_and_decisions_are_not() {
    let kit = Kit::new();
    let mut options = kit.options("r1", "s1");
    options.limits = BacklogLimits { drop_previews_at: 4000, record_previews_below: 2000 };
    std::fs::create_dir_all(kit.ledger()).unwrap();
    let recorder = Recorder::start(options).unwrap();
    recorder.record(run_start()).unwrap();
    for number in 1..=100 {
        record_call(&recorder, Action::Allow, number);
    }
    std::fs::remove_dir(kit.ledger()).unwrap();
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    let finished = recorder.finish(LIMIT).unwrap();
    assert_eq!(finished.left_bytes, 0, "{finished:?}");
    assert!(finished.dropped_previews > 100, "{finished:?}");
    assert_eq!(kit.number("SELECT count(*) FROM tool_calls WHERE decision = 'ALLOW' AND status = 'OK'"), 100);
    let previews = kit.number("SELECT count(*) FROM previews");
    assert!((1..20).contains(&previews), "{previews}");
    let truncated = kit.number("SELECT count(*) FROM tool_calls WHERE preview_truncated = 1");
    assert!(truncated >= 100 - previews, "{truncated}");
}

#[test]
fn led_002_a_locked_database_delays_no_call_and_loses_no_decision() {
    let kit = Kit::new();
    let mut options = kit.options("r1", "s1");
    options.limits = BacklogLimits { drop_previews_at: 100_000, record_previews_below: 50_000 };
    counterproof_ledger::open_or_create(&LedgerLocation::SqliteFile(kit.ledger())).unwrap().close().unwrap();
    let other = Connection::open(kit.ledger()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let recorder = Recorder::start(options).unwrap();
    recorder.record(run_start()).unwrap();
    // The database is locked until all of this is recorded: a recorder that waited for it would never finish.
    for number in 1..=2000 {
        record_call(&recorder, if number % 2 == 0 { Action::Block } else { Action::Allow }, number);
    }
    other.execute_batch("ROLLBACK").unwrap();
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    let finished = recorder.finish(LIMIT).unwrap();
    assert_eq!((finished.events, finished.left_bytes), (6002, 0), "{finished:?}");
    assert!(finished.dropped_previews > 3000, "{finished:?}");
    assert_eq!(kit.number("SELECT count(*) FROM tool_calls WHERE decision = 'BLOCK' AND status = 'ERROR'"), 1000);
    assert_eq!(kit.number("SELECT count(*) FROM tool_calls WHERE decision = 'ALLOW' AND status = 'OK'"), 1000);
    let without = "NOT EXISTS (SELECT 1 FROM previews AS p WHERE p.call_id = t.call_id AND args_preview IS NOT NULL)";
    assert_eq!(
        kit.number(&format!("SELECT count(*) FROM tool_calls AS t WHERE {without} AND preview_truncated = 0")),
        0,
        "a dropped preview is marked"
    );
}

#[test]
fn a_ledger_that_is_removed_while_it_is_open_is_created_again() {
    let kit = Kit::new();
    let recorder = kit.recorder("r1", "s1");
    recorder.record(run_start()).unwrap();
    let start = Instant::now();
    let location = LedgerLocation::SqliteFile(kit.ledger());
    let has_event = || {
        counterproof_ledger::open(&location).is_ok_and(|mut store| !last_events(store.as_mut(), 1).unwrap().is_empty())
    };
    while !has_event() && start.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(5));
    }
    for suffix in ["", "-wal", "-shm"] {
        std::fs::remove_file(kit.path(&format!("state/ledger.db{suffix}"))).unwrap();
    }
    record_call(&recorder, Action::Block, 1);
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    assert_eq!(recorder.finish(LIMIT).unwrap().left_bytes, 0);
    assert_eq!(kit.texts("SELECT decision FROM tool_calls"), ["BLOCK"]);
}

#[test]
fn the_files_of_a_large_spool_are_emptied_while_the_process_lives() {
    let kit = Kit::new();
    let recorder = kit.recorder("r1", "s1");
    let spool = kit.path("state/ledger.db.spool").join(kit.spool_files().remove(0));
    let [start, ..] = call(Action::Allow, 1);
    let EventBody::ToolCallStart { call } = start else { panic!() };
    let mut written = 0;
    let begin = Instant::now();
    // 16 KiB each, twice the size from which on the file is emptied.
    while written < 2000 {
        let mut call = call.clone();
        call.preview.args_preview = Some("x".repeat(16 << 10));
        recorder.record(EventBody::ToolCallStart { call }).unwrap();
        written += 1;
    }
    while spool.metadata().unwrap().len() > 20 << 20 && begin.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(spool.metadata().unwrap().len() <= 20 << 20, "of 32 MiB that were written");
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    assert_eq!(recorder.finish(LIMIT).unwrap().left_bytes, 0);
    assert_eq!(kit.number("SELECT count(*) FROM events"), 2001);
    assert_eq!(kit.number("SELECT max(seq) FROM events"), 2001);
}

#[test]
fn an_id_that_cannot_be_a_key_is_refused() {
    let kit = Kit::new();
    for (run, shim) in [("", "s"), ("r", &"s".repeat(257)), ("a\0b", "s")] {
        let error = Recorder::start(kit.options(run, shim)).err().unwrap();
        assert!(matches!(error, RecordError::Id { .. }), "{error}");
    }
}

#[test]
fn without_a_ledger_the_file_of_events_is_the_only_copy() {
    let kit = Kit::new();
    let mut options = kit.options("r1", "s1");
    (options.ledger, options.events_file) = (None, Some(kit.path("events.jsonl")));
    let recorder = Recorder::start(options.clone()).unwrap();
    recorder.record(run_start()).unwrap();
    assert_eq!(recorder.finish(LIMIT).unwrap().events, 1);
    options.origin.source.shim_id = "s2".to_owned();
    let second = Recorder::start(options.clone()).unwrap();
    second.record(run_end(RunStatus::Succeeded)).unwrap();
    second.finish(LIMIT).unwrap();
    assert_eq!(std::fs::read_to_string(kit.path("events.jsonl")).unwrap().lines().count(), 2);
    assert!(!kit.ledger().exists());
    options.events_file = Some("/dev/full".into());
    let full = Recorder::start(options).unwrap();
    assert!(matches!(full.record(run_start()), Err(RecordError::EventsFile { .. })));
}

#[cfg(unix)]
#[test]
fn the_files_of_a_ledger_are_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let kit = Kit::new();
    let mut options = kit.options("r1", "s1");
    options.events_file = Some(kit.path("events.jsonl"));
    let recorder = Recorder::start(options).unwrap();
    recorder.record(run_start()).unwrap();
    let mode = |name: &str| kit.path(name).metadata().unwrap().permissions().mode() & 0o777;
    let spool = kit.spool_files().remove(0);
    assert_eq!(mode("state/ledger.db.spool"), 0o700);
    assert_eq!((mode(&format!("state/ledger.db.spool/{spool}")), mode("events.jsonl")), (0o600, 0o600));
    recorder.finish(LIMIT).unwrap();
    assert_eq!((mode("state"), mode("state/ledger.db")), (0o700, 0o600));
}
