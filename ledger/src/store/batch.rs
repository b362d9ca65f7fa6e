//! The rows that follow from the events of a batch.

use std::collections::BTreeSet;

use crate::line::EventRows;
use crate::tables::{HINTS, MergedRows, POLICY_VERSIONS, PREVIEWS, RUN_SOURCES, TOOL_CALLS};

/// The rows of a batch: one for each key, which costs less than one statement for each event.
#[derive(Debug)]
pub(crate) struct BatchRows {
    tables: [MergedRows; 5],
    runs: BTreeSet<String>,
}

impl BatchRows {
    /// Merges the rows of events.
    pub(crate) fn new(events: impl IntoIterator<Item = EventRows>) -> Self {
        let mut sources = MergedRows::new(&RUN_SOURCES);
        let mut calls = MergedRows::new(&TOOL_CALLS);
        let mut previews = MergedRows::new(&PREVIEWS);
        let mut hints = MergedRows::new(&HINTS);
        let mut policies = MergedRows::new(&POLICY_VERSIONS);
        let mut runs = BTreeSet::new();
        for event in events {
            if let Some(run_id) = event.source.cells()[0].as_text()
                && !runs.contains(run_id)
            {
                runs.insert(run_id.to_owned());
            }
            sources.add(event.source);
            calls.extend(event.call);
            previews.extend(event.preview);
            hints.extend(event.hint);
            policies.extend(event.policy);
        }
        Self { tables: [sources, calls, previews, hints, policies], runs }
    }

    /// Returns the rows of each table.
    pub(crate) fn tables(&self) -> &[MergedRows] {
        &self.tables
    }

    /// Returns the runs whose rows change.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(String::as_str)
    }
}
