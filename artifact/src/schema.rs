//! The kinds of documents and their JSON Schemas: the files under `schemas/`, embedded.
//!
//! `counterproof-validation` compiles the schemas and adds the rules that a schema cannot express. Each schema is
//! self-contained; no reference is fetched.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde_json::Value;

/// A kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `run.json`
    Run,
    /// `<caseId>.json`
    Case,
    /// `assets/….meta.json`
    FailureMeta,
    /// `assets/manifest.json`
    AssetsManifest,
    /// `evaluation.json`
    Evaluation,
    /// `labels.json`
    Labels,
}

impl Kind {
    /// All kinds, in the order in which the contract introduces them.
    pub const ALL: [Kind; 6] =
        [Kind::Run, Kind::Case, Kind::FailureMeta, Kind::AssetsManifest, Kind::Evaluation, Kind::Labels];

    /// The value of `schema_version`.
    pub const fn schema_version(self) -> &'static str {
        match self {
            Kind::Run => "run.v1",
            Kind::Case => "case.v1",
            Kind::FailureMeta => "failure-meta.v1",
            Kind::AssetsManifest => "assets-manifest.v1",
            Kind::Evaluation => "evaluation.v1",
            Kind::Labels => "labels.v1",
        }
    }

    /// The published schema text.
    pub const fn source(self) -> &'static str {
        match self {
            Kind::Run => include_str!("../../schemas/run.v1.schema.json"),
            Kind::Case => include_str!("../../schemas/case.v1.schema.json"),
            Kind::FailureMeta => include_str!("../../schemas/failure-meta.v1.schema.json"),
            Kind::AssetsManifest => include_str!("../../schemas/assets-manifest.v1.schema.json"),
            Kind::Evaluation => include_str!("../../schemas/evaluation.v1.schema.json"),
            Kind::Labels => include_str!("../../schemas/labels.v1.schema.json"),
        }
    }

    /// The title of the schema.
    pub fn title(self) -> &'static str {
        self.document().get("title").and_then(Value::as_str).unwrap_or_default()
    }

    /// The schema as JSON, parsed once.
    pub fn document(self) -> &'static Value {
        static RUN: LazyLock<Value> = LazyLock::new(|| parse(Kind::Run));
        static CASE: LazyLock<Value> = LazyLock::new(|| parse(Kind::Case));
        static FAILURE_META: LazyLock<Value> = LazyLock::new(|| parse(Kind::FailureMeta));
        static ASSETS_MANIFEST: LazyLock<Value> = LazyLock::new(|| parse(Kind::AssetsManifest));
        static EVALUATION: LazyLock<Value> = LazyLock::new(|| parse(Kind::Evaluation));
        static LABELS: LazyLock<Value> = LazyLock::new(|| parse(Kind::Labels));
        match self {
            Kind::Run => &RUN,
            Kind::Case => &CASE,
            Kind::FailureMeta => &FAILURE_META,
            Kind::AssetsManifest => &ASSETS_MANIFEST,
            Kind::Evaluation => &EVALUATION,
            Kind::Labels => &LABELS,
        }
    }
}

#[expect(clippy::expect_used, reason = "the sources are part of the program, and a test parses each of them")]
fn parse(kind: Kind) -> Value {
    // The text is a part of the program, so that it cannot be another one at run time.
    serde_json::from_str(kind.source()).expect("an embedded schema is JSON")
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.schema_version())
    }
}

/// An unknown kind of document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a kind of document")]
pub struct UnknownKind(String);

impl FromStr for Kind {
    type Err = UnknownKind;

    /// Parses a `schema_version`.
    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Kind::ALL.into_iter().find(|kind| kind.schema_version() == text).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `visit` with every object of a schema that describes a value or a property, and with its JSON Pointer.
    fn for_each_property(schema: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
        let Some(object) = schema.as_object() else { return };
        for (key, value) in object {
            let below = format!("{path}/{key}");
            match key.as_str() {
                "properties" | "$defs" => {
                    for (name, property) in value.as_object().into_iter().flatten() {
                        visit(&format!("{below}/{name}"), property);
                        for_each_property(property, &format!("{below}/{name}"), visit);
                    }
                }
                "items" => for_each_property(value, &below, visit),
                _ => {}
            }
        }
    }

    #[test]
    fn every_schema_states_its_version_and_title() {
        for kind in Kind::ALL {
            let document = kind.document();
            let version = kind.schema_version();
            assert!(jsonschema::draft202012::meta::is_valid(document), "{version}");
            assert_eq!(document["$schema"], "https://json-schema.org/draft/2020-12/schema");
            assert_eq!(document["$id"], format!("urn:counterproof:schema:{version}"));
            assert_eq!(document["properties"]["schema_version"]["const"], version);
            assert!(kind.title().ends_with(&format!("({version})")), "{}", kind.title());
            assert_eq!(version.parse::<Kind>(), Ok(kind));
        }
    }

    #[test]
    fn every_property_and_definition_has_a_description() {
        for kind in Kind::ALL {
            for_each_property(kind.document(), "", &mut |path, schema| {
                let is_prohibition = schema.is_boolean();
                let narrows = path.contains("/bodyIsKept/properties/");
                let described = schema["description"].as_str().is_some_and(|text| text.ends_with('.'));
                assert!(described || is_prohibition || narrows, "{kind}: {path}");
            });
        }
    }

    #[test]
    fn no_schema_forbids_unknown_fields() {
        for kind in Kind::ALL {
            assert!(!kind.source().contains("\"additionalProperties\": false"), "{kind}");
            assert!(!kind.source().contains("unevaluated"), "{kind}");
            assert!(!kind.source().contains("oneOf"), "{kind}: a failing oneOf does not say which field is wrong");
        }
    }
}
