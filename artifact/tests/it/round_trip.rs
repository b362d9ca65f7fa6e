//! Round trips of every wire type: a serialised value matches its schema and deserialises to an equal value, including
//! unknown fields.

use std::fmt::Debug;
use std::sync::LazyLock;

use counterproof_artifact::schema::Kind;
use counterproof_artifact::{Case, REVIEW_SCHEMA_SOURCE, Review, Run};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::evaluation_types::evaluation;
use crate::wire_types::{case, failure_meta, labels, manifest, review, run};

static VALIDATORS: LazyLock<[(Kind, jsonschema::Validator); 6]> =
    LazyLock::new(|| Kind::ALL.map(|kind| (kind, jsonschema::draft202012::new(kind.document()).unwrap())));

static REVIEW_VALIDATOR: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(&serde_json::from_str(REVIEW_SCHEMA_SOURCE).unwrap()).unwrap());

fn assert_round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(
    kind: Kind,
    value: &T,
) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(value).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let (_, validator) = VALIDATORS.iter().find(|(known, _)| *known == kind).unwrap();
    let errors: Vec<_> =
        validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    prop_assert!(errors.is_empty(), "{errors:?}\n{text}");
    prop_assert_eq!(&serde_json::from_str::<T>(&text).unwrap(), value);
    prop_assert_eq!(&serde_json::from_value::<T>(document).unwrap(), value);
    Ok(())
}

proptest! {
    #[test]
    fn runs(run in run()) {
        assert_round_trip(Kind::Run, &run)?;
    }

    #[test]
    fn cases(case in case()) {
        assert_round_trip(Kind::Case, &case)?;
        // The conversion that moves the values instead of copying them.
        prop_assert_eq!(&serde_json::from_value::<Case>(serde_json::to_value(&case).unwrap()).unwrap(), &case);
    }

    #[test]
    fn failure_metadata(meta in failure_meta()) {
        assert_round_trip(Kind::FailureMeta, &meta)?;
    }

    #[test]
    fn manifests(manifest in manifest()) {
        assert_round_trip(Kind::AssetsManifest, &manifest)?;
    }

    #[test]
    fn labels_of_baselines(labels in labels()) {
        assert_round_trip(Kind::Labels, &labels)?;
    }

    #[test]
    fn reviews(review in review()) {
        let document = serde_json::to_value(&review).unwrap();
        prop_assert!(REVIEW_VALIDATOR.is_valid(&document), "{document}");
        prop_assert_eq!(serde_json::from_value::<Review>(document).unwrap(), review);
    }

    #[test]
    fn evaluations(evaluation in evaluation()) {
        assert_round_trip(Kind::Evaluation, &evaluation)?;
    }
}

#[test]
fn unknown_fields_and_events_are_written_back() {
    let document = json!({
        "schema_version": "case.v1", "case_id": "answer", "version": "new", "status": "ok", "later": {"unknown": null},
        "proposed_actions": [{
            "action_id": "a1", "action_type": "refund", "tool_name": "refund", "params": {"amount": 5},
            "risk_level": "high", "risk_tags": [], "evidence_refs": [{"kind": "tool_result", "call_id": "c1"}], "later": true
        }],
        "events": [{"type": "thought", "ts": 4, "text": "an unknown event type", "nothing": null}],
        "final_output": {"content_type": "text", "content": "done", "later": [1]}
    });
    let case: Case = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(serde_json::to_value(case).unwrap(), document);
    let document = json!({
        "schema_version": "run.v1", "run_id": "r1", "version": "new", "generated_at": "2026-01-31T12:00:00Z",
        "base_url": "http://127.0.0.1:8787", "cases_path": "../../../cases.json", "out_dir": "../..",
        "selected_case_ids": ["answer"], "runner_version": "counterproof 0.1.0", "timeout_ms": 15000,
        "retries": 2, "later": {"unknown": null}
    });
    let run: Run = serde_json::from_value(document).unwrap();
    assert_eq!(serde_json::to_value(run).unwrap()["later"], json!({"unknown": null}));
}
