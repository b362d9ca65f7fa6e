//! Contract violations of an artifact, each with its location, an excerpt and a remedy.

use counterproof_artifact::Side;
use counterproof_validation::Finding;

use super::anchors;
use super::context::CaseContext;
use crate::view::display;
use counterproof_evaluator::Artifact;

/// The maximum number of listed violations per artifact.
const MOST_VIOLATIONS: usize = 200;

/// An artifact that violates the contract.
#[derive(Debug, Clone)]
pub(crate) struct InvalidArtifactView {
    pub(crate) side: &'static str,
    /// The id of the section.
    pub(crate) anchor: String,
    pub(crate) violations: Vec<ViolationView>,
    /// What is not listed; empty where everything is.
    pub(crate) more: String,
}

#[derive(Debug, Clone)]
pub(crate) struct ViolationView {
    /// The stable code of the rule.
    pub(crate) code: String,
    /// File, line and column, and the pointer.
    pub(crate) location: String,
    pub(crate) message: String,
    pub(crate) expected: String,
    pub(crate) remedy: String,
    /// The lines around the violation.
    pub(crate) excerpt: Option<ExcerptView>,
}

/// Lines of a file with the invalid part marked.
#[derive(Debug, Clone)]
pub(crate) struct ExcerptView {
    /// Before the marked part.
    pub(crate) before: String,
    pub(crate) marked: String,
    /// After the marked part.
    pub(crate) after: String,
}

/// The artifacts of the case that violate the contract.
pub(crate) fn view(context: &CaseContext<'_>) -> Vec<InvalidArtifactView> {
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
        anchor: context.anchors.add(anchors::violations(side)),
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
