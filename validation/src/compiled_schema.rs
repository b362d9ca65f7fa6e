//! The schemas of the contract, compiled once per process. `rules::schema` checks documents against them.

use std::sync::LazyLock;

use counterproof_artifact::schema::Kind;

use crate::document_schema::DocumentSchema;

/// Returns the compiled schema of a kind of document.
pub(crate) fn schema(kind: Kind) -> &'static DocumentSchema {
    // One static per kind: compiling a schema takes milliseconds, and most commands need one or two of them.
    static RUN: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::Run));
    static CASE: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::Case));
    static FAILURE_META: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::FailureMeta));
    static ASSETS_MANIFEST: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::AssetsManifest));
    static EVALUATION: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::Evaluation));
    static LABELS: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::Labels));
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
fn compile(kind: Kind) -> DocumentSchema {
    DocumentSchema::compile(kind.schema_version(), kind.document()).expect("an embedded schema is a schema")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_schema_compiles_and_rejects_null() {
        for kind in Kind::ALL {
            assert!(!schema(kind).is_valid(&Value::Null), "{kind}");
        }
    }
}
