//! The schemas of the contract, compiled once per process. `rules::schema` checks documents against them.

use std::sync::LazyLock;

use counterproof_artifact::schema::Kind;
use jsonschema::Validator;

/// Returns the compiled schema of a kind of document.
pub(crate) fn validator(kind: Kind) -> &'static Validator {
    // One static per kind: compiling a schema takes milliseconds, and most commands need one or two of them.
    static RUN: LazyLock<Validator> = LazyLock::new(|| compile(Kind::Run));
    static CASE: LazyLock<Validator> = LazyLock::new(|| compile(Kind::Case));
    static FAILURE_META: LazyLock<Validator> = LazyLock::new(|| compile(Kind::FailureMeta));
    static ASSETS_MANIFEST: LazyLock<Validator> = LazyLock::new(|| compile(Kind::AssetsManifest));
    static EVALUATION: LazyLock<Validator> = LazyLock::new(|| compile(Kind::Evaluation));
    static LABELS: LazyLock<Validator> = LazyLock::new(|| compile(Kind::Labels));
    match kind {
        Kind::Run => &RUN,
        Kind::Case => &CASE,
        Kind::FailureMeta => &FAILURE_META,
        Kind::AssetsManifest => &ASSETS_MANIFEST,
        Kind::Evaluation => &EVALUATION,
        Kind::Labels => &LABELS,
    }
}

#[expect(clippy::expect_used, reason = "the schemas are part of the program, and a test compiles each of them")]
fn compile(kind: Kind) -> Validator {
    jsonschema::draft202012::new(kind.document()).expect("an embedded schema is a schema")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_schema_compiles_and_rejects_null() {
        for kind in Kind::ALL {
            assert!(!validator(kind).is_valid(&Value::Null), "{kind}");
        }
    }
}
