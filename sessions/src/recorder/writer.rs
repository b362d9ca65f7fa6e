//! The thread of a recorder: one transaction for all batches that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use counterproof_artifact::with_causes;
use counterproof_ledger::location::LedgerLocation;
use counterproof_ledger::store::StoreError;

use super::guard_calls::absorb;
use super::spool::SessionSpool;
use crate::store::{Batch, SessionStore};

pub(super) struct Job {
    pub(super) batch: Arc<Batch>,
    /// Its receiver may have stopped waiting, and have written the batch to a file.
    pub(super) answer: SyncSender<Result<(), String>>,
}

/// How long a store that failed is left alone. Batches go to files meanwhile.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Batches of one transaction.
const AT_ONCE: usize = 256;

pub(super) struct Writer {
    ledger: LedgerLocation,
    spool: SessionSpool,
    session_id: String,
    jobs: Receiver<Job>,
    /// Set by the recorder when it did not wait for an answer any more.
    is_behind: Arc<AtomicBool>,
    store: Option<SessionStore>,
    /// When the store failed last, and why.
    failure: Option<(Instant, String)>,
}

impl Writer {
    pub(super) fn new(
        ledger: LedgerLocation,
        spool: SessionSpool,
        session_id: String,
        jobs: Receiver<Job>,
        is_behind: Arc<AtomicBool>,
    ) -> Self {
        Self { ledger, spool, session_id, jobs, is_behind, store: None, failure: None }
    }

    pub(super) fn run(mut self) {
        loop {
            // A store that failed is tried again also if there is nothing new.
            let wait = if self.failure.is_some() { RETRY_AFTER } else { Duration::MAX };
            let first = match self.jobs.recv_timeout(wait) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let jobs: Vec<Job> = first.into_iter().chain(self.jobs.try_iter().take(AT_ONCE)).collect();
            let batches: Vec<&Batch> = jobs.iter().map(|job| &*job.batch).collect();
            let written = self.write(&batches);
            for job in jobs {
                let _ = job.answer.try_send(written.clone());
            }
        }
        self.finish();
    }

    fn write(&mut self, batches: &[&Batch]) -> Result<(), String> {
        if let Some((at, reason)) = &self.failure
            && at.elapsed() < RETRY_AFTER
        {
            return Err(reason.clone());
        }
        self.try_write(batches).map_err(|error| {
            let reason = with_causes(&error);
            self.store = None;
            self.failure = Some((Instant::now(), reason.clone()));
            reason
        })
    }

    fn try_write(&mut self, batches: &[&Batch]) -> Result<(), StoreError> {
        let store = open(&mut self.store, &self.ledger)?;
        if !batches.is_empty() {
            store.append(batches)?;
        }
        let was_behind = self.is_behind.swap(false, Ordering::AcqRel);
        if self.failure.take().is_some() || was_behind {
            // A file that cannot be read stays, and is named by the commands that list sessions.
            let _ = self.spool.drain(store);
        }
        Ok(())
    }

    /// Adds what waits, also what an earlier process has left behind, and the calls that the guard has recorded. The next command
    /// that reads the session does it if this fails.
    fn finish(&mut self) {
        let mut finish = || {
            let store = open(&mut self.store, &self.ledger)?;
            let drained = self.spool.drain(store);
            absorb(store, &self.session_id)?;
            self.store.take().map_or(Ok(()), SessionStore::close)?;
            drained
        };
        let _ = finish();
    }
}

fn open<'s>(store: &'s mut Option<SessionStore>, ledger: &LedgerLocation) -> Result<&'s mut SessionStore, StoreError> {
    let opened = match store.take() {
        Some(opened) => opened,
        None => SessionStore::new(counterproof_ledger::open_or_create(ledger)?)?,
    };
    Ok(store.insert(opened))
}
