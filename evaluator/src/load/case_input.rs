//! What an agent was asked: the case of the cases file, and the request as it was sent, where the artifact leads to it.

use std::cell::OnceCell;

use counterproof_artifact::{CaseId, Sha256Digest};
use counterproof_cases::CaseSpec;
use serde_json::Value;

use crate::load::{CaseEnvelope, ComparedRun};
use crate::values;

/// Fields of a request that say who asks and whom, not what.
const ADDRESS: [&str; 4] = ["case_id", "version", "run_meta", "model"];

/// What one side was asked.
#[derive(Debug)]
pub(crate) struct CaseInput<'a> {
    case_id: &'a CaseId,
    spec: Option<&'a CaseSpec>,
    run: &'a ComparedRun,
    envelope: Option<&'a CaseEnvelope>,
    request: OnceCell<Option<Value>>,
}

impl<'a> CaseInput<'a> {
    /// What a run asked of a case. The kept request is read when it is needed, and not before.
    pub(crate) fn new(
        case_id: &'a CaseId,
        spec: Option<&'a CaseSpec>,
        run: &'a ComparedRun,
        envelope: Option<&'a CaseEnvelope>,
    ) -> Self {
        Self { case_id, spec, run, envelope, request: OnceCell::new() }
    }

    /// The digest of what the case asked, where the run has one.
    fn digest(&self) -> Option<Sha256Digest> {
        self.run.reader().run().case_digests.as_ref()?.get(self.case_id).copied()
    }

    /// True where the cases file has the case.
    pub(crate) const fn case_is_known(&self) -> bool {
        self.spec.is_some()
    }

    /// Every text of the case's input in the cases file.
    pub(crate) fn case_texts(&self, mut take: impl FnMut(&Value)) {
        let Some(spec) = self.spec else { return };
        take(&Value::from(spec.input.user.as_str()));
        spec.input.context.iter().for_each(&mut take);
        spec.input.extra.values().for_each(take);
    }

    /// What the kept request says: its input in the native protocol, or the whole body of another.
    pub(crate) fn request(&self) -> Option<&Value> {
        let read = || {
            let mut kept = self.run.read_json(self.envelope?.request.as_ref()?)?;
            let is_native = kept.get("protocol").is_none_or(|protocol| protocol == "native");
            let mut body = kept.get_mut("body")?.take();
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

/// Whether two sides were asked the same; `None` where nobody can tell.
pub(crate) fn is_same(baseline: &CaseInput<'_>, new: &CaseInput<'_>) -> Option<bool> {
    match (baseline.digest(), new.digest()) {
        (Some(old), Some(new)) => Some(old == new),
        _ => Some(values::same(baseline.request()?, new.request()?)),
    }
}
