//! Tests of facts: what is written is read, and damaged files and files of others are refused.

use std::sync::Arc;

use askama::Template;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::{Evaluation, Verdict};
use counterproof_store::read_file;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::Field;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::columns::{COLUMNS, SCHEMA, Values};
use super::{Facts, FactsFile, FactsReadError, RunFolders};
use crate::history::{EvaluationSource, History, HistoryPage};

fn evaluation(cases: &[Value]) -> Evaluation {
    let run = |id: &str| {
        json!({"run_id": id, "generated_at": "2026-11-29T01:30:00+02:00", "runner_version": "x", "cases_selected": 1,
               "repo_commit": "c0ffee"})
    };
    serde_json::from_value(json!({
        "schema_version": "evaluation.v1", "evaluator_version": "x", "baseline": run("good"), "new": run("n1"),
        "counts": {}, "gate": {"passed": false, "outcome": "failed", "rules": []}, "cases": cases,
    }))
    .unwrap()
}

fn case(id: &str, verdict: Verdict, text: &str, duration: f64) -> Value {
    json!({
        "case_id": id, "title": text, "verdict": verdict, "tags": [text, "b"], "suite": text,
        "reasons": [{"code": "output-changed", "message": text, "pointers": []}],
        "severity": {"score": 0.5, "parts": []}, "risk_level": "high",
        "expectations": [
            {"code": "a", "expected": "x", "new": {"passed": true, "found": ""}, "baseline": {"passed": false, "found": ""}},
            {"code": "b", "expected": "x", "new": {"passed": false, "found": ""}},
        ],
        "usage": {"new": {"duration_ms": duration, "steps": 3, "cost": 0.25, "currency": "EUR"}, "baseline": {"steps": 2}},
    })
}

struct Folder {
    _folder: tempfile::TempDir,
    path: Utf8PathBuf,
}

fn folder() -> Folder {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap().to_owned();
    Folder { _folder: folder, path }
}

fn facts<'e>(evaluation: &'e Evaluation, folder: &Utf8Path) -> Facts<'e> {
    Facts::new(evaluation, &RunFolders { evaluation: folder.join("report"), runs: folder.join("runs") })
}

/// Writes a file, which need not survive a power failure.
fn written(evaluation: &Evaluation, folder: &Utf8Path) -> Utf8PathBuf {
    let path = folder.join("facts.parquet");
    write_bytes(&path, &facts(evaluation, folder).encode(None).unwrap());
    path
}

/// The page of a history.
fn page(history: &History) -> String {
    HistoryPage::new(history, &[]).render().unwrap()
}

fn read_value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => json!(value),
        Field::Int(value) | Field::Date(value) => json!(value),
        Field::Long(value) | Field::TimestampMicros(value) => json!(value),
        Field::Double(value) => json!(value),
        Field::Str(value) => json!(value),
        Field::ListInternal(list) => list.elements().iter().map(read_value).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_row_has_each_column_with_its_value() {
    let folder = folder();
    let cases = [case("a", Verdict::Regressed, "x\u{202e}", 12.5), case("b", Verdict::Added, "", 1.0)];
    let evaluation = evaluation(&cases);
    let path = facts(&evaluation, &folder.path).write(&folder.path, Some(&folder.path)).unwrap();
    assert_eq!(path.file_name(), Some("20261128T233000Z--n1--good.parquet"));

    let (file, _) = read_file::open(&path).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let value = |row: usize, name: &str| {
        let (_, field) = rows[row].get_column_iter().find(|(column, _)| *column == name).unwrap();
        read_value(field)
    };
    assert_eq!((0..3).map(|row| value(row, "side")).collect::<Vec<_>>(), ["baseline", "new", "new"]);
    let expected = json!({
        "night": 20_786, "started": 1_795_908_600_000_000_i64, "new_run": "n1", "baseline_run": "good", "gate": "failed",
        "decision": "stop", "case_id": "a", "title": "x\u{202e}", "tags": ["x\u{202e}", "b"], "rank": 1,
        "verdict": "regressed", "result": "worse", "unconfirmed": false, "failing": true, "reasons": ["output-changed"],
        "severity": 0.5, "severity_level": "medium", "risk": "high", "cause": null, "run_id": "n1", "run_index": 0,
        "runs": 1, "commit": "c0ffee", "model": null, "answered": true, "expectations_met": 1, "expectations_unmet": 1,
        "steps": 3.0, "writes": 0, "duration_ms": 12.5, "tool_ms": null, "input_tokens": null, "cost": 0.25,
        "currency": "EUR",
    });
    for (name, expected) in expected.as_object().unwrap() {
        assert_eq!(value(1, name), *expected, "{name}");
    }
    assert_eq!((value(0, "duration_ms"), value(0, "expectations_unmet")), (Value::Null, json!(1)));
}

#[test]
fn the_documented_columns_are_those_of_the_file() {
    let page = include_str!("../../../docs/scale.md");
    let section = page.split("## Facts as Parquet").nth(1).unwrap();
    let documented: Vec<_> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(name, rest)| (name, rest.split(" |").next().unwrap()))
        .collect();
    let columns: Vec<_> = COLUMNS.iter().map(|column| (column.name, column.values.type_name())).collect();
    assert_eq!(documented, columns);
    assert!(section.contains(&format!("`{SCHEMA}`")));
}

