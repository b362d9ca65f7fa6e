//! The input of a case: from the cases file, and from the stored request if the artifact links to one.

use std::cell::OnceCell;

use counterproof_artifact::{CaseId, Sha256Digest};
use counterproof_cases::CaseSpec;
use serde_json::Value;

use crate::load::{CaseEnvelope, ComparedRun};
use crate::values;

/// Fields of a request that address it and are not part of the input.
const ADDRESS: [&str; 4] = ["case_id", "version", "run_meta", "model"];

/// The input that one side received for a case.
#[derive(Debug)]
pub(crate) struct CaseInput<'a> {
    case_id: &'a CaseId,
    spec: Option<&'a CaseSpec>,
    run: &'a ComparedRun,
    envelope: Option<&'a CaseEnvelope>,
    request: OnceCell<Option<Value>>,
}

impl<'a> CaseInput<'a> {
    /// Describes the input of a case in a run. The stored request is read on first use.
    pub(crate) fn new(
        case_id: &'a CaseId,
        spec: Option<&'a CaseSpec>,
        run: &'a ComparedRun,
        envelope: Option<&'a CaseEnvelope>,
    ) -> Self {
        Self { case_id, spec, run, envelope, request: OnceCell::new() }
    }

    /// Returns the digest of the case's input, if the run has one.
    fn digest(&self) -> Option<Sha256Digest> {
        self.run.reader().run().case_digests.as_ref()?.get(self.case_id).copied()
    }

    /// True if the runner asked the agent once, and the whole input is known: from the stored request, or from the cases file of
    /// a run whose runner recorded what it asked.
    pub(crate) fn is_all_that_was_asked(&self) -> bool {
        (self.spec.is_some() && self.digest().is_some()) || self.request().is_some()
    }

    /// True if the cases file has the case.
    pub(crate) const fn case_is_known(&self) -> bool {
        self.spec.is_some()
    }

    /// Calls `take` with each value of the case's input in the cases file.
    pub(crate) fn case_texts(&self, mut take: impl FnMut(&Value)) {
        let Some(spec) = self.spec else { return };
        take(&Value::from(spec.input.user.as_str()));
        spec.input.context.iter().for_each(&mut take);
        spec.input.extra.values().for_each(take);
    }

    /// Returns the input of the stored request: the field `input` in the native protocol, else the body without its address.
    pub(crate) fn request(&self) -> Option<&Value> {
        let read = || {
            let mut stored = self.run.read_json(self.envelope?.request.as_ref()?)?;
            let is_native = stored.get("protocol").is_none_or(|protocol| protocol == "native");
            let mut body = stored.get_mut("body")?.take();
            let fields = body.as_object_mut()?;
            if let (true, Some(input)) = (is_native, fields.get_mut("input")) {
                return Some(input.take());
            }
            fields.retain(|field, _| !ADDRESS.contains(&field.as_str()));
            Some(body)
        };
        self.request.get_or_init(read).as_ref()
    }
}

/// True if both sides received the same input. `None` if neither digests nor stored requests are available.
pub(crate) fn is_same(baseline: &CaseInput<'_>, new: &CaseInput<'_>) -> Option<bool> {
    match (baseline.digest(), new.digest()) {
        (Some(old), Some(new)) => Some(old == new),
        _ => Some(values::same(baseline.request()?, new.request()?)),
    }
}
