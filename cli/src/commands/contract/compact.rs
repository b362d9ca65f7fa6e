//! `counterproof contract compact`: removes superseded versions from the store.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use serde_json::json;

use super::project::{Project, edit, now};
use super::run_reporter::Failure;
use crate::streams::Streams;

/// Remove the superseded versions of contracts from the store.
///
/// The latest version of each contract and everything that happened to it stay. The whole store before the compaction stays too, in a
/// file next to it, which is a store as well. Nothing else ever compacts a store.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print what would be removed, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let store = project.open_for_changes()?;
    let mut plan = store.compaction_plan()?;
    let mut archive = None;
    if !args.dry_run && plan.removed_lines > 0 {
        // The time keeps the archives of several compactions apart.
        let time = now().strftime("%Y%m%dT%H%M%S%3f");
        let to = Utf8PathBuf::from(format!("{}.before-{time}", store.path()));
        let compacted = edit(&store, streams)?.compact(to)?;
        (plan, archive) = (compacted.plan, Some(compacted.archive));
    }
    let document = json!({
        "dry_run": args.dry_run, "removed_lines": plan.removed_lines, "removed_bytes": plan.removed_bytes,
        "kept_lines": plan.kept_lines, "archive": archive,
    });
    project.print(streams, &document, || {
        let (removed, bytes, kept) = (plan.removed_lines, plan.removed_bytes, plan.kept_lines);
        match (&archive, args.dry_run) {
            (Some(archive), _) => {
                format!("removed {removed} lines ({bytes} bytes), kept {kept}\nthe store before: {archive}")
            }
            (None, true) => format!("would remove {removed} lines ({bytes} bytes) and keep {kept}"),
            (None, false) => format!("nothing to remove: all {kept} lines belong to latest versions"),
        }
    })?;
    Ok(Exit::Done)
}
