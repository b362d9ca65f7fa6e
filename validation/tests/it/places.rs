//! Validation of files, run folders and folder trees, including unrelated files, links, pipes and devices.

use std::time::{Duration, Instant};

use camino::Utf8Path;
use counterproof_artifact::{Manifest, Side};
use counterproof_store::RunReader;
use counterproof_store::write::{self, Durability};
use counterproof_validation::{Code, Report, RunFolder, validate_path};
use serde_json::json;

use crate::kit::{Kit, answer_document, run_document};

fn codes(report: &Report) -> Vec<Code> {
    report.findings.iter().map(|finding| finding.code).collect()
}

fn put(path: &Utf8Path, bytes: &[u8]) {
    write::create_folder(path.parent().unwrap()).unwrap();
    write::write(path, bytes, Durability::Cached).unwrap();
}

#[test]
fn each_document_can_be_validated_alone() {
    let kit = Kit::new();
    for name in
        ["run.json", "answer.json", "failed.json", "assets/manifest.json", "assets/failed.meta.json", "evaluation.json"]
    {
        let report = validate_path(&kit.path(name)).unwrap();
        assert_eq!((report.findings.as_slice(), report.files), (&[][..], 1), "{name}");
    }
    // A single file is validated against the other files of its run folder too.
    kit.set("answer.json", "/version", json!("baseline"));
    kit.remove("assets/snippets.json");
    let report = validate_path(&kit.path("answer.json")).unwrap();
    assert_eq!(codes(&report), [Code::SideDiffers, Code::AssetMissing]);
}

#[test]
fn a_file_that_is_named_explicitly_must_be_a_document() {
    let kit = Kit::new();
    let path = kit.root().join("package.json");
    put(&path, b"{\"name\": \"x\"}");
    assert!(codes(&validate_path(&path).unwrap()).contains(&Code::MissingField));
    put(&path, b"");
    assert_eq!(codes(&validate_path(&path).unwrap()), [Code::EmptyFile]);
}

#[test]
fn an_evaluation_in_a_run_folder_has_the_limit_of_large_files() {
    let kit = Kit::new();
    let path = kit.path("evaluation.json");
    #[expect(clippy::disallowed_methods, reason = "makes a sparse file, which takes no space")]
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    for validated in [kit.root(), &path] {
        let report = validate_path(validated).unwrap();
        let found = report.findings.iter().find(|finding| finding.code == Code::Unreadable).unwrap();
        assert_eq!(
            (&found.file, found.message.as_str()),
            (&path, "1073741825 bytes is more than the limit of 1073741824 bytes")
        );
    }
}

#[test]
fn a_tree_is_searched_for_run_folders_and_documents() {
    let kit = Kit::new();
    let root = kit.root();
    put(&root.join("package.json"), b"{\"name\": \"x\", \"schema_version\": \"invoice.v1\"}");
    put(&root.join("report/evaluation.json"), &std::fs::read(kit.path("evaluation.json")).unwrap());
    put(&root.join("report/later.json"), b"{\"schema_version\": \"run.v9\"}");
    // A report has copies of the shown artifacts, which are no whole run.
    put(&root.join("report/index.html"), b"<html>");
    put(&root.join("report/artifacts/new/run.json"), b"{");
    put(&root.join("broken.json"), b"{");
    put(&root.join(".git/x.json"), b"{");
    put(&root.join("node_modules/x.json"), b"{");
    put(&root.join(".tmp-abc.json"), b"{");
    put(&kit.path(".tmp-abc.json"), b"{");
    put(&kit.path("assets/.tmp-abc"), b"{");
    put(&root.join("notes.txt"), b"{");
    let report = validate_path(root).unwrap();
    assert_eq!(codes(&report), [Code::JsonSyntax, Code::UnknownSchemaVersion]);
    assert_eq!((report.files, report.runs, report.skipped), (9, 1, 1));
    assert!(report.findings.iter().all(|finding| finding.file.starts_with(root)));
}

