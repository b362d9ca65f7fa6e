//! `counterproof ledger runs`: the runs of a ledger, and the tables that `ledger` prints.

use std::collections::BTreeSet;

use counterproof_artifact::{Exit, one_line};
use counterproof_ledger::query::{RunFilter, RunRecord, RunState, open_sources, runs};
use counterproof_ledger::store::EventStore;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::opened::{Place, Since, failed, since};
use crate::command_error::CommandError;
use crate::streams::Streams;

/// The status of a run with a running process.
const RUNNING: &str = "RUNNING";

/// The status of a run that has not ended, and of which no process runs on this machine.
const NOT_ENDED: &str = "NOT ENDED";

/// List runs, the latest first.
///
/// A run of which a process was killed is shown as `FAILED (no end)`. A run is `RUNNING` if a process that records it runs on this
/// machine, and `NOT ENDED` if that is not known.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,

    /// Only runs that started from this time on: a time, or a duration before now such as 2h
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,

    /// Largest number of runs
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    limit: u32,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut store = place.open(streams)?;
    let since = args.since.map(|since| since.sortable(Timestamp::now()));
    let filter = RunFilter { run_id: args.run.clone(), since, limit: args.limit };
    let found = runs(store.as_mut(), &filter).map_err(failed)?;
    // With `--since`, no row is an answer: the run may have started earlier.
    if let Some(run_id) = args.run.as_ref().filter(|_| found.is_empty() && args.since.is_none()) {
        return Err(place.unknown_run(run_id));
    }
    let running = running(store.as_mut(), place)?;
    let status = |run: &RunRecord| status(run, &running);
    if place.is_json {
        let documents: Vec<Value> = found.iter().map(|run| document(run, &status(run))).collect();
        streams.print_document(&crate::streams::to_json(&json!({ "runs": documents })))?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        streams.log(format_args!("no runs in `{}` meet the conditions", place.location));
        return Ok(Exit::Done);
    }
    let names = [
        "started_at",
        "run_id",
        "agent",
        "client",
        "env",
        "principal",
        "workload",
        "status",
        "sources",
        "calls",
        "refused",
        "errors",
    ];
    let rows = found.iter().map(|run| row(run, status(run)));
    streams.print_line(table(names, rows).trim_end())?;
    Ok(Exit::Done)
}

pub(super) fn running(store: &mut dyn EventStore, place: &Place) -> Result<BTreeSet<String>, CommandError> {
    // A living process holds the lock of its spool file, so only processes of this machine are found.
    let sources = open_sources(store).map_err(failed)?;
    Ok(sources.into_iter().filter(|source| place.spool.is_alive(source)).map(|source| source.run_id).collect())
}

pub(super) fn status(run: &RunRecord, running: &BTreeSet<String>) -> String {
    let stated = run.status.as_deref().unwrap_or_default();
    match run.state() {
        RunState::Ended if stated.is_empty() => UNKNOWN.to_owned(),
        RunState::Ended => stated.to_owned(),
        RunState::Lost => format!("{stated} (no end)"),
        RunState::Open if running.contains(&run.run_id) => RUNNING.to_owned(),
        RunState::Open => NOT_ENDED.to_owned(),
    }
}

fn row(run: &RunRecord, status: String) -> [String; 12] {
    [
        cell(run.started_at.as_deref().map(short_time)),
        run.run_id.clone(),
        known(run.agent_id.as_deref()),
        known(run.client.as_deref()),
        known(run.env.as_deref()),
        known(run.principal.as_deref()),
        known(workload(run).as_deref()),
        status,
        run.sources.to_string(),
        run.calls.to_string(),
        run.refused.to_string(),
        run.errors.to_string(),
    ]
}

fn document(run: &RunRecord, status: &str) -> Value {
    let mut document = serde_json::to_value(run).unwrap_or_default();
    document["status"] = json!(status);
    document["state"] = json!(run.state());
    // The ledger has it as a text. Readers of the document get an object.
    let workload: Option<Value> = run.workload_json.as_deref().and_then(|json| serde_json::from_str(json).ok());
    document["workload"] = json!(workload);
    document
}

fn workload(run: &RunRecord) -> Option<String> {
    let workload: Value = serde_json::from_str(run.workload_json.as_deref()?).ok()?;
    let text = |field: &str| workload[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let qualified = |text: String, mark: char, with: Option<String>| match with {
        Some(with) => format!("{text}{mark}{with}"),
        None => text,
    };
    let repository = text("repo").or_else(|| text("repo_path"));
    repository
        .map(|repository| qualified(repository, '@', text("branch")))
        .or_else(|| text("job_id"))
        .or_else(|| text("namespace").map(|namespace| qualified(namespace, '/', text("pod"))))
        .or_else(|| text("user"))
}

const LONGEST: usize = 300;
pub(super) const NO_VALUE: &str = "-";
pub(super) const UNKNOWN: &str = "unknown";

/// Returns a table as text: a line for the names of the columns, and one for each row.
pub(crate) fn table<const N: usize>(names: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut lines = vec![names.map(str::to_owned)];
    // Names come from agents, so they can contain line breaks.
    lines.extend(rows.into_iter().map(|row| row.map(|text| one_line(&text, LONGEST))));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

pub(crate) fn cell(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NO_VALUE.to_owned(), |value| value.to_string())
}

pub(super) fn known(value: Option<&str>) -> String {
    value.filter(|value| !value.is_empty()).unwrap_or(UNKNOWN).to_owned()
}

/// Returns a time of the ledger to the millisecond.
pub(crate) fn short_time(time: &str) -> String {
    match time.strip_suffix('Z').and_then(|time| time.split_once('.')) {
        // The precision of a text is its maximum length: the fraction is cut and not rounded.
        Some((seconds, fraction)) => format!("{seconds}.{fraction:.3}Z"),
        None => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_texts_cannot_break_a_line() {
        let rows = [["a\nb".to_owned(), "2".to_owned()], ["\u{202e}".to_owned(), String::new()]];
        assert_eq!(table(["name", "n"], rows), "name      n\na b       2\n\\u{202e}\n");
    }

    #[test]
    fn times_are_shown_to_the_millisecond() {
        assert_eq!(short_time("2026-01-31T12:00:00.123456789Z"), "2026-01-31T12:00:00.123Z");
        assert_eq!(short_time("2026-01-31T12:00:00.61Z"), "2026-01-31T12:00:00.61Z");
        assert_eq!(short_time("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00Z");
    }
}
