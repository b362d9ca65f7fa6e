//! Bundles of sessions that are not as this program writes them.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_contracts::process::Cancellation;
use counterproof_ledger::location::LedgerLocation;
use counterproof_sessions::event::{Checkpoint, CheckpointState, EventBody, SessionEvent};
use counterproof_sessions::recorder::SessionSpool;
use counterproof_sessions::session::{Coverage, Origin, SessionHead, SessionStatus};
use counterproof_sessions::store::{SessionStore, redactor};
use counterproof_store::write::write_new;
use counterproof_workflow::run::{BundleError, Control, Home, bundle, read_bundle};
use counterproof_workspace::{Start, WorkspaceStore};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{Repository, git_options, supervisor};

type Entries = Vec<(&'static str, tar::EntryType, Vec<u8>)>;

struct Kit {
    folder: TempDir,
    home: Home,
    /// Those of a bundle that is whole.
    entries: Entries,
}

fn store(path: Utf8PathBuf) -> SessionStore {
    SessionStore::new(counterproof_ledger::open_or_create(&LedgerLocation::SqliteFile(path)).unwrap()).unwrap()
}

/// Returns the state of a run that has begun.
fn tool_state(start: &Start) -> Value {
    let model = json!({"url": "http://127.0.0.1:9/v1", "name": "m", "is_streaming": true});
    let settings = json!({
        "workflow": "implement_feature", "source": "/repo", "target_files": [], "examples": [], "model": model,
        "forge": "local", "command_timeout": 60.0, "limits": {"iterations": 5}, "checkpoint_every": 1,
        "include_ignored": [], "max_snapshot_bytes": 1_000_000, "sandbox": "auto",
    });
    let base = json!({
        "repository": start.repository, "commit": start.commit, "branch": "main", "author": start.author,
    });
    json!({
        "settings": settings, "base": base, "phase": "edit", "target_files": [],
        "spent": {"requests": 0, "answers": 0, "tokens": 0}, "red_checks": 0, "pending": [], "is_running": false,
        "is_linted": false, "checks": {"flaky": [], "tests_added": 0}, "publication": {"branch": "b", "commits": []},
    })
}

impl Kit {
    fn new() -> Self {
        let repository = Repository::new();
        let commit = repository.commit("a.txt", "a");
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| Utf8Path::from_path(folder.path()).unwrap().join(name);
        let workspaces = WorkspaceStore::new(path("source"), git_options());
        let start = workspaces.import(repository.path().as_str(), None).unwrap();
        let objects = path("objects");
        workspaces.open(&start.repository).unwrap().bundle(&[commit], &objects).unwrap();
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        let head = SessionHead {
            session_id: "s".to_owned(),
            title: None,
            origin: Origin::Workflow,
            workflow: None,
            status: SessionStatus::Paused,
            started_at: at,
            ended_at: None,
            parent: None,
            coverage: Coverage::default(),
        };
        let state = CheckpointState {
            message_history: vec![json!({"role": "user", "content": "x"})],
            current_step: "edit".into(),
            workspace: json!({
                "repository": start.repository, "base": start.commit, "commit": start.commit, "tree": start.commit,
                "empty_folders": [], "include_ignored": [], "left_out": [],
            }),
            tool_state: tool_state(&start),
        };
        let checkpoint = Checkpoint { checkpoint_id: "c".into(), state, resumable: true, reason: None };
        let mut source = store(path("source.db"));
        let events = vec![SessionEvent::reconstructed("1", at, EventBody::Checkpoint(checkpoint))];
        source.import(&head, events, redactor(Origin::Workflow, &[].into()).unwrap()).unwrap();
        let manifest = json!({
            "format": "counterproof-session.v1", "session_id": "s", "checkpoint_id": "c", "repository": start.repository,
        });
        let entries = vec![
            ("manifest.json", tar::EntryType::Regular, manifest.to_string().into_bytes()),
            ("session.json", tar::EntryType::Regular, source.archive("s", u64::MAX).unwrap()),
            ("objects.bundle", tar::EntryType::Regular, std::fs::read(objects).unwrap()),
        ];
        let home = Home {
            ledger: LedgerLocation::SqliteFile(path("other.db")),
            spool: SessionSpool::new(&path("spool")),
            folder: path("home"),
        };
        Self { folder, home, entries }
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join(name)
    }

    fn unbundle(&self, entries: &Entries) -> Result<String, BundleError> {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, kind, bytes) in entries {
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(*kind);
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, name, bytes.as_slice()).unwrap();
        }
        let path = self.path("bundle");
        let _ = std::fs::remove_file(&path);
        write_new(&path, &archive.into_inner().unwrap()).unwrap();
        read_bundle(&path)?.add(&self.home, &mut store(self.path("other.db")), &control())
    }

    /// Replaces a text in an entry.
    fn changed(&self, entry: usize, from: &str, to: &str) -> Entries {
        let mut entries = self.entries.clone();
        let text = String::from_utf8(entries[entry].2.clone()).unwrap();
        assert!(text.contains(from), "{text}");
        entries[entry].2 = text.replace(from, to).into_bytes();
        entries
    }
}

