//! `counterproof guard policy lint`: checks policies.

use annotate_snippets::Level;
use camino::Utf8PathBuf;
use counterproof_artifact::{Exit, without_inline_commands};
use counterproof_guard::policy::lint;
use counterproof_validation::Finding;
use serde_json::{Value, json};

use crate::command_error::CommandError;
use crate::commands::guard::policy_args;
use crate::findings::render_finding;
use crate::streams::Streams;
use crate::streams::to_json;

/// Check policies: errors, and rules that do not do what they seem to do.
///
/// Every error and warning has its line, its column and a remedy. A policy with an error cannot be used. A warning is about a valid
/// rule, such as one that can never decide.
///
/// Exit code 0: no errors; with `--strict`, no warnings either. 1: there are some. 3: a file cannot be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Policy files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<Utf8PathBuf>,

    /// Exit with 1 for warnings too
    #[arg(long)]
    strict: bool,
}

struct Listed {
    is_error: bool,
    code: &'static str,
    finding: Finding,
}

pub(super) fn run(args: &Args, is_json: bool, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut listed = Vec::new();
    for path in &args.files {
        let found = lint(&policy_args::read(path)?);
        let errors = found.errors.into_iter().map(|finding| (true, finding.code.as_str(), finding));
        let warnings = found.warnings.into_iter().map(|warning| (false, warning.code.as_str(), warning.finding));
        let of_file = errors.chain(warnings).map(|(is_error, code, finding)| Listed { is_error, code, finding });
        let mut of_file: Vec<Listed> = of_file.collect();
        // Errors and warnings together, in the order of the text.
        of_file.sort_by_key(|it| it.finding.position);
        listed.extend(of_file);
    }
    let errors = listed.iter().filter(|it| it.is_error).count();
    let warnings = listed.len() - errors;
    if is_json {
        let findings: Vec<Value> = listed.iter().map(to_value).collect();
        let summary = json!({"files": args.files.len(), "errors": errors, "warnings": warnings});
        streams.print_document(&to_json(&json!({"summary": summary, "findings": findings})))?;
    } else {
        streams.print_document(&text(&listed, args.files.len(), errors, warnings))?;
    }
    Ok(if errors > 0 || args.strict && warnings > 0 { Exit::Findings } else { Exit::Done })
}

fn text(listed: &[Listed], files: usize, errors: usize, warnings: usize) -> String {
    let mut text = String::new();
    for Listed { is_error, code, finding } in listed {
        text.push_str(&render_finding(if *is_error { &Level::ERROR } else { &Level::WARNING }, code, finding));
    }
    let count = |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let (files, errors, warnings) = (count(files, "file"), count(errors, "error"), count(warnings, "warning"));
    without_inline_commands(&format!("{text}{errors} and {warnings} in {files}\n"))
}

fn to_value(listed: &Listed) -> Value {
    let Listed { is_error, code, finding } = listed;
    json!({
        "severity": if *is_error { "error" } else { "warning" },
        "code": code,
        "file": finding.file,
        "pointer": finding.pointer,
        "line": finding.position.map(|position| position.line),
        "column": finding.position.map(|position| position.column),
        "message": finding.message,
        "expected": finding.expected,
        "remedy": finding.remedy,
    })
}
