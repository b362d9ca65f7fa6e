//! Cases without a valid answer: runner errors with the recorded response, attempts, and contract violations with an excerpt
//! and a remedy.

use counterproof_artifact::{Attempt, AttemptOutcome, Millis, Nullable, RunnerFailure, Side};
use counterproof_evaluator::{Artifact, CaseEnvelope, messages};
use counterproof_validation::Finding;

use super::context;
use super::context::CaseContext;
use crate::files::FileLink;
use crate::view::display::{self, DisplayText};

/// The size limit of a displayed snippet. The contract limits snippets to far less.
const LONGEST_SNIPPET: usize = 16 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct FailureView {
    pub(crate) side: &'static str,
    pub(crate) anchor: String,
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) violations: Vec<String>,
    /// The start of the response body.
    pub(crate) snippet: Option<DisplayText>,
    /// The full body and its metadata.
    pub(crate) files: Vec<(&'static str, FileLink)>,
}

#[derive(Debug, Clone)]
pub(crate) struct AttemptView {
    pub(crate) side: &'static str,
    pub(crate) number: u64,
    pub(crate) started_at: String,
    pub(crate) took: String,
    /// Whether the attempt returned an answer, and a recorded run succeeded.
    pub(crate) ok: bool,
    pub(crate) outcome: String,
}

pub(crate) fn failures(context: &CaseContext<'_>) -> Vec<FailureView> {
    let of_side = |side: Side| {
        let failure = &context.artifact(side).failure()?.failure;
        Some(FailureView {
            side: side.as_str(),
            anchor: context.anchors.add(context::failure(side)),
            facts: facts(failure),
            violations: messages::violations(failure).iter().map(|violation| display::visible(violation)).collect(),
            snippet: failure.body_snippet.as_deref().map(|body| context.budget.text(body, LONGEST_SNIPPET)),
            files: files(context, side, failure),
        })
    };
    Side::BOTH.into_iter().filter_map(of_side).collect()
}