fn control() -> Control<'static> {
    Control {
        cancel: Cancellation::default(),
        takes_pause: Box::new(|_| false),
        progress: Box::new(|_| {}),
        supervisor: Some(supervisor()),
    }
}

#[test]
fn a_bundle_that_is_not_one_session_is_refused_before_anything_is_stored() {
    let kit = Kit::new();
    let mut link = kit.entries.clone();
    link[2].1 = tar::EntryType::Symlink;
    let mut sparse = kit.entries.clone();
    sparse[2].1 = tar::EntryType::GNUSparse;
    let mut renamed = kit.entries.clone();
    renamed.insert(0, ("././@LongLink", tar::EntryType::GNULongName, b"manifest.json".to_vec()));
    let mut large = kit.entries.clone();
    large[0].2.extend(vec![b' '; 1 << 20]);
    for (entries, reason) in [
        (link, "an entry is not a file"),
        (sparse, "an entry is not a file"),
        (renamed, "it has an unknown entry"),
        (large, "an entry is too large"),
        (kit.entries[..2].to_vec(), "an entry is missing"),
        (kit.changed(0, "\"s\"", "\"t\""), "its records are not those of its checkpoint"),
        (kit.changed(0, "\"c\"", "\"d\""), "its records are not those of its checkpoint"),
        (kit.changed(1, "\"session_id\":\"s\"", "\"session_id\":\"t\""), "its records are not those of its checkpoint"),
    ] {
        let error = kit.unbundle(&entries).unwrap_err();
        assert!(matches!(&error, BundleError::Format { reason: found, .. } if found == reason), "{reason}: {error}");
    }
    // A text that would take the place of another one.
    let other = kit.changed(1, "\\\"content\\\":\\\"x\\\"", "\\\"content\\\":\\\"y\\\"");
    assert!(matches!(kit.unbundle(&other), Err(BundleError::Archive(_))));
    assert!(!kit.home.folder.exists());
    assert_eq!(store(kit.path("other.db")).find("s").unwrap(), None);
    assert_eq!(kit.unbundle(&kit.entries).unwrap(), "c");
    // A file that exists is not replaced.
    let path = kit.path("bundle");
    let before = std::fs::read(&path).unwrap();
    let bundled = bundle(&kit.home, &mut store(kit.path("other.db")), "c", &path, &control());
    assert!(matches!(bundled, Err(BundleError::Exists(_))), "{bundled:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    bundle(&kit.home, &mut store(kit.path("other.db")), "c", &kit.path("new"), &control()).unwrap();
    assert!(store(kit.path("other.db")).checkpoint("c").unwrap().is_some());
}
