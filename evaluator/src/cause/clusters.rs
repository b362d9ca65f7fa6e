//! Groups cases by root cause, so that a change with the same cause in many cases is one entry.

use std::collections::HashMap;

use counterproof_artifact::evaluation::{CaseEvaluation, Cause, Cluster};

use super::CauseCode;

/// The place that the cases of a cluster share. A change of form has none: it shows in many tools.
fn place(cause: &Cause) -> String {
    let is_form = cause.code == CauseCode::ArgumentForm.as_str();
    if is_form { "arguments".to_owned() } else { cause.place.clone() }
}

/// Returns the clusters, largest first; of equally large ones, the one with the earlier case first.
pub(crate) fn clusters(cases: &[CaseEvaluation]) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for case in cases {
        let Some(cause) = &case.cause else { continue };
        let place = *places.entry(&cause.cluster).or_insert_with(|| {
            clusters.push(Cluster {
                id: cause.cluster.clone(),
                code: cause.code.clone(),
                place: place(cause),
                message: cause.message.clone(),
                case_ids: Vec::new(),
            });
            clusters.len() - 1
        });
        clusters[place].case_ids.push(case.case_id.clone());
    }
    clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.case_ids.len()));
    clusters
}
