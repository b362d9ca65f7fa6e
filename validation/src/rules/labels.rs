//! Rules for the labels of a baseline: they are about cases of the run.

use std::collections::HashSet;

use serde_json::Value;

use crate::Code;
use crate::excerpt::quote;
use crate::finding::Findings;
use crate::json_value::items;
use crate::rules::names;
use crate::rules::schema;
use counterproof_artifact::pointer;
use counterproof_artifact::schema::Kind;

/// Checks the document alone. Returns false where it is another kind of document.
pub(crate) fn check(labels: &Value, findings: &mut Findings) -> bool {
    if !schema::check(Kind::Labels, labels, findings) {
        return false;
    }
    for (id, _) in labels["solved"].as_object().into_iter().flatten() {
        names::case_id(&Value::from(id.as_str()), &pointer::child("/solved", id), findings);
    }
    true
}

/// Checks the labels against the run.
pub(crate) fn check_folder(run: &Value, labels: &Value, findings: &mut Findings) {
    let selected: HashSet<&str> = items(run, "selected_case_ids").filter_map(|(_, id)| id.as_str()).collect();
    let labelled = labels["solved"].as_object().into_iter().flatten().map(|(id, _)| id);
    for id in labelled.filter(|id| !selected.contains(id.as_str())) {
        let message = format!("the case {} is not among the run's `selected_case_ids`", quote(id));
        findings.add(Code::CaseNotSelected, pointer::child("/solved", id), message, "a label of a selected case");
    }
}
