//! Runner failures with what was kept of them, and the attempts of both sides.

use counterproof_artifact::{AttemptOutcome, Nullable, Side};

use super::case_page::CaseView;
use super::files::FileLink;
use super::places;
use super::shown::{self, Shown};
use super::writer::ReportError;
use crate::messages;

/// Longest snippet that is shown; the contract keeps snippets far shorter.
const LONGEST_SNIPPET: usize = 16 * 1024;

/// A runner failure.
#[derive(Debug, Clone)]
pub(super) struct FailureShown {
    /// Whose it is.
    pub(super) side: &'static str,
    /// The id of the section.
    pub(super) anchor: String,
    /// What is known of it, by name.
    pub(super) facts: Vec<(&'static str, String)>,
    /// Where the answer broke the contract.
    pub(super) violations: Vec<String>,
    /// The start of the body.
    pub(super) snippet: Option<Shown>,
    /// The body and its metadata.
    pub(super) files: Vec<(&'static str, FileLink)>,
}

/// One try of a side.
#[derive(Debug, Clone)]
pub(super) struct AttemptShown {
    /// Whose it is.
    pub(super) side: &'static str,
    /// Counted from 1.
    pub(super) number: u64,
    /// When it started.
    pub(super) started_at: String,
    /// How long it took.
    pub(super) took: String,
    /// True where it ended with an answer.
    pub(super) ok: bool,
    /// How it ended.
    pub(super) outcome: String,
}

/// The failures of the case.
pub(super) fn show(view: &CaseView<'_>) -> Result<Vec<FailureShown>, ReportError> {
    let failed = Side::BOTH.into_iter().filter_map(|side| Some((side, &view.artifact(side).failure()?.failure)));
    failed
        .map(|(side, failure)| {
            let status = failure.status.map(|status| {
                let text = failure.status_text.as_deref().unwrap_or_default();
                shown::visible(format!("{} {text}", status.get()).trim_end())
            });
            let text = |text: &Option<String>| text.as_deref().map(shown::visible);
            let millis = |millis: &counterproof_artifact::Millis| shown::duration(millis.as_f64());
            let facts = [
                ("class", Some(failure.class.to_string())),
                ("status", status),
                ("error", text(&failure.error_name)),
                ("message", text(&failure.error_message)),
                ("asked", Some(shown::visible(&failure.url))),
                ("attempt", Some(failure.attempt.get().to_string())),
                ("took", failure.latency_ms.as_ref().map(millis)),
                ("time allowed", failure.timeout_ms.as_ref().map(millis)),
            ];
            let files = view.files(side);
            let meta = match &failure.full_body_meta_saved_to {
                Nullable::Value(href) => Some(href),
                Nullable::Absent | Nullable::Null => None,
            };
            let mut links = Vec::new();
            for (name, href) in [("whole body", failure.full_body_saved_to.as_ref()), ("what is known of it", meta)] {
                if let Some(href) = href {
                    links.push((name, files.asset(href.as_str())?));
                }
            }
            Ok(FailureShown {
                side: side.as_str(),
                anchor: view.anchors.add(places::failure(side)),
                facts: facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect(),
                violations: messages::violations(failure).iter().map(|violation| shown::visible(violation)).collect(),
                snippet: failure.body_snippet.as_deref().map(|body| view.budget.text(body, LONGEST_SNIPPET)),
                files: links,
            })
        })
        .collect()
}

/// The attempts of both sides.
pub(super) fn attempts(view: &CaseView<'_>) -> Vec<AttemptShown> {
    let of_side = |side: Side| {
        let attempts = view.artifact(side).envelope().map(|case| case.attempts.as_slice()).unwrap_or_default();
        attempts.iter().map(move |attempt| AttemptShown {
            side: side.as_str(),
            number: attempt.attempt.get(),
            started_at: shown::visible(&attempt.started_at),
            took: attempt.latency_ms.as_ref().map(|ms| shown::duration(ms.as_f64())).unwrap_or_default(),
            ok: attempt.outcome == AttemptOutcome::Ok,
            outcome: match (attempt.outcome, attempt.error_class) {
                (AttemptOutcome::Ok, _) => "answered".to_owned(),
                (AttemptOutcome::RunnerError, Some(class)) => class.to_string(),
                (AttemptOutcome::RunnerError, None) => "failed".to_owned(),
            },
        })
    };
    Side::BOTH.into_iter().flat_map(of_side).collect()
}
