//! Removes the superseded versions of contracts from a store. Nothing else calls this: a store never compacts by itself.

use std::io::Write as _;

use camino::Utf8PathBuf;
use counterproof_store::line_log::LogError;

use super::{Editor, Record, Store, StoreError};

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
        self.index.catch_up()?;
        self.each_line(&mut |_| Ok(()))
    }

    /// Calls `keep` with every line, newline included, of the latest versions.
    fn each_line(&self, keep: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>) -> Result<CompactionPlan, StoreError> {
        let mut plan = CompactionPlan::default();
        let Some(mut lines) = self.log.read_from(0)? else { return Ok(plan) };
        while let Some(mut line) = lines.next_line()? {
            let superseded = match Record::parse(&line.bytes) {
                Ok(record) => self.index.status(record.id())?.is_some_and(|status| line.offset < status.offset),
                // A line that cannot be read is kept: removing it would hide the damage.
                Err(_) => false,
            };
            line.bytes.push(b'\n');
            if superseded {
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
        let plan = store.compaction_plan()?;
        let mut failed = None;
        let path = store.path().to_owned();
        let replaced = self.writer.replace(&archive, |file| {
            let written = store.each_line(&mut |line| {
                let io = |source| StoreError::Log(LogError::Write { path: path.clone(), source });
                file.write_all(line).map_err(io)
            });
            written.map(drop).map_err(|error| match error {
                StoreError::Log(error) => error,
                other => {
                    let source = std::io::Error::other(other.to_string());
                    failed = Some(other);
                    LogError::Read { path: path.clone(), source }
                }
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        replaced?;
        store.index.catch_up()?;
        Ok(Compacted { plan, archive })
    }
}
