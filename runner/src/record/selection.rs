//! The cases of a run: those of its shard, each with the digest of its input.

use std::collections::BTreeMap;

use counterproof_artifact::{CaseId, Extra, Sha256Digest, ShardOf};
use counterproof_cases::CaseSpec;

use crate::digest;
use crate::policy::RunShard;

/// The selected cases of a run.
pub(crate) struct Selection<'a> {
    /// In the order of the cases file.
    pub(crate) cases: Vec<&'a CaseSpec>,
    pub(crate) digests: BTreeMap<CaseId, Sha256Digest>,
    /// The digest over all cases of the run, those of other shards included.
    pub(crate) digest: Sha256Digest,
    pub(crate) shard: Option<ShardOf>,
}

impl<'a> Selection<'a> {
    pub(crate) fn new(all: &'a [CaseSpec], shard: Option<&RunShard>) -> Self {
        let all: Vec<_> = all.iter().map(|case| (case, digest::of_case(case))).collect();
        let digest = digest::of_cases(all.iter().map(|(case, digest)| (&case.id, digest)));
        let is_selected = |case: &CaseSpec| shard.is_none_or(|shard| shard.shard.contains(&case.id));
        let selected: Vec<_> = all.iter().enumerate().filter(|(_, (case, _))| is_selected(case)).collect();
        let shard = shard.map(|shard| ShardOf {
            run_id: shard.run_id.clone(),
            index: u64::from(shard.shard.index()).into(),
            count: u64::from(shard.shard.count()).into(),
            cases_total: all.len().into(),
            positions: selected.iter().map(|(position, _)| (*position).into()).collect(),
            extra: Extra::new(),
        });
        Self {
            cases: selected.iter().map(|(_, (case, _))| *case).collect(),
            digests: selected.iter().map(|(_, (case, digest))| (case.id.clone(), *digest)).collect(),
            digest,
            shard,
        }
    }
}
