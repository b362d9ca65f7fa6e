//! `counterproof contract status`: the contracts by urgency.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_contracts::control_room::{ControlRoom, ControlRoomOptions, WorkProcess};
use counterproof_contracts::execution::host_name;
use counterproof_report::contracts::write_control_room;

use super::failure::Failure;
use super::project::{Project, now};
use crate::streams::Streams;

/// Contracts of each tier in the text.
const LISTED: usize = 20;

/// Show the contracts by urgency: needs decision, anomaly, completed, running, queued.
///
/// With `--html`, the same is written as a page without scripts, which opens from disk.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write a page into this folder instead
    #[arg(long, value_name = "DIR")]
    html: Option<Utf8PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &Args, project: &Project, streams: &mut Streams) -> Result<Exit, Failure> {
    let store = project.open(streams)?;
    let host = host_name();
    let is_running = |process: &WorkProcess| process.is_running_on(&host);
    let room = ControlRoom::read(&store, &ControlRoomOptions::new(now(), &is_running))?;
    if let Some(folder) = &args.html {
        let page = write_control_room(&room, folder)?;
        project.print(streams, &serde_json::json!({ "page": page }), || format!("control room: {page}"))?;
        return Ok(Exit::Done);
    }
    project.print(streams, &room, || room.to_text(LISTED))?;
    Ok(Exit::Done)
}
