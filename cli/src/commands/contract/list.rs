//! `counterproof contract list` and `status`: the latest versions of contracts, and how many are in which state.

use camino::Utf8PathBuf;
use counterproof_artifact::{Exit, one_line};
use counterproof_contracts::State;
use counterproof_contracts::control_room::{ControlRoom, ControlRoomOptions, WorkProcess};
use counterproof_contracts::execution::host_name;
use counterproof_contracts::graph::{Graph, GraphQuery, MAX_HTML_NODES};
use counterproof_report::contracts::{RoomLinks, write_control_room};
use serde_json::json;

use super::project::{Project, now};
use super::run_reporter::Failure;
use crate::streams::Streams;
use crate::streams::to_json_line;

/// The longest summary in a list, in characters.
const SUMMARY_CHARS: usize = 160;

/// List the contracts with their states, in the order of their ids.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only contracts in this state
    #[arg(long, value_name = "STATE")]
    state: Option<State>,

    /// Only contracts of this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let store = project.open(streams)?;
    let mut listed = 0_u64;
    if project.is_json {
        streams.print_document("{\"contracts\": [\n")?;
    }
    for status in store.statuses()? {
        let is_other_state = args.state.is_some_and(|state| state != status.state);
        if is_other_state || args.project.as_ref().is_some_and(|project| *project != status.project) {
            continue;
        }
        listed += 1;
        if project.is_json {
            let row = json!({
                "id": status.id, "version": status.version, "state": status.state, "since": status.since,
                "owner": status.owner, "awaits_approval": status.awaits_approval, "project": status.project,
                "summary": status.summary,
            });
            streams.print_document(&format!("{}{}", if listed > 1 { ",\n" } else { "" }, to_json_line(&row)))?;
        } else {
            let owner = status.owner.as_deref().map_or_else(String::new, |owner| format!("  [{owner}]"));
            let waits = if status.awaits_approval { "  (needs approval)" } else { "" };
            // A row is one line, and a summary can have several.
            let (state, id, version) = (status.state.as_str(), &status.id, status.version);
            streams.print_line(format_args!(
                "{state:<12} {id}@{version}{owner}{waits}  {}",
                one_line(&status.summary, SUMMARY_CHARS)
            ))?;
        }
    }
    if project.is_json {
        streams.print_document("\n]}\n")?;
    } else if listed == 0 {
        streams.print_line("no contracts")?;
    }
    Ok(Exit::Done)
}

/// Contracts of each tier in the text.
const LISTED: usize = 20;

/// Show the contracts by urgency: needs decision, anomaly, completed, running, queued.
///
/// With `--html`, the same and the graph are written as pages without scripts, which open from disk.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Write pages into this folder instead
    #[arg(long, value_name = "DIR")]
    html: Option<Utf8PathBuf>,
}

/// Runs the command.
pub(super) fn run_status(args: &StatusArgs, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let store = project.open(streams)?;
    let host = host_name();
    // A process can be looked for on its own host only.
    let is_running = |process: &WorkProcess| process.is_running_on(&host);
    let command = project.command();
    let options = ControlRoomOptions { command: &command, ..ControlRoomOptions::new(now(), &is_running) };
    let room = ControlRoom::read(&store, &options)?;
    if let Some(folder) = &args.html {
        // A graph that is too large for a page is left out, and so is one that an edited file has damaged.
        let graph = Graph::read(&store, &GraphQuery { around: &[], max_nodes: MAX_HTML_NODES }).ok();
        let files = store.files_folder();
        let page = write_control_room(&room, &RoomLinks { graph: graph.as_ref(), evidence: Some(&files) }, folder)?;
        project.print(streams, &serde_json::json!({ "page": page }), || format!("control room: {page}"))?;
        return Ok(Exit::Done);
    }
    project.print(streams, &room, || room.to_text(LISTED))?;
    Ok(Exit::Done)
}
