//! `counterproof schema`: prints the JSON Schemas of documents.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use counterproof_artifact::schema::Kind;
use counterproof_artifact::{Exit, REVIEW_SCHEMA_SOURCE};
use counterproof_cases::CASES_SCHEMA_SOURCE;
use counterproof_contracts::contract::CONTRACT_SCHEMA_SOURCE;
use counterproof_guard::policy::{POLICY_SCHEMA_SOURCE, TEST_SCHEMA_SOURCE};
use counterproof_safe_run::{EVENT_SCHEMA, EVENT_SCHEMA_SOURCE};
use counterproof_sessions::event as session_event;
use serde_json::Value;

use crate::command_error::CommandError;
use crate::config::CONFIG_SCHEMA_SOURCE;
use crate::streams::Streams;

/// Print the JSON Schema (draft 2020-12) of a document kind, or list the kinds.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Document kind, such as `case.v1`; without it, all kinds are listed
    #[arg(value_parser = kind_parser())]
    kind: Option<Schema>,
}

/// A schema of the folder `schemas/`.
#[derive(Debug, Clone, Copy)]
struct Schema {
    /// The name of the file without `.schema.json`.
    name: &'static str,
    source: &'static str,
}

/// The schemas of documents that are not in run folders.
const OTHERS: [Schema; 8] = [
    Schema { name: "cases.v1", source: CASES_SCHEMA_SOURCE },
    Schema { name: "review.v1", source: REVIEW_SCHEMA_SOURCE },
    Schema { name: "config.v1", source: CONFIG_SCHEMA_SOURCE },
    Schema { name: EVENT_SCHEMA, source: EVENT_SCHEMA_SOURCE },
    Schema { name: session_event::EVENT_SCHEMA, source: session_event::EVENT_SCHEMA_SOURCE },
    Schema { name: "contract.v1", source: CONTRACT_SCHEMA_SOURCE },
    Schema { name: "guard-policy.v1", source: POLICY_SCHEMA_SOURCE },
    Schema { name: "guard-policy-test.v1", source: TEST_SCHEMA_SOURCE },
];

/// All schemas: first those of run folders.
fn schemas() -> impl Iterator<Item = Schema> {
    Kind::ALL.map(|kind| Schema { name: kind.schema_version(), source: kind.source() }).into_iter().chain(OTHERS)
}

fn kind_parser() -> impl clap::builder::TypedValueParser<Value = Schema> {
    PossibleValuesParser::new(schemas().map(|schema| schema.name)).try_map(|text| {
        schemas().find(|schema| schema.name == text).ok_or_else(|| format!("`{text}` is not a kind of document"))
    })
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    if let Some(schema) = args.kind {
        streams.print_document(schema.source)?;
        return Ok(Exit::Done);
    }
    let width = schemas().map(|schema| schema.name.len()).max().unwrap_or_default();
    for Schema { name, source } in schemas() {
        let document: Value = serde_json::from_str(source).unwrap_or_default();
        let description = document.get("description").and_then(Value::as_str).unwrap_or_default();
        // The first sentence, so that each kind has one line.
        let first = description.split(". ").next().unwrap_or_default().trim_end_matches('.');
        streams.print_line(format_args!("{name:<width$} {first}"))?;
    }
    Ok(Exit::Done)
}
