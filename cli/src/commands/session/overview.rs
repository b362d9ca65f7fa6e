//! `counterproof session overview`: the sums and milestones of a session.

use counterproof_artifact::{Exit, one_line};
use counterproof_sessions::store::SessionOverview;
use counterproof_sessions::summary::MilestoneRecord;
use jiff::Timestamp;

use super::opened::{open, unknown};
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, cell, failed, short_time};
use crate::streams::{Streams, to_json};

/// Print the sums of a session: tokens, calls by tool, changed files, milestones, errors, and what could not be seen.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = open(place, streams)?;
    let overview = store.overview(&args.id).map_err(failed)?.ok_or_else(|| unknown(&args.id, place))?;
    if place.is_json {
        streams.print_document(&to_json(&overview))?;
    } else {
        streams.print_line(text(&overview).trim_end())?;
    }
    Ok(Exit::Done)
}

/// Lines of a list that are shown. `--json` has all of them.
const LISTED: usize = 20;

const LONGEST: usize = 160;

fn text(overview: &SessionOverview) -> String {
    let SessionOverview { tokens, coverage, .. } = overview;
    let duration = overview.duration_seconds.map(|seconds| format!("{seconds:.1} s"));
    let by_tool: Vec<_> = overview.tool_calls_by_tool.iter().map(|(tool, count)| format!("{tool} {count}")).collect();
    let facts = [
        ("session", overview.session_id.clone()),
        ("title", cell(overview.title.as_ref())),
        ("status", overview.status.clone()),
        ("started", short_time(&overview.started_at)),
        ("duration", cell(duration)),
        ("model calls", overview.total_llm_calls.to_string()),
        (
            "tokens",
            format!(
                "{} (prompt {}, of which cached {}; completion {})",
                cell(overview.total_tokens),
                cell(tokens.prompt),
                cell(tokens.cached),
                cell(tokens.completion)
            ),
        ),
        ("cost", cell(overview.cost)),
        ("tool calls", format!("{} ({})", overview.total_tool_calls, by_tool.join(", "))),
        ("commands", overview.commands.to_string()),
        ("checkpoints", overview.checkpoints_available.to_string()),
        (
            "seen",
            format!(
                "model calls {}, tool calls {}, files {}, commands {}",
                coverage.llm_calls.word(),
                coverage.tool_calls.word(),
                coverage.files.word(),
                coverage.commands.word()
            ),
        ),
    ];
    let parent = overview
        .parent
        .as_ref()
        .map(|parent| ("fork of", at_checkpoint(&parent.session_id, parent.checkpoint_id.as_ref())));
    let mut lines: Vec<String> = facts
        .into_iter()
        .chain(parent)
        .map(|(name, value)| format!("{name:12}  {}", one_line(&value, LONGEST)))
        .collect();
    let mut list = |name: &str, entries: Vec<String>| {
        if entries.is_empty() {
            return;
        }
        lines.push(format!("\n{name} ({}):", entries.len()));
        lines.extend(entries.iter().take(LISTED).map(|entry| format!("  {}", one_line(entry, LONGEST))));
        if entries.len() > LISTED {
            lines.push(format!("  … and {} more", entries.len() - LISTED));
        }
    };
    let milestones = &overview.milestones;
    let of = |it: &MilestoneRecord| format!("{}  {}  {}", at(it.seq, it.timestamp), it.kind.word(), it.text);
    list("milestones", milestones.iter().map(of).collect());
    list("files changed", overview.files_changed.clone());
    let errors = overview.errors.iter().map(|it| format!("{}  {}", at(it.seq, it.timestamp), it.message));
    list("errors", errors.collect());
    let forks = overview.forks.iter();
    list(
        "forks",
        forks
            .map(|it| format!("{}  {}", at_checkpoint(&it.session_id, it.checkpoint_id.as_ref()), it.status))
            .collect(),
    );
    lines.join("\n")
}

/// Returns a session, and the checkpoint at which another one was forked from it.
fn at_checkpoint(session_id: &str, checkpoint_id: Option<&String>) -> String {
    let checkpoint = checkpoint_id.map(|id| format!(", checkpoint {id}"));
    format!("{session_id}{}", checkpoint.unwrap_or_default())
}

/// Returns the number and the time of a record.
fn at(seq: Option<u64>, timestamp: Timestamp) -> String {
    format!("{:>5}  {}", cell(seq), short_time(&timestamp.to_string()))
}
