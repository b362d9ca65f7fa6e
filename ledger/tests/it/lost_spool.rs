//! Spool files that other programs remove, shorten or extend, and disks that are full.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_ledger::event::{Action, RunStatus};
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::query::incomplete_sources;
use counterproof_ledger::recorder::RecordError;
use counterproof_ledger::spool::{SpoolFolder, SpoolReplay, replay};
use counterproof_store::write::{Durability, write};

use crate::kit::{Kit, LIMIT, record_call, run_end, run_start};

fn spool(kit: &Kit) -> Utf8PathBuf {
    kit.path("state/ledger.db.spool")
}

/// Opens a file as another program does.
fn open_to_append(path: &Utf8Path) -> File {
    #[expect(clippy::disallowed_methods, reason = "what other programs do to a file")]
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.unwrap()
}

fn spool_file(kit: &Kit) -> Utf8PathBuf {
    spool(kit).join(kit.spool_files().remove(0))
}

/// Makes the database unusable: a folder is in place of its file.
fn block(kit: &Kit) {
    fs::create_dir_all(kit.ledger()).unwrap();
}

fn replay_all(kit: &Kit) -> SpoolReplay {
    fs::remove_dir(kit.ledger()).unwrap();
    let mut store = counterproof_ledger::open_or_create(&LedgerLocation::SqliteFile(kit.ledger())).unwrap();
    replay(&SpoolFolder::new(spool(kit)), store.as_mut()).unwrap()
}

/// Removes a folder in which the thread of a recorder may create files meanwhile.
fn remove_folder(folder: &Utf8Path) {
    repeat(|| fs::remove_dir_all(folder).is_ok() || !folder.exists());
}

/// Tries until it works. Only a failing test tries often.
fn repeat(mut attempt: impl FnMut() -> bool) {
    assert!((0..10_000).any(|_| attempt()), "it did not work");
}

#[test]
fn events_after_the_ledger_and_its_spool_are_removed_are_in_a_new_ledger() {
    let kit = Kit::new();
    let recorder = kit.recorder("r1", "s1");
    recorder.record(run_start()).unwrap();
    remove_folder(&kit.path("state"));
    record_call(&recorder, Action::Block, 1);
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    let finished = recorder.finish(LIMIT).unwrap();
    assert_eq!((finished.events, finished.left_bytes), (5, 0), "{finished:?}");
    assert_eq!(kit.texts("SELECT decision FROM tool_calls"), ["BLOCK"]);
    assert!(kit.spool_files().is_empty());
}

#[test]
fn a_recorder_whose_spool_is_removed_before_its_end_ends_at_once() {
    let kit = Kit::new();
    let recorder = kit.recorder("r1", "s1");
    recorder.record(run_start()).unwrap();
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    remove_folder(&spool(&kit));
    let finished = recorder.finish(LIMIT).unwrap();
    assert_eq!((finished.left_bytes, finished.store_error), (0, None));
    assert_eq!(kit.number("SELECT count(*) FROM events"), 2);
}

#[test]
fn a_spool_that_is_removed_is_created_again_with_the_events_that_wait() {
    let kit = Kit::new();
    block(&kit);
    let recorder = kit.recorder("r1", "s1");
    recorder.record(run_start()).unwrap();
    remove_folder(&spool(&kit));
    record_call(&recorder, Action::Block, 1);
    let file = spool_file(&kit);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 4);
    assert!(SpoolFolder::new(spool(&kit)).is_alive(&crate::kit::source("r1", "s1")), "it is locked");
    // Also after the last event.
    fs::remove_file(&file).unwrap();
    let finished = recorder.finish(Duration::ZERO).unwrap();
    assert_eq!(finished.left_in, Some(file));
    let replayed = replay_all(&kit);
    assert_eq!((replayed.added, replayed.rejected), (4, 0), "{replayed:?}");
}

#[test]
fn an_event_that_cannot_be_recorded_has_a_number_and_the_next_one_states_the_loss() {
    let kit = Kit::new();
    let recorder = kit.recorder("r1", "s1");
    recorder.record(run_start()).unwrap();
    // The thread of the recorder may create the folder again before the file has its place.
    repeat(|| {
        remove_folder(&kit.path("state"));
        write(&kit.path("state"), b"a file in place of the folder", Durability::Cached).is_ok()
    });
    for _ in 0..2 {
        assert!(matches!(recorder.record(run_start()), Err(RecordError::Spool(_))));
    }
    fs::remove_file(kit.path("state")).unwrap();
    record_call(&recorder, Action::Allow, 1);
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    assert_eq!(recorder.finish(LIMIT).unwrap().left_bytes, 0);
    assert_eq!(
        kit.texts("SELECT CAST(seq AS TEXT) FROM events WHERE type <> 'run_start' ORDER BY seq"),
        ["4", "5", "6", "7", "8"]
    );
    let health = kit.texts("SELECT line FROM events WHERE type = 'shim_health'").remove(0);
    assert!(health.contains("\"events_lost\"") && health.contains("events that were not recorded: 2 ("), "{health}");
    let mut store = counterproof_ledger::open(&LedgerLocation::SqliteFile(kit.ledger())).unwrap();
    assert_eq!(incomplete_sources(store.as_mut()).unwrap().len(), 1);
}

