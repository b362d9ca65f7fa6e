//! What moved, for a reader with one screen: one row for all cases that share a cause, worst first.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{CaseEvaluation, Evaluation, Verdict};

use crate::report::verdicts;

/// Cases that moved for one cause, or one that moved for no cause that is known.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// The cases, worst first; there is always one.
    pub(super) cases: Vec<&'a CaseEvaluation>,
}

impl Row<'_> {
    /// What one engineer would say of it to another.
    pub(super) fn sentence(&self) -> &str {
        let worst = self.cases[0];
        match &worst.cause {
            Some(cause) if self.cases.len() > 1 => &cause.message,
            _ => worst.reasons.first().map_or("", |reason| &reason.message),
        }
    }

    /// How many cases have each verdict, worst first.
    pub(super) fn verdicts(&self) -> Vec<(Verdict, usize)> {
        let count = |verdict| self.cases.iter().filter(|case| case.verdict == verdict).count();
        Verdict::WORST_FIRST
            .into_iter()
            .map(|verdict| (verdict, count(verdict)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

/// The rows; a row stands where the worst of its cases would.
pub(super) fn moved(evaluation: &Evaluation) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for case in evaluation.worst_first().into_iter().filter(|case| !verdicts::is_quiet(case.verdict)) {
        let cluster = case.cause.as_ref().map(|cause| cause.cluster.as_str());
        if let Some(place) = cluster.and_then(|cluster| places.get(cluster)) {
            rows[*place].cases.push(case);
        } else {
            places.extend(cluster.map(|cluster| (cluster, rows.len())));
            rows.push(Row { cases: vec![case] });
        }
    }
    rows
}
