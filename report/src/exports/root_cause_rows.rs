//! Changed cases grouped by root cause for the Markdown summary, worst first.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, SeverityLevel, Verdict};

use crate::view::verdict;

/// Changed cases with the same root cause, or one case whose root cause is unknown.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The cases, worst first; at least one.
    pub(crate) cases: Vec<&'a CaseEvaluation>,
}

impl Row<'_> {
    /// The message of the root cause, or of the first reason.
    pub(crate) fn message(&self) -> &str {
        let worst = self.cases[0];
        match &worst.cause {
            Some(cause) if self.cases.len() > 1 => &cause.message,
            _ => worst.reasons.first().map_or("", |reason| &reason.message),
        }
    }

    /// The highest level of severity; empty if nothing counts.
    pub(crate) fn severity(&self) -> &'static str {
        self.cases.iter().filter_map(|case| case.severity_level()).max().map_or("", SeverityLevel::as_str)
    }

    /// The number of cases by verdict, worst first.
    pub(crate) fn verdicts(&self) -> Vec<(Verdict, usize)> {
        let count = |verdict| self.cases.iter().filter(|case| case.verdict == verdict).count();
        Verdict::WORST_FIRST
            .into_iter()
            .map(|verdict| (verdict, count(verdict)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

/// The rows, sorted by their worst case.
pub(crate) fn rows(evaluation: &Evaluation) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut indexes: HashMap<&str, usize> = HashMap::new();
    for case in evaluation.worst_first().into_iter().filter(|case| !verdict::is_quiet(case.verdict)) {
        let cluster = case.cause.as_ref().map(|cause| cause.cluster.as_str());
        if let Some(index) = cluster.and_then(|cluster| indexes.get(cluster)) {
            rows[*index].cases.push(case);
        } else {
            indexes.extend(cluster.map(|cluster| (cluster, rows.len())));
            rows.push(Row { cases: vec![case] });
        }
    }
    rows
}
