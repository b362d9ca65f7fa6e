//! Every wire type there and back: a value is written, is valid under its schema, and is read again as it was, with all
//! that this version does not know.

use std::fmt::Debug;
use std::sync::LazyLock;

use counterproof_artifact::evaluation::Evaluation;
use counterproof_artifact::schema::Kind;
use counterproof_artifact::{Case, FailureMeta, Manifest, Run};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::wire_types::{case, evaluation, failure_meta, manifest, run};

/// True where a document's type takes it.
pub(crate) fn has_a_type(document: &Value) -> bool {
    let document = document.clone();
    match document["schema_version"].as_str().and_then(|version| version.parse().ok()) {
        Some(Kind::Run) => serde_json::from_value::<Run>(document).is_ok(),
        Some(Kind::Case) => serde_json::from_value::<Case>(document).is_ok(),
        Some(Kind::FailureMeta) => serde_json::from_value::<FailureMeta>(document).is_ok(),
        Some(Kind::AssetsManifest) => serde_json::from_value::<Manifest>(document).is_ok(),
        Some(Kind::Evaluation) => serde_json::from_value::<Evaluation>(document).is_ok(),
        None => false,
    }
}

static VALIDATORS: LazyLock<[(Kind, jsonschema::Validator); 5]> =
    LazyLock::new(|| Kind::ALL.map(|kind| (kind, jsonschema::draft202012::new(kind.document()).unwrap())));

fn there_and_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(
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
        there_and_back(Kind::Run, &run)?;
    }

    #[test]
    fn cases(case in case()) {
        there_and_back(Kind::Case, &case)?;
        // The way that moves the values instead of making them again.
        prop_assert_eq!(&Case::from_document(serde_json::to_value(&case).unwrap()).unwrap(), &case);
    }

    #[test]
    fn failure_metadata(meta in failure_meta()) {
        there_and_back(Kind::FailureMeta, &meta)?;
    }

    #[test]
    fn manifests(manifest in manifest()) {
        there_and_back(Kind::AssetsManifest, &manifest)?;
    }

    #[test]
    fn evaluations(evaluation in evaluation()) {
        there_and_back(Kind::Evaluation, &evaluation)?;
    }
}

#[test]
fn unknown_fields_and_events_stand_in_the_text_again() {
    let document = crate::kit::answer_document();
    let case: Case = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(serde_json::to_value(case).unwrap(), document);
    let document = crate::kit::run_document();
    let run: Run = serde_json::from_value(document).unwrap();
    assert_eq!(serde_json::to_value(run).unwrap()["later"], json!({"unknown": null}));
}