#[test]
fn artifacts_without_their_run_document_are_reported_once() {
    let kit = Kit::new();
    kit.remove("run.json");
    let report = validate_path(kit.root()).unwrap();
    assert_eq!(codes(&report), [Code::RunFileMissing]);
    assert_eq!(report.findings[0].file, kit.path("run.json"));
}

#[cfg(unix)]
#[test]
fn a_copied_folder_may_have_another_name_outside_of_the_layout() {
    let kit = Kit::new();
    let elsewhere = kit.root().join("download");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&kit.folder, elsewhere.join("anything")).unwrap();
    for name in ["run.json", "answer.json", "failed.json"] {
        put(&elsewhere.join("copy").join(name), &std::fs::read(kit.path(name)).unwrap());
    }
    for entry in kit.path("assets").read_dir_utf8().unwrap() {
        let entry = entry.unwrap();
        put(&elsewhere.join("copy/assets").join(entry.file_name()), &std::fs::read(entry.path()).unwrap());
    }
    assert_eq!(codes(&validate_path(&elsewhere.join("copy")).unwrap()), []);
    assert_eq!(codes(&validate_path(&elsewhere.join("anything")).unwrap()), []);
}

#[test]
fn a_missing_path_is_an_error_and_not_a_finding() {
    let kit = Kit::new();
    let error = validate_path(&kit.root().join("none")).unwrap_err();
    assert_eq!(error.to_string(), format!("failed to read `{}`", kit.root().join("none")));
}

#[test]
fn a_byte_order_mark_is_reported_in_a_run_folder_in_a_tree_and_for_a_file() {
    let kit = Kit::new();
    let bytes = b"\xef\xbb\xbf{\"by\": \"hand\"}";
    kit.write("notes.json", bytes);
    put(&kit.root().join("tree/notes.json"), bytes);
    assert_eq!(codes(&kit.check()), [Code::ByteOrderMark]);
    assert_eq!(codes(&validate_path(&kit.root().join("tree")).unwrap()), [Code::ByteOrderMark]);
    assert!(codes(&validate_path(&kit.root().join("tree/notes.json")).unwrap()).contains(&Code::ByteOrderMark));
}

#[test]
fn other_json_files_in_a_run_folder_are_skipped() {
    let kit = Kit::new();
    kit.write("notes.json", b"{\"by\": \"hand\"}");
    let report = kit.check();
    assert_eq!((codes(&report), report.skipped), (vec![], 1));
}

#[cfg(unix)]
#[test]
fn files_that_cannot_be_read_are_reported_and_the_rest_is_checked() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    let kit = Kit::new();
    symlink("nowhere", kit.path("dangling.json")).unwrap();
    symlink("nowhere", kit.folder.as_std_path().join(OsStr::from_bytes(b"\xff.json"))).unwrap();
    kit.set("answer.json", "/version", json!("old"));
    let report = kit.check();
    assert_eq!(codes(&report), [Code::WrongValue, Code::Unreadable, Code::CaseNotSelected, Code::FileNameNotUtf8]);
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_out_of_the_folder_is_not_followed() {
    let kit = Kit::new();
    let secret = kit.root().join("secret.txt");
    put(&secret, b"[]");
    kit.remove("assets/snippets.json");
    std::os::unix::fs::symlink(&secret, kit.path("assets/snippets.json")).unwrap();
    let found = kit.found();
    let at = |file: &str, pointer: &str| (Code::HrefEscapes, file.to_owned(), pointer.to_owned());
    assert!(found.contains(&at("answer.json", "/events/2/snippets_asset_href")), "{found:#?}");
    assert!(found.contains(&at("assets/manifest.json", "/items/3/href")), "{found:#?}");
}

