//! Recovery after a power loss: the journal is on disk as far as it was synced, other files may be missing or torn.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{AssetKind, Case, Run, Sha256Digest, Side};
use counterproof_store::write::{self, Durability};
use counterproof_store::{ReopenError, RunReader, RunWriter};
use counterproof_validation::{Code, validate_path};
use serde_json::json;

use crate::kit::{answer_document, run_document};

const JOURNAL: &str = ".journal";
const CASES: usize = 12;

/// An unfinished run with twelve complete cases that have one asset each.
struct Running {
    directory: tempfile::TempDir,
    writer: RunWriter,
}

impl Running {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let out = Utf8Path::from_path(directory.path()).unwrap().join("runs");
        let writer = RunWriter::create(&out, Side::New, &"r1".parse().unwrap()).unwrap().with_journal().unwrap();
        let mut run = run_document();
        run["selected_case_ids"] = (0..CASES).map(|number| json!(format!("c{number}"))).collect();
        run.as_object_mut().unwrap().remove("stats");
        writer.write_run(&serde_json::from_value::<Run>(run).unwrap()).unwrap();
        for number in 0..CASES {
            let case = case(number);
            writer
                .write_asset(&asset(number), AssetKind::Other, Some(&case.case_id), asset(number).as_bytes())
                .unwrap();
            writer.write_case(&case).unwrap();
        }
        Self { directory, writer }
    }

    /// Copies the folder in its current state, as after a power loss.
    fn cut_off(&self) -> Utf8PathBuf {
        let copy = Utf8Path::from_path(self.directory.path()).unwrap().join("copies/new/r1");
        std::fs::create_dir_all(copy.join("assets")).unwrap();
        for name in files(self.writer.folder()).iter().filter(|name| *name != ".lock") {
            write::copy(&self.writer.folder().join(name), &copy.join(name), Durability::Cached).unwrap();
        }
        copy
    }
}

fn case(number: usize) -> Case {
    let mut document = answer_document();
    document["case_id"] = json!(format!("c{number}"));
    document["proposed_actions"] = json!([]);
    document["events"] = json!([]);
    serde_json::from_value(document).unwrap()
}

fn asset(number: usize) -> String {
    format!("c{number}.request.json")
}

fn files(folder: &Utf8Path) -> Vec<String> {
    let list = |folder: &Utf8Path| -> Vec<Utf8PathBuf> {
        folder.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).filter(|path| path.is_file()).collect()
    };
    let all = list(folder).into_iter().chain(list(&folder.join("assets")));
    let mut names: Vec<_> = all.map(|path| path.strip_prefix(folder).unwrap().to_string()).collect();
    names.sort();
    names
}

fn cut(file: &Utf8Path, length: usize) {
    let bytes = std::fs::read(file).unwrap();
    write::write(file, &bytes[..length], Durability::Cached).unwrap();
}

/// Counts the cases and the assets that are complete.
fn whole(folder: &Utf8Path) -> (usize, usize) {
    let reader = RunReader::open(folder).unwrap();
    let is_whole = |number: &usize| {
        let id = format!("c{number}").parse().unwrap();
        reader.read_case(&id).is_ok_and(|read| read == case(*number))
    };
    let has_asset = |number: &usize| {
        std::fs::read_to_string(folder.join("assets").join(asset(*number))).is_ok_and(|it| it == asset(*number))
    };
    ((0..CASES).filter(is_whole).count(), (0..CASES).filter(has_asset).count())
}

#[test]
fn lost_and_torn_files_are_restored_from_the_journal() {
    let running = Running::start();
    let folder = running.cut_off();
    for number in 0..CASES {
        let (artifact, asset) = (folder.join(format!("c{number}.json")), folder.join("assets").join(asset(number)));
        match number % 4 {
            // An empty file, a truncated file, missing files.
            0 => cut(&artifact, 0),
            1 => cut(&artifact, 40),
            2 => [&artifact, &asset].iter().for_each(|file| std::fs::remove_file(file).unwrap()),
            _ => cut(&asset, 3),
        }
    }
    assert_eq!(whole(&folder), (CASES / 4, CASES / 2));
    drop(RunWriter::reopen(folder.clone(), Side::New).unwrap());
    assert_eq!(whole(&folder), (CASES, CASES));
    assert!(!files(&folder).iter().any(|name| name.starts_with('.')), "{:?}", files(&folder));
}

