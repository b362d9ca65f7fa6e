//! What is wrong with an artifact that breaks the contract: each violation with its place, the lines there and a remedy.

use counterproof_artifact::Side;
use counterproof_validation::Finding;

use super::case_page::CaseView;
use super::places;
use super::shown;
use crate::load::Artifact;

/// Most violations of one artifact that are listed.
const MOST_FINDINGS: usize = 200;

/// An artifact that breaks the contract.
#[derive(Debug, Clone)]
pub(super) struct InvalidShown {
    /// Whose it is.
    pub(super) side: &'static str,
    /// The id of the section.
    pub(super) anchor: String,
    /// The violations.
    pub(super) findings: Vec<FindingShown>,
    /// What is not listed, in words; empty where all is.
    pub(super) more: String,
}

/// A violation.
#[derive(Debug, Clone)]
pub(super) struct FindingShown {
    /// The stable code of the rule.
    pub(super) code: String,
    /// File, line and column, and the pointer.
    pub(super) place: String,
    /// What is there.
    pub(super) message: String,
    /// What was expected instead.
    pub(super) expected: String,
    /// What to do about it.
    pub(super) remedy: String,
    /// The lines there.
    pub(super) excerpt: Option<ExcerptShown>,
}

/// Lines of a file, with what the violation is about marked.
#[derive(Debug, Clone)]
pub(super) struct ExcerptShown {
    /// Before the marked part.
    pub(super) before: String,
    /// The marked part.
    pub(super) marked: String,
    /// After the marked part.
    pub(super) after: String,
}

/// The artifacts of the case that break the contract.
pub(super) fn show(view: &CaseView<'_>) -> Vec<InvalidShown> {
    let invalid = Side::BOTH.into_iter().filter_map(|side| match view.artifact(side) {
        Artifact::Invalid(findings) => Some((side, findings)),
        _ => None,
    });
    invalid.map(|(side, findings)| show_side(view, side, findings)).collect()
}

fn show_side(view: &CaseView<'_>, side: Side, findings: &[Finding]) -> InvalidShown {
    let hidden = findings.len().saturating_sub(MOST_FINDINGS);
    InvalidShown {
        side: side.as_str(),
        anchor: view.anchors.add(places::violations(side)),
        findings: findings.iter().take(MOST_FINDINGS).map(|finding| show_finding(view, side, finding)).collect(),
        more: if hidden > 0 { format!("{hidden} more violations") } else { String::new() },
    }
}

fn show_finding(view: &CaseView<'_>, side: Side, finding: &Finding) -> FindingShown {
    // The file is known by its place within the run: where the run lies is this machine's business.
    let file = finding.file.strip_prefix(view.files(side).run_folder()).ok();
    let file = file.map_or_else(|| finding.file.file_name().unwrap_or_default(), |file| file.as_str());
    let position = finding.position.map(|position| format!("line {}, column {}", position.line, position.column));
    let pointer = Some(shown::visible(&finding.pointer)).filter(|pointer| !pointer.is_empty());
    let place: Vec<_> = [Some(shown::visible(file)), position, pointer].into_iter().flatten().collect();
    let excerpt = finding.excerpt.as_ref().and_then(|excerpt| {
        Some(ExcerptShown {
            before: shown::visible(excerpt.text.get(..excerpt.span.start)?),
            marked: shown::visible(excerpt.text.get(excerpt.span.clone())?),
            after: shown::visible(excerpt.text.get(excerpt.span.end..)?),
        })
    });
    FindingShown {
        code: finding.code.to_string(),
        place: place.join(", "),
        message: shown::visible(&finding.message),
        expected: shown::visible(&finding.expected),
        remedy: shown::visible(&finding.remedy),
        excerpt,
    }
}
