//! A fixture for every rule: each one breaks a valid run folder in one way.

use std::collections::BTreeSet;

use counterproof_artifact::Sha256Digest;
use counterproof_validation::Code;
use serde_json::{Value, json};

use crate::kit::Kit;

/// One way to break a run folder.
struct Break {
    purpose: &'static str,
    apply: fn(&Kit),
    code: Code,
    file: &'static str,
    pointer: &'static str,
}

/// Links an artifact to a stored request.
fn request(kit: &Kit, file: &str, href: Value) {
    kit.edit(file, |document| document["request_asset_href"] = href);
}

#[rustfmt::skip]
#[expect(clippy::too_many_lines, reason = "a table")]
fn breaks() -> Vec<Break> {
    let at = |code, purpose, file, pointer, apply| Break { purpose, apply, code, file, pointer };
    let action = "/proposed_actions/0";
    let failure = "/runner_failure";
    vec![
        // The file.
        at(Code::EmptyFile, "a file torn at its first byte", "answer.json", "", |kit| kit.write("answer.json", b"")),
        at(Code::NotUtf8, "a body saved in Latin-1", "answer.json", "", |kit| kit.write("answer.json", b"{\"a\": \"\xe9\"}")),
        at(Code::ByteOrderMark, "a file saved by an editor that adds a mark", "answer.json", "", |kit| {
            let bytes = std::fs::read(kit.path("answer.json")).unwrap();
            kit.write("answer.json", &[b"\xef\xbb\xbf", &bytes[..]].concat());
        }),
        at(Code::JsonSyntax, "a file torn in the middle", "answer.json", "", |kit| {
            let bytes = std::fs::read(kit.path("answer.json")).unwrap();
            kit.write("answer.json", &bytes[..bytes.len() / 2]);
        }),
        at(Code::JsonTooDeep, "a payload nested to exhaust a reader", "answer.json", "", |kit| kit.write("answer.json", &[b'['; 500])),
        at(Code::DuplicateKey, "two readers that see two statuses", "failed.json", "/status", |kit| {
            let text = std::fs::read_to_string(kit.path("failed.json")).unwrap();
            kit.write("failed.json", text.replacen("\"status\"", "\"status\": \"ok\",\n  \"status\"", 1).as_bytes());
        }),
        // Which document.
        at(Code::OlderFormat, "an artifact from before the contract had versions", "answer.json", "", |kit| {
            kit.edit("answer.json", |document| {
                let fields = document.as_object_mut().unwrap();
                fields.remove("schema_version");
                fields.remove("status");
            });
        }),
        at(Code::UnknownSchemaVersion, "an artifact of a later contract", "answer.json", "/schema_version", |kit| kit.set("answer.json", "/schema_version", json!("case.v2"))),
        at(Code::WrongDocument, "a manifest at the path of an artifact", "answer.json", "/schema_version", |kit| {
            let manifest = std::fs::read(kit.path("assets/manifest.json")).unwrap();
            kit.write("answer.json", &manifest);
        }),
        // The schema.
        at(Code::MissingField, "an action without its params", "answer.json", action, |kit| kit.edit("answer.json", |document| {
            document["proposed_actions"][0].as_object_mut().unwrap().remove("params");
        })),
        at(Code::UnexpectedField, "an evidence ref with two identifiers", "answer.json", "/proposed_actions/0/evidence_refs/0/id", |kit| {
            kit.set("answer.json", "/proposed_actions/0/evidence_refs/0", json!({"kind": "tool_result", "call_id": "c1", "id": "x"}));
        }),
        at(Code::WrongType, "null where the contract does not allow it", "answer.json", "/workflow_id", |kit| kit.set("answer.json", "/workflow_id", Value::Null)),
        at(Code::WrongValue, "an unknown risk level", "answer.json", "/proposed_actions/0/risk_level", |kit| {
            kit.set("answer.json", "/proposed_actions/0/risk_level", json!("critical"));
        }),
        at(Code::WrongValue, "metadata that deny the truncation", "assets/failed.meta.json", "/truncated", |kit| {
            kit.edit("assets/failed.meta.json", |meta| meta["bytes_total"] = json!(9));
            refresh_manifest(kit);
        }),
        // Ids and names.
        at(Code::UnsafeCaseId, "an id that leaves the folder", "run.json", "/selected_case_ids/2", |kit| select(kit, "../x")),
        at(Code::UnsafeRunId, "an id that is a device on Windows", "run.json", "/run_id", |kit| kit.set("run.json", "/run_id", json!("con"))),
        at(Code::FileNameDiffers, "a renamed artifact", "answer.json", "/case_id", |kit| kit.set("answer.json", "/case_id", json!("other"))),
        at(Code::SideDiffers, "a baseline artifact in a new run", "answer.json", "/version", |kit| kit.set("answer.json", "/version", json!("baseline"))),
        at(Code::SideDiffers, "an asset listed for the other side", "assets/manifest.json", "/items/0/side", |kit| {
            kit.set("assets/manifest.json", "/items/0/side", json!("baseline"));
        }),
        at(Code::RunIdDiffers, "a renamed run folder", "run.json", "/run_id", |kit| kit.set("run.json", "/run_id", json!("r2"))),
        at(Code::CaseIdDiffers, "metadata of another case's body", "assets/failed.meta.json", "/case_id", |kit| {
            kit.set("assets/failed.meta.json", "/case_id", json!("other"));
            refresh_manifest(kit);
        }),
        at(Code::DuplicateCaseId, "two ids that name one file on Windows and macOS", "run.json", "/selected_case_ids/2", |kit| select(kit, "ANSWER")),
        at(Code::BadTimestamp, "a date in words", "run.json", "/generated_at", |kit| kit.set("run.json", "/generated_at", json!("yesterday"))),
        // Links.
        at(Code::AbsolutePath, "an absolute path of the cases file", "run.json", "/cases_path", |kit| kit.set("run.json", "/cases_path", json!("/Users/me/cases.json"))),
        at(Code::AbsolutePath, "an absolute path as it was passed", "run.json", "/cases_path_as_passed", |kit| kit.set("run.json", "/cases_path_as_passed", json!("C:\\cases.json"))),
        at(Code::AbsolutePath, "a body outside of the folder", "failed.json", "/runner_failure/full_body_saved_to", |kit| {
            kit.set("failed.json", "/runner_failure/full_body_saved_to", json!("C:\\body.txt"));
        }),
        at(Code::HrefEscapes, "an href that leaves the folder", "answer.json", "/events/2/snippets_asset_href", |kit| {
            kit.set("answer.json", "/events/2/snippets_asset_href", json!("assets/../../../../etc/passwd"));
        }),
        at(Code::HrefNotPortable, "an href with backslashes", "answer.json", "/events/2/snippets_asset_href", |kit| {
            kit.set("answer.json", "/events/2/snippets_asset_href", json!("assets\\snippets.json"));
        }),
        at(Code::HrefOutsideAssets, "an href to the run document", "answer.json", "/events/2/snippets_asset_href", |kit| {
            kit.set("answer.json", "/events/2/snippets_asset_href", json!("run.json"));
        }),
        at(Code::AssetMissing, "an artifact without its payload", "answer.json", "/events/1/payload_asset_href", |kit| {
            kit.remove("assets/payload.json");
        }),
        at(Code::HrefEscapes, "a request outside of the folder", "answer.json", "/request_asset_href", |kit| request(kit, "answer.json", json!("../../x"))),
        at(Code::HrefNotPortable, "a request that is a script", "answer.json", "/request_asset_href", |kit| request(kit, "answer.json", json!("javascript:alert(1)"))),
        at(Code::HrefEscapes, "a request at another host", "failed.json", "/request_asset_href", |kit| request(kit, "failed.json", json!("https://example.com/x"))),
        at(Code::AbsolutePath, "a request at an absolute path", "failed.json", "/request_asset_href", |kit| request(kit, "failed.json", json!("/etc/passwd"))),
        at(Code::HrefOutsideAssets, "the run document as the request", "answer.json", "/request_asset_href", |kit| request(kit, "answer.json", json!("run.json"))),
        at(Code::AssetMissing, "an artifact without its request", "failed.json", "/request_asset_href", |kit| request(kit, "failed.json", json!("assets/gone.request.json"))),
        at(Code::WrongType, "a request within the artifact", "answer.json", "/request_asset_href", |kit| request(kit, "answer.json", json!({"body": {}}))),
        at(Code::AssetSizeDiffers, "a body that was truncated after the run", "assets/manifest.json", "/items/0/size_bytes", |kit| kit.write("assets/failed.body.txt", b"oo")),
        at(Code::AssetDigestDiffers, "a body that was changed after the run", "assets/manifest.json", "/items/0/sha256", |kit| kit.write("assets/failed.body.txt", b"fine")),
        at(Code::AssetDigestDiffers, "a payload with another digest than in the artifact", "answer.json", "/events/1/payload_asset_sha256", |kit| {
            kit.set("answer.json", "/events/1/payload_asset_sha256", json!("0".repeat(64)));
        }),
        // Within an artifact.
        at(Code::DuplicateCallId, "a call recorded twice", "answer.json", "/events/5/call_id", |kit| repeat(kit, "events")),
        at(Code::DuplicateActionId, "an action proposed twice", "answer.json", "/proposed_actions/1/action_id", |kit| repeat(kit, "proposed_actions")),
        at(Code::ResultWithoutCall, "a result without a call", "answer.json", "/events/1/call_id", |kit| kit.set("answer.json", "/events/0/call_id", json!("c9"))),
        at(Code::EvidenceUnresolved, "a ref to a call that does not exist", "answer.json", "/proposed_actions/0/evidence_refs/0/call_id", |kit| {
            kit.set("answer.json", "/proposed_actions/0/evidence_refs/0/call_id", json!("c2"));
        }),
        at(Code::EvidenceUnresolved, "a ref to a document that was not found", "answer.json", "/proposed_actions/0/evidence_refs/1/doc_id", |kit| {
            kit.set("answer.json", "/proposed_actions/0/evidence_refs/1/doc_id", json!("d2"));
        }),
        at(Code::EvidenceUnresolved, "a ref after the last event", "answer.json", "/proposed_actions/0/evidence_refs/2/id", |kit| {
            kit.set("answer.json", "/proposed_actions/0/evidence_refs/2/id", json!("events[5]"));
        }),
        at(Code::EvidenceUnresolved, "a ref to an asset that is not listed", "answer.json", "/proposed_actions/0/evidence_refs/3/id", |kit| {
            kit.set("answer.json", "/proposed_actions/0/evidence_refs/3/id", json!("other.json"));
        }),
        at(Code::SnippetWithoutBody, "a snippet without a saved body", "failed.json", "/runner_failure/full_body_saved_to", |kit| {
            kit.set("failed.json", "/runner_failure/full_body_saved_to", Value::Null);
        }),
        at(Code::MissingField, "an HTTP error without its status", "failed.json", failure, |kit| kit.edit("failed.json", |document| {
            document["runner_failure"].as_object_mut().unwrap().remove("status");
        })),
        // Within a run folder.
        at(Code::CaseFileMissing, "a run that was not finished", "run.json", "/selected_case_ids/2", |kit| select(kit, "third")),
        at(Code::CaseNotSelected, "an artifact left from another run", "third.json", "", |kit| {
            let mut third = kit.read("answer.json");
            third["case_id"] = json!("third");
            kit.write("third.json", third.to_string().as_bytes());
        }),
        at(Code::CaseNotSelected, "a label of a case that the run does not have", "labels.json", "/solved/third", |kit| {
            kit.write("labels.json", br#"{"schema_version": "labels.v1", "solved": {"answer": true, "third": false}}"#);
        }),
        at(Code::WrongType, "a label that is a number", "labels.json", "/solved/answer", |kit| {
            kit.write("labels.json", br#"{"schema_version": "labels.v1", "solved": {"answer": 1}}"#);
        }),
        at(Code::MissingField, "labels without their cases", "labels.json", "", |kit| {
            kit.write("labels.json", br#"{"schema_version": "labels.v1"}"#);
        }),
        at(Code::StatsDiffer, "a total that differs from the selection", "run.json", "/stats/cases_total", |kit| kit.set("run.json", "/stats/cases_total", json!(3))),
        at(Code::StatsDiffer, "failures that were not counted", "run.json", "/stats/cases_failed", |kit| kit.set("run.json", "/stats/cases_failed", json!(0))),
        at(Code::StatsDiffer, "fewer completed cases than answers", "run.json", "/stats/cases_completed", |kit| kit.set("run.json", "/stats/cases_completed", json!(0))),
        at(Code::ManifestEntryMissing, "a file that is not listed", "assets/manifest.json", "/items", |kit| kit.write("assets/extra.bin", b"x")),
        at(Code::ManifestEntryStale, "an entry without its file", "assets/manifest.json", "/items/4/href", |kit| {
            kit.edit("assets/manifest.json", |manifest| {
                let mut item = manifest["items"][0].clone();
                item["href"] = json!("assets/gone.bin");
                item["asset_id"] = json!("gone.bin");
                manifest["items"].as_array_mut().unwrap().push(item);
            });
        }),
        at(Code::DuplicateAsset, "two entries with one name", "assets/manifest.json", "/items/1/asset_id", |kit| {
            let first = kit.read("assets/manifest.json")["items"][0]["asset_id"].clone();
            kit.set("assets/manifest.json", "/items/1/asset_id", first);
        }),
        at(Code::CountsDiffer, "counts of another comparison", "evaluation.json", "/counts/unchanged", |kit| kit.set("evaluation.json", "/counts/unchanged", json!(7))),
        at(Code::WrongValue, "a failed gate that is marked as passed", "evaluation.json", "/gate/passed", |kit| kit.set("evaluation.json", "/gate/outcome", json!("failed"))),
        at(Code::MoreFindings, "a file with more findings than the limit", "answer.json", "", |kit| kit.set("answer.json", "/events", vec![json!(1); 3000].into())),
    ]
}

/// Codes whose fixtures are in `places.rs`, since they need more than an edit of a file.
const IN_PLACES: [Code; 3] = [Code::Unreadable, Code::FileNameNotUtf8, Code::RunFileMissing];

/// Selects one more case and updates the stats.
fn select(kit: &Kit, id: &str) {
    kit.edit("run.json", |run| {
        run["selected_case_ids"].as_array_mut().unwrap().push(json!(id));
        run["stats"]["cases_total"] = json!(3);
    });
}

/// Appends a copy of the first element of a list.
fn repeat(kit: &Kit, list: &str) {
    kit.edit("answer.json", |document| {
        let first = document[list][0].clone();
        document[list].as_array_mut().unwrap().push(first);
    });
}

/// Updates the manifest after an asset was changed.
fn refresh_manifest(kit: &Kit) {
    kit.edit("assets/manifest.json", |manifest| {
        for item in manifest["items"].as_array_mut().unwrap() {
            let bytes = std::fs::read(kit.path(item["href"].as_str().unwrap())).unwrap();
            item["size_bytes"] = json!(bytes.len());
            item["sha256"] = json!(Sha256Digest::from_bytes(&bytes).to_string());
        }
    });
}

#[test]
fn the_valid_run_folder_has_no_findings() {
    let kit = Kit::new();
    let report = kit.check();
    assert_eq!(report.findings, []);
    // The run, two artifacts, the manifest, the metadata of a body, the evaluation.
    assert_eq!((report.files, report.runs, report.skipped), (6, 1, 0));
}

#[test]
fn each_break_is_reported_at_its_position() {
    for Break { purpose, apply, code, file, pointer } in breaks() {
        let kit = Kit::new();
        apply(&kit);
        let found = kit.found();
        assert!(
            found.contains(&(code, file.to_owned(), pointer.to_owned())),
            "{code}, {purpose}: expected at {file} {pointer}, found {found:#?}"
        );
        for finding in kit.check().findings {
            let is_placed = finding.position.is_some() && finding.excerpt.is_some();
            // These codes apply to a file as a whole.
            let is_whole = [Code::EmptyFile, Code::MoreFindings].contains(&finding.code);
            assert!(is_placed || is_whole, "{purpose}: {finding:#?}");
            assert!(!finding.message.is_empty() && !finding.expected.is_empty() && !finding.remedy.is_empty());
        }
    }
}

#[test]
fn most_breaks_have_exactly_one_finding() {
    // These breaks violate other rules as well: a missing file, for example, leaves refs unresolved and stats wrong.
    let consequential = [
        Code::UnsafeCaseId,
        Code::UnsafeRunId,
        Code::DuplicateCaseId,
        Code::AssetMissing,
        Code::AssetSizeDiffers,
        Code::AssetDigestDiffers,
        Code::MoreFindings,
        Code::SnippetWithoutBody,
        Code::EmptyFile,
        Code::ResultWithoutCall,
    ];
    for Break { purpose, apply, code, .. } in breaks() {
        let kit = Kit::new();
        apply(&kit);
        let found = kit.found();
        assert!(found.len() == 1 || consequential.contains(&code), "{code}, {purpose}: {found:#?}");
    }
}

#[test]
fn every_rule_is_broken_by_some_fixture() {
    // Documents of the contract have no expressions, and are JSON. Those that differ pass their own rules. The files of a
    // project are not documents of the contract.
    let elsewhere = [Code::InvalidExpression, Code::YamlSyntax, Code::InvalidCase, Code::InvalidConfiguration];
    let broken: BTreeSet<Code> = breaks().iter().map(|it| it.code).chain(IN_PLACES).chain(elsewhere).collect();
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !broken.contains(code)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn failures_may_count_as_completed() {
    let kit = Kit::new();
    kit.set("run.json", "/stats/cases_completed", json!(2));
    assert_eq!(kit.found(), []);
}
