//! `counterproof contract new`: drafts a contract.

use std::io::Write as _;
use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_contracts::ContractId;
use counterproof_contracts::documents::check_file;
use counterproof_store::write::{AtomicFile, Durability};
use counterproof_validation::Report;
use serde_json::{Value, json};

use super::project::{Project, now};
use super::run_reporter::Failure;
use crate::findings::{self, Format};
use crate::streams::{Streams, to_json};

/// Draft a contract.
///
/// Prints a valid contract with these parts, to be completed by hand. If the store has the contract, the draft is its next version.
///
/// Exit code 0: drafted. 1: a part is invalid. 2: invalid arguments, or the file exists. 3: a file could not be read or written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Contract
    #[arg(value_name = "ID")]
    id: ContractId,

    /// What the agent must do
    #[arg(long, value_name = "TEXT")]
    task: String,

    /// Command line that verifies the work
    #[arg(long, value_name = "CMD")]
    verify: String,

    /// Command line that undoes failed work [default: the repository is reset to the commit of the start]
    #[arg(long, value_name = "CMD")]
    undo: Option<String>,

    /// File that must exist after the work; can be repeated
    #[arg(long, value_name = "PATH")]
    artifact: Vec<String>,

    /// Contract that must be completed first; can be repeated
    #[arg(long, value_name = "ID")]
    after: Vec<ContractId>,

    /// New file for the contract [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<Utf8PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let store = counterproof_contracts::Store::new(&project.store);
    let latest = store.status(&args.id)?.map_or(0, |status| status.version.get());
    let version = NonZeroU32::MIN.saturating_add(latest);
    let draft = to_json(&draft(args, version));
    let checked = check_file(Utf8Path::new("draft.json"), draft.as_bytes());
    if !checked.findings.is_empty() {
        let report = Report { files: 1, findings: checked.findings, ..Report::default() };
        let format = if project.is_json { Format::Json } else { Format::Human };
        streams.print_document(&findings::render(&report, format))?;
        return Ok(Exit::Findings);
    }
    let Some(out) = &args.out else {
        streams.print_document(&draft)?;
        return Ok(Exit::Done);
    };
    let mut file = AtomicFile::create(out).map_err(Failure::io)?;
    file.write_all(draft.as_bytes()).map_err(Failure::io)?;
    // Not checked before: another process may create it meanwhile.
    if file.commit_new([out.clone()], Durability::Synced).map_err(Failure::io)?.is_none() {
        return Err(Failure::refused("usage", format!("`{out}` already exists")).hint("choose another file"));
    }
    project.print(streams, &json!({ "id": args.id, "version": version, "file": out }), || {
        format!("drafted {}@{version} in {out}", args.id)
    })?;
    Ok(Exit::Done)
}

fn draft(args: &Args, version: NonZeroU32) -> Value {
    let mut draft = json!({
        "id": args.id,
        "version": version,
        "created_at": now(),
        "input": { "type": "task", "data": { "task": args.task } },
        "output": { "type": "code_change", "schema": { "modified_files": "string[]" } },
        "verification": { "command": args.verify, "timeout_ms": 600_000, "assertions": ["exit_code == 0"] },
        "rollback": match &args.undo {
            Some(command) => json!({ "strategy": "custom", "custom": command }),
            None => json!({ "strategy": "git_reset" }),
        },
    });
    if !args.artifact.is_empty() {
        draft["output"]["artifacts"] = json!(args.artifact);
    }
    if !args.after.is_empty() {
        draft["dependencies"] = json!(args.after);
    }
    draft["metadata"] = json!({ "project": args.id.project(), "human_summary": args.task });
    draft
}
