//! The cases of a run: those of its shard, each with the digest of what it asks.

use std::collections::BTreeMap;

use counterproof_artifact::{CaseId, Sha256Digest, ShardOf};
use counterproof_cases::CaseSpec;

use crate::digest;
use crate::policy::shard::Part;

/// The cases that a run sets out to ask.
pub(crate) struct Selection<'a> {
    /// In the order in which they were given.
    pub(crate) cases: Vec<&'a CaseSpec>,
    pub(crate) digests: BTreeMap<CaseId, Sha256Digest>,
    /// Over all cases, those of other shards too.
    pub(crate) digest: Sha256Digest,
    pub(crate) shard: Option<ShardOf>,
}

impl<'a> Selection<'a> {
    pub(crate) fn of(all: &'a [CaseSpec], part: Option<&Part>) -> Self {
        let all: Vec<_> = all.iter().map(|case| (case, digest::of_case(case))).collect();
        let digest = digest::of_cases(all.iter().map(|(case, digest)| (&case.id, digest)));
        let is_ours = |case: &CaseSpec| part.is_none_or(|part| part.shard.holds(&case.id));
        let ours: Vec<_> = all.iter().enumerate().filter(|(_, (case, _))| is_ours(case)).collect();
        let shard = part.map(|part| ShardOf {
            run_id: part.run_id.clone(),
            index: u64::from(part.shard.index()).into(),
            count: u64::from(part.shard.count()).into(),
            cases_total: all.len().into(),
            positions: ours.iter().map(|(position, _)| (*position).into()).collect(),
            extra: counterproof_artifact::Extra::new(),
        });
        Self {
            cases: ours.iter().map(|(_, (case, _))| *case).collect(),
            digests: ours.iter().map(|(_, (case, digest))| (case.id.clone(), *digest)).collect(),
            digest,
            shard,
        }
    }
}