fn facts(failure: &RunnerFailure) -> Vec<(&'static str, String)> {
    let status = failure.status.map(|status| {
        // A response may have a status without a text.
        let text = failure.status_text.as_deref().unwrap_or_default();
        display::visible(format!("{} {text}", status.get()).trim_end())
    });
    let text = |text: &Option<String>| text.as_deref().map(display::visible);
    let millis = |millis: &Millis| display::duration(millis.as_f64());
    let facts = [
        ("class", Some(failure.class.to_string())),
        ("status", status),
        ("error", text(&failure.error_name)),
        ("message", text(&failure.error_message)),
        ("URL", Some(display::visible(&failure.url))),
        ("attempt", Some(failure.attempt.get().to_string())),
        ("duration", failure.latency_ms.as_ref().map(millis)),
        ("timeout", failure.timeout_ms.as_ref().map(millis)),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}

fn files(context: &CaseContext<'_>, side: Side, failure: &RunnerFailure) -> Vec<(&'static str, FileLink)> {
    let metadata = match &failure.full_body_meta_saved_to {
        Nullable::Value(href) => Some(href),
        Nullable::Absent | Nullable::Null => None,
    };
    let files = [("full body", failure.full_body_saved_to.as_ref()), ("body metadata", metadata)];
    files.into_iter().filter_map(|(name, href)| Some((name, context.asset(side, href?.as_str())))).collect()
}

pub(crate) fn attempts(context: &CaseContext<'_>) -> Vec<AttemptView> {
    let of_side = |side: Side| {
        let case = context.artifact(side).envelope();
        case.into_iter()
            .flat_map(move |case| case.attempts.iter().map(move |attempt| attempt_view(side, case, attempt)))
    };
    Side::BOTH.into_iter().flat_map(of_side).collect()
}

fn attempt_view(side: Side, case: &CaseEnvelope, attempt: &Attempt) -> AttemptView {
    let recorded = case.recorded.as_ref();
    AttemptView {
        side: side.as_str(),
        number: attempt.attempt.get(),
        started_at: display::visible(&attempt.started_at),
        took: attempt.latency_ms.as_ref().map(|ms| display::duration(ms.as_f64())).unwrap_or_default(),
        ok: attempt.outcome == AttemptOutcome::Ok && recorded.is_none_or(|recorded| recorded.succeeded),
        outcome: match (attempt.outcome, attempt.error_class) {
            // A recorded run has a status instead of an answer.
            (AttemptOutcome::Ok, _) => {
                let ending = recorded.and_then(|recorded| recorded.ending.as_deref());
                display::visible(ending.unwrap_or("answered"))
            }
            (AttemptOutcome::RunnerError, Some(class)) => class.to_string(),
            (AttemptOutcome::RunnerError, None) => "failed".to_owned(),
        },
    }
}

const MOST_VIOLATIONS: usize = 200;

/// An artifact that violates the contract.
#[derive(Debug, Clone)]
pub(crate) struct InvalidArtifactView {
    pub(crate) side: &'static str,
    pub(crate) anchor: String,
    pub(crate) violations: Vec<ViolationView>,
    /// What is not listed; empty where everything is.
    pub(crate) more: String,
}

#[derive(Debug, Clone)]
pub(crate) struct ViolationView {
    pub(crate) code: String,
    /// File, line and column, and the pointer.
    pub(crate) location: String,
    pub(crate) message: String,
    pub(crate) expected: String,
    pub(crate) remedy: String,
    pub(crate) excerpt: Option<ExcerptView>,
}

/// Lines of a file with the invalid part marked.
#[derive(Debug, Clone)]
pub(crate) struct ExcerptView {
    pub(crate) before: String,
    pub(crate) marked: String,
    pub(crate) after: String,
}

pub(crate) fn violations(context: &CaseContext<'_>) -> Vec<InvalidArtifactView> {
    let invalid = Side::BOTH.into_iter().filter_map(|side| match context.artifact(side) {
        Artifact::Invalid(findings) => Some((side, findings)),
        _ => None,
    });
    invalid.map(|(side, findings)| side_view(context, side, findings)).collect()
}

fn side_view(context: &CaseContext<'_>, side: Side, findings: &[Finding]) -> InvalidArtifactView {
    let hidden = findings.len().saturating_sub(MOST_VIOLATIONS);
    InvalidArtifactView {
        side: side.as_str(),
        anchor: context.anchors.add(context::violations(side)),
        violations: findings
            .iter()
            .take(MOST_VIOLATIONS)
            .map(|finding| violation_view(context, side, finding))
            .collect(),
        more: if hidden > 0 { format!("{hidden} more violations") } else { String::new() },
    }
}

fn violation_view(context: &CaseContext<'_>, side: Side, finding: &Finding) -> ViolationView {
    // The path within the run. The location of the run folder is private to this machine.
    let file = finding.file.strip_prefix(context.files(side).run_folder()).ok();
    let file = file.map_or_else(|| finding.file.file_name().unwrap_or_default(), |file| file.as_str());
    let position = finding.position.map(|position| format!("line {}, column {}", position.line, position.column));
    let pointer = Some(display::visible(&finding.pointer)).filter(|pointer| !pointer.is_empty());
    let location: Vec<_> = [Some(display::visible(file)), position, pointer].into_iter().flatten().collect();
    // A span that splits a character has no excerpt: none is better than a wrong mark.
    let excerpt = finding.excerpt.as_ref().and_then(|excerpt| {
        Some(ExcerptView {
            before: display::visible(excerpt.text.get(..excerpt.span.start)?),
            marked: display::visible(excerpt.text.get(excerpt.span.clone())?),
            after: display::visible(excerpt.text.get(excerpt.span.end..)?),
        })
    });
    ViolationView {
        code: finding.code.to_string(),
        location: location.join(", "),
        message: display::visible(&finding.message),
        expected: display::visible(&finding.expected),
        remedy: display::visible(&finding.remedy),
        excerpt,
    }
}
