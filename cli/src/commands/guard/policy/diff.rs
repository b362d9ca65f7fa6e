//! `counterproof guard policy diff`: the differences between two policies.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use counterproof_artifact::{Exit, harmless};
use counterproof_guard::policy::{FieldChange, PolicyDiff, RuleChange, diff};
use serde_json::json;

use crate::command_error::CommandError;
use crate::commands::guard::policy_args;
use crate::streams::Streams;
use crate::streams::{to_json, to_json_line};

/// Show the differences between two policies by meaning: the mode and the defaults first, then rule by rule.
///
/// Defaults are filled in, and the order of patterns does not matter. The order of rules does: a rule that changed its place is listed
/// as moved. Exit code 0: done; with `--exit-code`, the policies mean the same. 1: with `--exit-code`, they differ. 2: a policy is
/// invalid.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Old policy
    #[arg(value_name = "OLD")]
    old: Utf8PathBuf,

    /// New policy
    #[arg(value_name = "NEW")]
    new: Utf8PathBuf,

    /// Exit with 1 if the policies differ
    #[arg(long)]
    exit_code: bool,
}

pub(super) fn run(args: &Args, is_json: bool, streams: &mut Streams) -> Result<Exit, CommandError> {
    let ((old, before), (new, after)) =
        (policy_args::load_document(&args.old)?, policy_args::load_document(&args.new)?);
    let differences = diff(&before, &after);
    if is_json {
        let document = json!({"old": old.reference(), "new": new.reference(), "diff": differences});
        streams.print_document(&to_json(&document))?;
    } else {
        // The texts of a policy can contain characters that steer a terminal.
        streams.print_document(&harmless(&text(&differences)))?;
    }
    Ok(if args.exit_code && !differences.is_empty() { Exit::Findings } else { Exit::Done })
}

fn text(diff: &PolicyDiff) -> String {
    if diff.is_empty() {
        return "no differences\n".to_owned();
    }
    let mut text = String::new();
    push_fields(&diff.fields, "", &mut text);
    for change in &diff.rules {
        let _ = match change {
            RuleChange::Added { rule_id, place, rule } => {
                writeln!(text, "rule `{rule_id}`: added as rule {place}\n  + {}", to_json_line(rule))
            }
            RuleChange::Removed { rule_id, place, rule } => {
                writeln!(text, "rule `{rule_id}`: removed, was rule {place}\n  - {}", to_json_line(rule))
            }
            RuleChange::Changed { rule_id, moved_from, place, fields } => {
                let moved = moved_from.map(|from| format!("moved from rule {from} to rule {place}"));
                let changed = (!fields.is_empty()).then(|| "changed".to_owned());
                let what: Vec<String> = moved.into_iter().chain(changed).collect();
                let _ = writeln!(text, "rule `{rule_id}`: {}", what.join(", "));
                push_fields(fields, "  ", &mut text);
                Ok(())
            }
        };
    }
    text
}

fn push_fields(fields: &[FieldChange], indent: &str, text: &mut String) {
    for FieldChange { pointer, before, after } in fields {
        let _ = writeln!(text, "{indent}{}", pointer.trim_start_matches('/').replace('/', "."));
        for (sign, value) in [('-', before), ('+', after)] {
            if let Some(value) = value {
                let _ = writeln!(text, "{indent}  {sign} {}", to_json_line(value));
            }
        }
    }
}