#[cfg(unix)]
#[test]
fn no_document_is_read_through_a_link_out_of_the_run_folder() {
    let elsewhere = Kit::new();
    let names =
        ["run.json", "answer.json", "assets/manifest.json", "assets/failed.meta.json", "evaluation.json", "extra.json"];
    for name in names {
        let kit = Kit::new();
        let secret = elsewhere.root().join("secret.json");
        put(&secret, b"{\"schema_version\": \"s3cret\", \"password\": s3cret}");
        let _ = std::fs::remove_file(kit.path(name));
        std::os::unix::fs::symlink(&secret, kit.path(name)).unwrap();
        let tree = kit.root().join("runs");
        for report in [kit.check(), validate_path(&tree).unwrap(), validate_path(&kit.path(name)).unwrap()] {
            let of_file: Vec<_> = report.findings.iter().filter(|it| it.file.as_str().ends_with(name)).collect();
            assert!(
                of_file.iter().any(|it| it.code == Code::HrefEscapes) || name.ends_with("meta.json"),
                "{report:#?}"
            );
            assert!(!format!("{report:?}").contains("s3cret"), "{name}: {report:#?}");
        }
        let reader = RunReader::open(&kit.folder);
        match name {
            "run.json" => assert!(reader.is_err()),
            "assets/manifest.json" => assert!(reader.unwrap().manifest().is_err()),
            "answer.json" => {
                let checked = RunFolder::new(&kit.folder, Side::New, None).read_case(&"answer".parse().unwrap());
                assert!(checked.case.is_none() && checked.bytes.is_empty() && checked.findings[0].excerpt.is_none());
            }
            _ => {}
        }
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_in_a_run_folder_do_not_block() {
    for name in ["run.json", "answer.json", "assets/manifest.json", "evaluation.json", "later.json"] {
        let kit = Kit::new();
        let _ = std::fs::remove_file(kit.path(name));
        assert!(std::process::Command::new("mkfifo").arg(kit.path(name)).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", kit.path("zero.json")).unwrap();
        for path in [kit.folder.clone(), kit.root().join("runs"), kit.path("failed.json"), kit.path(name)] {
            let report = validate_path(&path).unwrap();
            assert!(report.findings.iter().all(|it| !it.file.ends_with("zero.json") || it.code != Code::JsonSyntax));
        }
        assert!(kit.found().iter().any(|(code, file, _)| *code == Code::Unreadable && file == name), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn links_within_a_run_folder_and_to_the_run_folder_are_followed() {
    let kit = Kit::new();
    std::fs::create_dir(kit.path("stored")).unwrap();
    kit.write("stored/answer.json", &std::fs::read(kit.path("answer.json")).unwrap());
    kit.remove("answer.json");
    std::os::unix::fs::symlink("stored/answer.json", kit.path("answer.json")).unwrap();
    std::os::unix::fs::symlink(&kit.folder, kit.root().join("latest")).unwrap();
    assert_eq!(kit.found(), []);
    assert_eq!(codes(&validate_path(&kit.root().join("latest")).unwrap()), []);
    assert_eq!(codes(&validate_path(&kit.root().join("latest/answer.json")).unwrap()), []);
    assert!(RunReader::open(&kit.root().join("latest")).is_ok());
}

#[test]
fn the_latest_run_is_found_by_its_time_and_broken_ones_are_reported() {
    let kit = Kit::new();
    let put_run = |id: &str, at: &str| {
        let mut run = run_document();
        (run["run_id"], run["generated_at"]) = (json!(id), json!(at));
        put(&kit.root().join(format!("runs/new/{id}/run.json")), run.to_string().as_bytes());
    };
    let out = kit.root().join("runs");
    let latest = || RunReader::open_latest(&out, Side::New).unwrap().run().run_id.to_string();
    put_run("half", "2026-01-31T12:00:00.5Z");
    assert_eq!(latest(), "half", "half a second is later than no fraction");
    put_run("offset", "2026-01-31T13:30:00+02:00");
    assert_eq!(latest(), "half", "half past eleven in UTC");
    put_run("words", "yesterday");
    put_run("local", "2026-02-01T00:00:00");
    assert_eq!(latest(), "local");
    put(&out.join("new/torn/run.json"), b"{");
    let found = RunReader::latest(&out, Side::New).unwrap();
    assert_eq!((found.run.run().run_id.as_str(), found.skipped.len()), ("local", 1));
    assert!(found.skipped[0].to_string().contains("torn"), "{}", found.skipped[0]);
}

#[test]
fn the_latest_run_comes_with_its_repeats_and_the_other_complete_runs() {
    let kit = Kit::new();
    let put_run = |folder: &str, id: &str, day: u8, more: serde_json::Value| {
        let mut run = run_document();
        (run["run_id"], run["generated_at"]) = (json!(id), json!(format!("2026-01-{day:02}T12:00:00Z")));
        run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        put(&kit.root().join(format!("nights/new/{folder}/run.json")), run.to_string().as_bytes());
    };
    let group = || json!({"group_id": "g"});
    put_run("g-r1", "g-r1", 2, group());
    put_run("old", "old", 1, json!({}));
    put_run("g-r2", "g-r2", 3, group());
    put_run(
        "part",
        "part",
        4,
        json!({"group_id": "g", "shard": {"run_id": "g-r3", "index": 1, "count": 2, "cases_total": 2, "positions": [0]}}),
    );
    put_run("h-r1", "h-r1", 4, json!({"group_id": "h"}));
    put_run("copy", "g-r3", 5, group());
    put_run("g-r3", "g-r3", 5, group());
    let found = RunReader::latest(&kit.root().join("nights"), Side::New).unwrap();
    let names = |runs: &[RunReader]| runs.iter().map(|run| run.run().run_id.to_string()).collect::<Vec<_>>();
    assert_eq!(found.run.run().run_id.as_str(), "g-r3");
    assert_eq!(names(&found.repeats), ["g-r1", "g-r2"]);
    assert_eq!(names(&found.others), ["old", "h-r1", "g-r3"], "a copy of a run is not a repeat");
}

#[test]
fn two_hundred_megabytes_of_brackets_are_rejected_quickly() {
    let kit = Kit::new();
    kit.write("answer.json", &vec![b'['; 200 << 20]);
    let start = Instant::now();
    let report = kit.check();
    assert_eq!(codes(&report), [Code::JsonTooDeep]);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn the_order_of_findings_is_deterministic() {
    let kit = Kit::new();
    for index in 0..40 {
        let mut document = answer_document();
        document["case_id"] = json!(format!("case-{index}"));
        document["status"] = json!("lost");
        kit.write(&format!("case-{index}.json"), document.to_string().as_bytes());
    }
    let first = kit.found();
    assert!(first.len() >= 80);
    assert_eq!(first, kit.found());
    let files: Vec<&String> = first.iter().map(|(_, file, _)| file).collect();
    assert!(files.is_sorted(), "{files:?}");
}

#[test]
fn a_single_artifact_is_read_and_checked_with_its_assets() {
    let kit = Kit::new();
    let reader = RunReader::open(&kit.folder).unwrap();
    let manifest: Option<Manifest> = reader.manifest().unwrap();
    let folder = RunFolder::new(&kit.folder, Side::New, manifest.as_ref());
    for id in reader.case_ids_on_disk().unwrap() {
        let checked = folder.read_case(&id);
        assert_eq!(checked.findings, []);
        assert!(checked.case.is_some_and(|case| case.case_id == id));
        assert_eq!(checked.bytes, std::fs::read(kit.path(&format!("{id}.json"))).unwrap());
    }
    let answer = "answer".parse().unwrap();
    let codes_of = |side| {
        let findings = RunFolder::new(&kit.folder, side, manifest.as_ref()).read_case(&answer).findings;
        findings.into_iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    assert_eq!(codes_of(Side::Baseline), [Code::SideDiffers]);
    kit.write("assets/payload.json", b"{\"rows\": 2}");
    // One finding each for the evidence ref, the digest in the artifact, and the digest in the manifest.
    let codes = [Code::EvidenceUnresolved, Code::AssetDigestDiffers, Code::AssetDigestDiffers];
    assert_eq!(codes_of(Side::New), codes);
    kit.remove("answer.json");
    assert_eq!(codes_of(Side::New), [Code::CaseFileMissing]);
}
