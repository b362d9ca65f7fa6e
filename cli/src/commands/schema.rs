//! `counterproof schema`: prints the JSON Schemas of the contract.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use counterproof_artifact::Exit;
use counterproof_artifact::schema::{Kind, UnknownKind};
use serde_json::Value;

use crate::command_error::CommandError;
use crate::streams::Streams;

/// Print the JSON Schema (draft 2020-12) of a document kind, or list the kinds.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Document kind, such as `case.v1`; without it, all kinds are listed
    #[arg(value_parser = kind_parser())]
    kind: Option<Kind>,
}

fn kind_parser() -> impl clap::builder::TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.map(Kind::schema_version))
        .try_map(|text| -> Result<Kind, UnknownKind> { text.parse() })
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    if let Some(kind) = args.kind {
        streams.print_document(kind.source())?;
        return Ok(Exit::Done);
    }
    for kind in Kind::ALL {
        let description = kind.document().get("description").and_then(Value::as_str).unwrap_or_default();
        let first = description.split(". ").next().unwrap_or_default().trim_end_matches('.');
        streams.print_line(format_args!("{:<19} {first}", kind.schema_version()))?;
    }
    Ok(Exit::Done)
}