fn verdict() -> impl Strategy<Value = Verdict> {
    proptest::sample::select(Verdict::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_history_of_facts_equals_that_of_the_evaluation(
        cases in proptest::collection::vec((verdict(), ".{0,12}", 0.0..9e9, "[ab]"), 0..12),
        flags in any::<[bool; 2]>(),
    ) {
        let folder = folder();
        // Ids that differ in case only share a name of a page.
        let case = |(number, (verdict, text, duration, letter)): (usize, &(Verdict, String, f64, String))| {
            let letter = if number % 2 == 0 { letter.to_uppercase() } else { letter.clone() };
            let mut case = case(&format!("{letter}{}", number / 2), *verdict, text, *duration);
            case["unconfirmed"] = json!(flags[0]);
            case
        };
        let mut evaluation = evaluation(&cases.iter().enumerate().map(case).collect::<Vec<_>>());
        if flags[1] {
            let notice = json!({"code": "no-baseline", "message": "no baseline"});
            evaluation.notices.push(serde_json::from_value(notice).unwrap());
        }
        let path = written(&evaluation, &folder.path);
        let source = |folder: &str| EvaluationSource {
            folder: folder.to_owned(), href: Some("../report/index.html".to_owned()),
            case_pages: ["A0.html", "a0.html", "a0~2.html"].map(str::to_owned).into(), model: None,
        };
        let mut expected = History::default();
        prop_assert!(expected.add(&evaluation, source("report")).is_ok());
        let mut found = History::default();
        FactsFile::read(&path).unwrap().add_to(&mut found, Some(source("report"))).unwrap();
        prop_assert_eq!(page(&found), page(&expected));

        let again = FactsFile::read(&path).unwrap().add_to(&mut found, None);
        prop_assert!(matches!(again, Err(FactsReadError::Known(_))));
    }

    #[test]
    fn damaged_files_are_errors(at in 0.0..1.0, bit in 0_u8..8, cut in any::<bool>()) {
        let folder = folder();
        let cases = [case("a", Verdict::Regressed, "text", 12.5), case("b", Verdict::Unchanged, "more", 1.0)];
        let path = folder.path.join("facts.parquet");
        let mut bytes = facts(&evaluation(&cases), &folder.path).encode(None).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the length")]
        let at = (at * bytes.len() as f64) as usize;
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1_u8 << bit;
        }
        write_bytes(&path, &bytes);
        // A changed value of another column is not noticed.
        let read = FactsFile::read(&path);
        prop_assert!(!cut || read.is_err());
    }
}

fn write_bytes(path: &Utf8Path, bytes: &[u8]) {
    use counterproof_store::write::{Durability, write};

    write(path, bytes, Durability::Cached).unwrap();
}

/// A file with these columns and this metadata, without rows.
fn file_with(columns: &str, metadata: &[(&str, &str)]) -> Vec<u8> {
    let entry = |(key, value): &(&str, &str)| KeyValue::new((*key).to_owned(), (*value).to_owned());
    let metadata = metadata.iter().map(entry).collect();
    let properties = WriterProperties::builder().set_key_value_metadata(Some(metadata)).build();
    let schema = Arc::new(parse_message_type(&format!("message m {{ {columns} }}")).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    while let Some(column) = group.next_column().unwrap() {
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn files_of_others_are_refused_with_what_is_wrong() {
    let folder = folder();
    let night = r#"{"time": "t", "baseline": "b", "new": "n", "gate": "passed", "is_unconfirmed": false,
                    "decision": "go", "headline": "h"}"#;
    let known = [("counterproof.facts", "facts.v1"), ("counterproof.comparison", night)];
    for (bytes, expected) in [
        (b"case_id,verdict\n".to_vec(), "not a readable Parquet file: "),
        (Vec::new(), "not a readable Parquet file: "),
        (file_with("optional int64 a;", &[]), "its metadata has no valid `counterproof.facts`"),
        (
            file_with("optional int64 a;", &[("counterproof.facts", "facts.v2")]),
            "`facts.v2`, and this version reads facts.v1",
        ),
        (file_with("optional int64 a;", &known[..1]), "its metadata has no valid `counterproof.comparison`"),
        (file_with("optional int64 a;", &known), "the column `case_id` is missing or has another type"),
        (file_with("optional int64 case_id;", &known), "the column `case_id` is missing or has another type"),
        (file_with("required binary case_id (STRING);", &known), "the column `case_id` is missing or has another type"),
        (file_with("optional binary case_id (STRING);", &known), "the column `rank` is missing or has another type"),
    ] {
        let path = folder.path.join("facts.parquet");
        write_bytes(&path, &bytes);
        let error = FactsFile::read(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let missing = FactsFile::read(&folder.path.join("none.parquet"));
    assert!(matches!(missing, Err(FactsReadError::Io(_))));
}

#[test]
fn every_list_and_text_may_be_empty() {
    let folder = folder();
    let bare = |id: &str| json!({"case_id": id, "verdict": "unchanged", "reasons": []});
    let path = written(&evaluation(&[bare("a"), bare("b")]), &folder.path);
    let (file, _) = read_file::open(&path).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    for row in rows {
        for ((name, field), column) in row.get_column_iter().zip(&COLUMNS) {
            let is_list = matches!(column.values, Values::Texts(_));
            assert_eq!(is_list, read_value(field) == json!([]), "{name}");
        }
    }
    assert!(FactsFile::read(&written(&evaluation(&[]), &folder.path)).is_ok());
}
