//! The row of a run: what its sources have in common.

use crate::tables::{Cell, RUN_SOURCES, RUNS, Row};

/// The status of a run whose process was killed.
pub(crate) const LOST_STATUS: &str = "FAILED";

/// How the guard writes an identity that no one has stated.
const UNKNOWN: &str = "unknown";

/// Computes the row of a run from the rows of its sources. A run without sources has no row.
///
/// The run has ended when all sources have ended, and its status is their worst one. A source whose process was killed counts as failed
/// and leaves the end of the run open. The identity of the run is that of the earliest source which states it.
pub(crate) fn run_row<'a>(sources: &'a [Row<'_>]) -> Option<Row<'a>> {
    let mut by_start: Vec<&Row<'_>> = sources.iter().collect();
    by_start.sort_by_key(|source| source.get(&RUN_SOURCES, "first_event"));
    let run_id = by_start.first()?.get(&RUN_SOURCES, "run_id").borrow();
    let known = |name: &'static str| {
        sources.iter().map(move |source| source.get(&RUN_SOURCES, name)).filter(|it| **it != Cell::Null)
    };
    let is_closed = |source: &Row<'_>| has_ended(source) || is_lost(source);
    let closed = sources.iter().all(is_closed);
    let worst = sources.iter().map(status).max_by_key(|status| (severity(status), *status));
    let ended_at = known("ended_at").max().filter(|_| sources.iter().all(has_ended));
    let of_first = |name: &'static str| {
        let stated = by_start.iter().map(|source| source.get(&RUN_SOURCES, name)).filter(|it| **it != Cell::Null);
        let known = stated.clone().find(|it| it.as_text() != Some(UNKNOWN));
        known.or(stated.clone().next()).map(Cell::borrow).into()
    };
    Some(Row::new(
        &RUNS,
        [
            run_id,
            of_first("agent_id"),
            of_first("client"),
            of_first("env"),
            of_first("principal"),
            of_first("workload_json"),
            started_at(sources),
            known("last_event_at").max().map(Cell::borrow).into(),
            ended_at.map(Cell::borrow).into(),
            worst.filter(|_| closed).into(),
            of_first("metadata_json"),
        ],
    ))
}

/// Returns the earliest start. Where no start was recorded, it is the time of the first event.
fn started_at<'a>(sources: &'a [Row<'_>]) -> Cell<'a> {
    let start = |source: &'a Row<'_>| match source.get(&RUN_SOURCES, "started_at") {
        Cell::Null => {
            let first = source.get(&RUN_SOURCES, "first_event").as_text()?;
            first.split(' ').next().map(Cell::from)
        }
        stated => Some(stated.borrow()),
    };
    sources.iter().filter_map(start).min().into()
}

fn has_ended(source: &Row<'_>) -> bool {
    *source.get(&RUN_SOURCES, "ended_at") != Cell::Null
}

fn is_lost(source: &Row<'_>) -> bool {
    source.get(&RUN_SOURCES, "is_lost").as_integer() == Some(1)
}

fn status<'a>(source: &'a Row<'_>) -> &'a str {
    let stated = source.get(&RUN_SOURCES, "status").as_text();
    if has_ended(source) { stated.unwrap_or_default() } else { LOST_STATUS }
}

/// Returns a number that is higher for a worse status.
fn severity(status: &str) -> u8 {
    match status {
        "SUCCEEDED" => 0,
        "CANCELLED" => 2,
        "TERMINATED" => 3,
        "FAILED" => 4,
        // A status of a later version.
        _ => 1,
    }
}
