//! Rules for runner failures: a snippet has a complete body, and the links to body and metadata are valid.

use serde_json::Value;

use super::hrefs;
use crate::Code;
use crate::finding::Findings;
use crate::run_folder::RunFolder;

/// Checks the links of a failure to its body and to the metadata of the body.
pub(crate) fn check(document: &Value, folder: Option<&RunFolder>, findings: &mut Findings) {
    let failure = &document["runner_failure"];
    let body = &failure["full_body_saved_to"];
    if failure["body_snippet"].is_string() && body.is_null() {
        findings.add(
            Code::SnippetWithoutBody,
            if failure.get("full_body_saved_to").is_some() {
                "/runner_failure/full_body_saved_to"
            } else {
                "/runner_failure"
            },
            "`body_snippet` has a value, but `full_body_saved_to` has none",
            "the href of the whole body, under `assets/`",
        );
    }
    for field in ["full_body_saved_to", "full_body_meta_saved_to"] {
        let pointer = format!("/runner_failure/{field}");
        let href = hrefs::parse_asset(&failure[field], &pointer, findings);
        if let (Some(href), Some(folder)) = (href, folder) {
            hrefs::check_target(&href, &pointer, None, folder, findings);
        }
    }
}