#[test]
fn the_complete_records_of_a_torn_journal_are_restored() {
    let running = Running::start();
    let folder = running.cut_off();
    let journal = std::fs::read(folder.join(JOURNAL)).unwrap();
    for name in files(&folder).iter().filter(|name| *name != "run.json" && *name != JOURNAL) {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    let mut before = (0, 0);
    for cut in (0..=journal.len()).step_by(97).chain([journal.len()]) {
        write::write(&folder.join(JOURNAL), &journal[..cut], Durability::Cached).unwrap();
        drop(RunWriter::reopen(folder.clone(), Side::New).unwrap());
        let now = whole(&folder);
        // Never an artifact before its asset, and never fewer files from a longer journal.
        assert!(now.0 <= now.1 && now.0 >= before.0 && now.1 >= before.1, "{cut}: {now:?} after {before:?}");
        before = now;
    }
    assert_eq!(before, (CASES, CASES));
}

#[test]
fn the_journal_is_removed_at_the_end_of_a_run() {
    let running = Running::start();
    assert!(running.writer.folder().join(JOURNAL).exists());
    running.writer.finish().unwrap();
    assert!(!running.writer.folder().join(JOURNAL).exists());
    assert_eq!(whole(running.writer.folder()), (CASES, CASES));
}

#[test]
fn a_file_that_is_too_large_for_the_journal_is_not_in_it() {
    let running = Running::start();
    let before = running.writer.folder().join(JOURNAL).metadata().unwrap().len();
    let body = vec![b'x'; 300_000];
    running.writer.write_asset("large.bin", AssetKind::FullBody, None, &body).unwrap();
    let mut large = case(0);
    large.extra.insert("large".to_owned(), "y".repeat(300_000).into());
    running.writer.write_case(&large).unwrap();
    let folder = running.writer.folder();
    assert_eq!(folder.join(JOURNAL).metadata().unwrap().len(), before);
    assert_eq!(std::fs::read(folder.join("assets/large.bin")).unwrap(), body);
    assert!(folder.join("c0.json").metadata().unwrap().len() > 300_000);
}

#[test]
fn no_case_is_complete_after_a_file_that_cannot_be_written() {
    let running = Running::start();
    // A folder at the path of the asset.
    std::fs::create_dir(running.writer.folder().join("assets/late.txt")).unwrap();
    let late = case(CASES);
    // The error may be reported only with the next artifact.
    let _ = running.writer.write_asset("late.txt", AssetKind::Other, Some(&late.case_id), b"late");
    let error = running.writer.write_case(&late).unwrap_err();
    assert!(error.path.ends_with("assets/late.txt"), "{error}");
    assert!(running.writer.write_case(&case(CASES + 1)).is_err());
    running.writer.finish().unwrap();
    assert!(!running.writer.folder().join(format!("c{CASES}.json")).exists());
    assert_eq!(whole(running.writer.folder()), (CASES, CASES));
}

#[test]
fn a_journal_with_names_outside_of_a_run_is_rejected() {
    for name in [
        "../c0.json",
        "run.json",
        "evaluation.json",
        "assets/../c0.json",
        "assets/a/b.txt",
        "assets/x.html",
        "/c0.json",
    ] {
        let running = Running::start();
        let folder = running.cut_off();
        let digest = Sha256Digest::from_bytes(format!("{name}\nmine").as_bytes());
        let record = format!("{{\"file\":\"{name}\",\"bytes\":4,\"sha256\":\"{digest}\"}}\nmine\n");
        write::write(&folder.join(JOURNAL), record.as_bytes(), Durability::Cached).unwrap();
        let found = validate_path(&folder).unwrap().findings;
        assert_eq!(found.iter().map(|finding| finding.code).collect::<Vec<_>>(), [Code::Unreadable], "{name}");
        let refused = RunWriter::reopen(folder, Side::New);
        assert!(matches!(refused, Err(ReopenError::Read(_))), "{name}");
    }
}
