//! Removes the superseded versions of contracts from a store. Nothing else calls this: a store never compacts by itself.

use std::collections::BTreeSet;
use std::io::Write as _;

use camino::Utf8PathBuf;
use counterproof_store::line_log::LogError;

use super::{Editor, Store, StoreError};

/// What a compaction removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactionPlan {
    pub kept_lines: u64,
    /// The lines of superseded versions.
    pub removed_lines: u64,
    /// The length of the removed lines in bytes.
    pub removed_bytes: u64,
}

/// A finished compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// What was removed.
    pub plan: CompactionPlan,
    /// The whole store as it was before.
    pub archive: Utf8PathBuf,
}

impl Store {
    /// Returns what a compaction would remove now.
    pub fn compaction_plan(&self) -> Result<CompactionPlan, StoreError> {
        let superseded = self.states()?.superseded();
        Ok(self.each_kept_line(&superseded, |_| Ok(()))?)
    }

    /// Calls `keep` with every line, newline included, except for the ones at these offsets.
    fn each_kept_line(
        &self,
        superseded: &BTreeSet<u64>,
        mut keep: impl FnMut(&[u8]) -> Result<(), LogError>,
    ) -> Result<CompactionPlan, LogError> {
        let mut plan = CompactionPlan::default();
        let Some(mut lines) = self.log.read_from(0)? else { return Ok(plan) };
        while let Some(mut line) = lines.next_line()? {
            line.bytes.push(b'\n');
            if superseded.contains(&line.offset) {
                plan.removed_lines += 1;
                plan.removed_bytes += line.bytes.len() as u64;
            } else {
                plan.kept_lines += 1;
                keep(&line.bytes)?;
            }
        }
        Ok(plan)
    }
}

impl Editor<'_> {
    /// Removes the lines of superseded versions. The whole store is kept in the file `archive`, which must not exist.
    pub fn compact(self, archive: Utf8PathBuf) -> Result<Compacted, StoreError> {
        let store = self.store;
        let superseded = store.states()?.superseded();
        let mut plan = CompactionPlan::default();
        self.writer.replace(&archive, |file| {
            let keep = |line: &[u8]| {
                file.write_all(line).map_err(|source| LogError::Write { path: store.path().to_owned(), source })
            };
            plan = store.each_kept_line(&superseded, keep)?;
            Ok(())
        })?;
        Ok(Compacted { plan, archive })
    }
}
