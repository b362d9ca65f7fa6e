//! The rows that follow from the events of a batch.

use std::collections::BTreeMap;

use crate::line::EventLine;
use crate::tables::{HINTS, MergedRows, POLICY_VERSIONS, PREVIEWS, RUN_SOURCES, Row, TOOL_CALLS};

/// The rows of a batch: one for each key, which costs less than one statement for each event.
#[derive(Debug)]
pub(crate) struct BatchRows<'a> {
    tables: [MergedRows<'a>; 5],
    runs: Vec<&'a str>,
}

/// The events of a source in a batch that say something about its row. The other events do not change it.
struct SourceEvents<'a> {
    first: &'a EventLine<'a>,
    newest: &'a EventLine<'a>,
    last: &'a EventLine<'a>,
    starts_and_ends: Vec<&'a EventLine<'a>>,
    /// Events whose identity is not that of the event before. All events of a process state the same one.
    identities: Vec<&'a EventLine<'a>>,
}

impl<'a> BatchRows<'a> {
    /// Merges the rows of events.
    pub(crate) fn new(events: &[&'a EventLine<'a>]) -> Self {
        let (mut calls, mut previews, mut hints, mut policies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for event in events {
            let rows = event.call_rows();
            calls.extend(rows.call);
            previews.extend(rows.preview);
            hints.extend(rows.hint);
            policies.extend(rows.policy);
        }
        let sources = source_events(events);
        let mut runs: Vec<&str> = sources.keys().map(|(run_id, _)| *run_id).collect();
        runs.dedup();
        let tables = [
            MergedRows::new(&RUN_SOURCES, sources.into_values().flat_map(SourceEvents::rows).collect()),
            MergedRows::new(&TOOL_CALLS, calls),
            MergedRows::new(&PREVIEWS, previews),
            MergedRows::new(&HINTS, hints),
            MergedRows::new(&POLICY_VERSIONS, policies),
        ];
        Self { tables, runs }
    }

    pub(crate) fn tables(&self) -> &[MergedRows<'a>] {
        &self.tables
    }

    /// Returns the runs whose rows change.
    pub(crate) fn runs(&self) -> &[&'a str] {
        &self.runs
    }
}

fn source_events<'a>(events: &[&'a EventLine<'a>]) -> BTreeMap<(&'a str, &'a str), SourceEvents<'a>> {
    let mut sources = BTreeMap::new();
    for event in events {
        let source = sources.entry((event.run_id(), event.shim_id())).or_insert_with(|| SourceEvents {
            first: event,
            newest: event,
            last: event,
            starts_and_ends: Vec::new(),
            identities: vec![event],
        });
        if source.identities.last().is_none_or(|last| !event.has_identity_of(last)) {
            source.identities.push(event);
        }
        if event.order() < source.first.order() {
            source.first = event;
        }
        if event.ts() > source.newest.ts() {
            source.newest = event;
        }
        if event.seq() > source.last.seq() {
            source.last = event;
        }
        if event.is_start_or_end() {
            source.starts_and_ends.push(event);
        }
    }
    sources
}

impl<'a> SourceEvents<'a> {
    fn rows(self) -> impl Iterator<Item = Row<'a>> {
        let events = [self.first, self.newest, self.last].into_iter().chain(self.starts_and_ends);
        events.chain(self.identities).map(EventLine::source_row)
    }
}
