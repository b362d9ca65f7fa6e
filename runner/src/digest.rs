//! The digest over all cases of a run. Shards of one run have it in common.

use counterproof_artifact::{CaseId, Sha256Digest};

/// Returns the digest of several cases in their order.
pub(crate) fn cases_digest<'a>(cases: impl IntoIterator<Item = (&'a CaseId, &'a Sha256Digest)>) -> Sha256Digest {
    let lines: Vec<_> = cases.into_iter().map(|(id, digest)| format!("{id} {digest}\n")).collect();
    Sha256Digest::from_bytes(lines.concat().as_bytes())
}