#[test]
fn events_after_a_spool_was_truncated_are_stored_and_the_loss_is_stated() {
    let kit = Kit::new();
    block(&kit);
    let recorder = kit.recorder("r1", "s1");
    recorder.record(run_start()).unwrap();
    record_call(&recorder, Action::Allow, 1);
    let file = spool_file(&kit);
    // In the middle of the second event.
    let text = fs::read_to_string(&file).unwrap();
    let cut = text.find('\n').unwrap() + 10;
    open_to_append(&file).set_len(cut as u64).unwrap();
    record_call(&recorder, Action::Block, 2);
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    fs::remove_dir(kit.ledger()).unwrap();
    assert_eq!(recorder.finish(LIMIT).unwrap().left_bytes, 0);
    assert_eq!(kit.texts("SELECT decision FROM tool_calls"), ["BLOCK"]);
    let health = kit.texts("SELECT line FROM events WHERE type = 'shim_health'").remove(0);
    let expected = format!("before the ledger had them: {}", text.len() - cut);
    assert!(health.contains(&expected), "{expected}: {health}");
    let rejected = fs::read_to_string(format!("{file}.rejected")).unwrap();
    assert_eq!(rejected, format!("{}\n", &text[cut - 9..cut]), "what is left of a line is set aside");
}

#[test]
fn bytes_that_are_cut_off_after_the_last_event_are_lost_and_not_left() {
    let kit = Kit::new();
    block(&kit);
    let recorder = kit.recorder("r1", "s1");
    recorder.record(run_start()).unwrap();
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    let file = spool_file(&kit);
    let text = fs::read_to_string(&file).unwrap();
    let kept = text.find('\n').unwrap() + 1;
    open_to_append(&file).set_len(kept as u64).unwrap();
    let finished = recorder.finish(Duration::ZERO).unwrap();
    assert_eq!(finished.cut_off_bytes, (text.len() - kept) as u64, "{finished:?}");
    // With the line end that separates what follows.
    assert_eq!((finished.left_bytes, finished.left_in), (kept as u64 + 1, Some(file)));
    assert_eq!(replay_all(&kit).added, 1);
}

#[test]
fn lines_of_other_programs_in_a_spool_are_set_aside() {
    let kit = Kit::new();
    let recorder = kit.recorder("r1", "s1");
    recorder.record(run_start()).unwrap();
    let file = spool_file(&kit);
    open_to_append(&file).write_all(b"not an event").unwrap();
    record_call(&recorder, Action::Block, 1);
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    let finished = recorder.finish(LIMIT).unwrap();
    assert_eq!(finished.left_bytes, 0, "{finished:?}");
    assert_eq!(kit.texts("SELECT decision FROM tool_calls"), ["BLOCK"]);
    assert_eq!(fs::read_to_string(format!("{file}.rejected")).unwrap(), "not an event\n");
}

/// Names the folder of the file system that [`recording_on_a_full_disk`] fills.
const SMALL: &str = "COUNTERPROOF_TEST_SMALL_DISK";

/// Records on a disk that becomes full. Does nothing as a normal test.
#[test]
fn recording_on_a_full_disk() {
    let Ok(folder) = std::env::var(SMALL) else { return };
    let kit = Kit::at(folder.as_ref());
    let recorder = kit.recorder("r1", "s1");
    recorder.record(run_start()).unwrap();
    let filler = kit.path("filler");
    // Smaller and smaller pieces, until not one byte is left.
    let mut file = open_to_append(&filler);
    for size in [65536, 4096, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
    let mut failed = 0_u64;
    for number in 1..=50 {
        for body in crate::kit::call(Action::Allow, number) {
            failed += u64::from(recorder.record(body).is_err());
        }
    }
    assert!(failed > 0, "a page of the file takes some events, and not all");
    drop(file);
    fs::remove_file(&filler).unwrap();
    record_call(&recorder, Action::Block, 51);
    recorder.record(run_end(RunStatus::Succeeded)).unwrap();
    let finished = recorder.finish(LIMIT).unwrap();
    // An event that states a loss for each row of losses. There may be several: the thread of the recorder moves events meanwhile, and
    // a database that fails frees the space of its log when it is closed, into which the next events fit.
    let health = kit.texts("SELECT line FROM events WHERE type = 'shim_health'");
    let stated = health.len() as u64;
    assert_eq!((finished.events, finished.left_bytes), (155 - failed + stated, 0), "{finished:?}");
    assert_eq!(kit.number("SELECT max(seq) FROM events").unsigned_abs(), 155 + stated);
    let lost = |line: &String| {
        let (_, rest) = line.split_once("events that were not recorded: ").unwrap();
        let (count, reason) = rest.split_once(" (").unwrap();
        assert!(reason.contains("No space left"), "{line}");
        count.parse::<u64>().unwrap()
    };
    assert_eq!(health.iter().map(lost).sum::<u64>(), failed, "{health:?}");
    let mut store = counterproof_ledger::open(&LedgerLocation::SqliteFile(kit.ledger())).unwrap();
    assert_eq!(incomplete_sources(store.as_mut()).unwrap().len(), 1);
    assert!(!kit.spool_files().iter().any(|name| name.ends_with(".rejected")), "{:?}", kit.spool_files());
    println!("\nrecorded on a full disk");
}

/// The file system disappears with the process.
#[cfg(target_os = "linux")]
#[test]
fn what_fits_on_a_full_disk_is_recorded_and_the_rest_is_counted() {
    let kit = Kit::new();
    fs::create_dir(kit.path("small")).unwrap();
    let script = "mount -t tmpfs -o size=1m none \"$0\" || exit 99; exec \"$@\"";
    let test = std::env::current_exe().unwrap();
    let output = std::process::Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script, kit.path("small").as_str()])
        .arg(test)
        .args(["lost_spool::recording_on_a_full_disk", "--exact", "--nocapture"])
        .env(SMALL, kit.path("small"))
        .output();
    let Ok(output) = output else { return };
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(99) || said.contains("unshare:") {
        println!("skipped: a file system may not be mounted here: {said}");
        return;
    }
    assert!(output.status.success() && said.contains("recorded on a full disk"), "{said}");
}
