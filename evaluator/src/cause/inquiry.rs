//! Finds the root cause of the difference between two artifacts.

use counterproof_artifact::evaluation::{Cause, ExpectationResult, SidePointer, Verdict};
use counterproof_artifact::{Sha256Digest, Side, Sides};

use crate::diff::json::{self, JsonChanges};
use crate::diff::{Differences, WithEvidence};
use crate::grounding::Provenance;
use crate::judge::findings::Findings;
use crate::load::case_input::{self, CaseInput};
use crate::load::{Artifact, LoadedAnswer, LoadedFailure};
use crate::messages;
use crate::values::text;

use super::CauseCode;
use super::effect::{self, Effect};
use super::name::{self, CauseDescription};
use super::walk;

/// Two answers that differ, and how their elements are connected.
#[derive(Clone, Copy)]
pub(crate) struct Inquiry<'a> {
    /// The baseline's answer.
    pub baseline: WithEvidence<'a>,
    /// New's answer.
    pub new: WithEvidence<'a>,
    /// The differences.
    pub differences: &'a Differences,
    /// The counterparts of elements, and the sources of values.
    pub provenance: &'a Provenance<'a>,
    /// The verdict.
    pub verdict: Verdict,
    /// The expectations of the case.
    pub expectations: &'a [ExpectationResult],
    /// The findings on new.
    pub findings: &'a Findings,
    /// The input of each side.
    pub inputs: Sides<&'a CaseInput<'a>>,
}

impl<'a> Inquiry<'a> {
    pub(super) const fn answers(&self) -> Sides<&'a LoadedAnswer> {
        Sides { baseline: self.baseline.loaded, new: self.new.loaded }
    }

    pub(super) const fn side(&self, side: Side) -> WithEvidence<'a> {
        match side {
            Side::Baseline => self.baseline,
            Side::New => self.new,
        }
    }
}

/// Returns the cause of the difference between two answers; `None` where nothing differs.
pub(crate) fn of_answers(inquiry: Inquiry<'_>) -> Option<Cause> {
    let effect = effect::choose(&inquiry)?;
    if case_input::is_same(inquiry.inputs.baseline, inquiry.inputs.new) == Some(false) {
        return Some(input_changed(&inquiry, effect));
    }
    let walked = walk::back(&inquiry, effect);
    let named = match &walked {
        Some(found) => name::of_event(&inquiry, found.place),
        None => name::of_effect(&inquiry, effect),
    };
    let path = walked.map_or_else(|| vec![effect.pointer(&inquiry)], |found| found.path);
    Some(cause(named, path))
}

/// Returns the cause of a case with a runner error.
pub(crate) fn of_failures(baseline: &Artifact, new: &Artifact) -> Option<Cause> {
    let failed: Vec<(Side, &LoadedFailure)> = [(Side::New, new), (Side::Baseline, baseline)]
        .into_iter()
        .filter_map(|(side, artifact)| Some((side, artifact.failure()?)))
        .collect();
    let (side, first) = failed.first()?;
    let failure = &first.failure;
    let status = failure.status.map(|status| format!(" {}", status.get())).unwrap_or_default();
    let pointers: Vec<_> =
        failed.iter().map(|(side, _)| SidePointer { side: *side, pointer: "/runner_failure".to_owned() }).collect();
    let named = CauseDescription {
        code: CauseCode::RunnerFailure,
        place: format!("{}{status}", failure.class),
        shape: format!("{} of {side}", failure.error_name.as_deref().unwrap_or_default()),
        message: format!("runner error on {side}: {}", messages::failure(failure)),
        pointers: pointers.clone(),
    };
    Some(cause(named, pointers))
}

fn input_changed(inquiry: &Inquiry<'_>, effect: Effect) -> Cause {
    let requests = (inquiry.inputs.baseline.request(), inquiry.inputs.new.request());
    let changes = match requests {
        (Some(old), Some(new)) => json::diff(old, new),
        _ => JsonChanges::default(),
    };
    let what = if changes.is_empty() { String::new() } else { format!(": {}", messages::changes(&changes)) };
    let pointers = Side::BOTH.into_iter().filter(|side| inquiry.inputs.get(*side).request().is_some());
    let pointers: Vec<_> =
        pointers.map(|side| SidePointer { side, pointer: "/request_asset_href".to_owned() }).collect();
    let named = CauseDescription {
        code: CauseCode::InputChanged,
        place: name::place("input", changes.first()),
        shape: name::shape(changes.first()),
        message: format!("the two sides received different input{what}"),
        pointers: pointers.clone(),
    };
    let mut path = vec![effect.pointer(inquiry)];
    path.extend(pointers);
    cause(named, path)
}

fn cause(named: CauseDescription, path: Vec<SidePointer>) -> Cause {
    // A change of form is one change, whatever tools it shows in.
    let place = if named.code == CauseCode::ArgumentForm { "" } else { &named.place };
    let identity = [named.code.as_str(), place, &named.shape].join("\0");
    Cause {
        code: named.code.as_str().to_owned(),
        place: text::one_line(&named.place, 120),
        message: named.message,
        pointers: named.pointers,
        path,
        cluster: Sha256Digest::from_bytes(identity.as_bytes()).short(),
    }
}
