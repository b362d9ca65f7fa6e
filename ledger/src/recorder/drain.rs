//! The thread of a recorder, which moves events from the spool to the store, and how both wait for each other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use counterproof_artifact::with_causes;
use counterproof_store::line_log::{LineLog, LineReader};

use super::output::{Backlog, Output, OwnSpool};
use crate::location::LedgerLocation;
use crate::open::open_or_create;
use crate::spool::{DeadSpool, SpoolBatch, SpoolError, SpoolFolder};
use crate::store::{EventStore, SourceId};

/// How long events are collected after the first one. One transaction for many events costs far less than one for each.
const COLLECT: Duration = Duration::from_millis(25);

const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Size at which a spool is emptied if the store has all of its events. Without it, the spool would grow as long as the process runs.
const CLEAR_AT: u64 = 16 << 20;

pub(super) struct Drain {
    shared: Arc<Shared>,
    ledger: LedgerLocation,
    folder: SpoolFolder,
    source: SourceId,
    log: LineLog,
    /// Reads the spool file with the offsets of a generation.
    reader: Option<(u64, LineReader)>,
    store: Option<Box<dyn EventStore>>,
    others: Option<VecDeque<LineLog>>,
    dead: Option<DeadSpool>,
    error: Option<String>,
}

#[derive(Debug)]
pub(super) struct DrainResult {
    pub(super) error: Option<String>,
}

impl Drain {
    pub(super) fn new(shared: Arc<Shared>, ledger: LedgerLocation, folder: SpoolFolder, source: SourceId) -> Self {
        let log = folder.file(&source);
        let (reader, store, others, dead, error) = (None, None, None, None, None);
        Self { shared, ledger, folder, source, log, reader, store, others, dead, error }
    }

    pub(super) fn run(mut self) -> DrainResult {
        let mut backoff = BACKOFF[0];
        loop {
            match self.work() {
                Ok(Next::Continue) => (self.error, backoff) = (None, BACKOFF[0]),
                Ok(Next::Wait) => self.wait(),
                Ok(Next::End) => return DrainResult { error: None },
                Err(error) => {
                    self.error = Some(with_causes(&error));
                    // A connection that failed is opened again.
                    self.store = None;
                    self.dead = None;
                    self.shared.signal.pause(backoff, Pause::UntilDeadline);
                    // A locked database is free again soon, and one that is gone must not be asked all the time.
                    backoff = (backoff * 2).min(BACKOFF[1]);
                }
            }
            if self.shared.signal.is_over() {
                return DrainResult { error: self.error };
            }
        }
    }

    fn work(&mut self) -> Result<Next, SpoolError> {
        // Read before the backlog, because the recorder adds no event after it finishes.
        let is_finishing = self.shared.signal.deadline().is_some();
        // The events of this process first: what the agent does now is read before what another process has left.
        if self.move_batch()? {
            return Ok(Next::Continue);
        }
        if is_finishing {
            self.close()?;
            return Ok(Next::End);
        }
        self.clear()?;
        if self.move_from_others()? { Ok(Next::Continue) } else { Ok(Next::Wait) }
    }

    fn wait(&self) {
        if self.shared.output().backlog() == 0 && self.shared.signal.deadline().is_none() {
            // Not a loop with a pause: a guard that waits for its agent must not wake the machine.
            thread::park();
        }
        // After the first event: the others of a burst share its transaction.
        self.shared.signal.pause(COLLECT, Pause::UntilFinishing);
    }

    /// Moves the next events of this recorder. Returns false if the store has all.
    fn move_batch(&mut self) -> Result<bool, SpoolError> {
        let Some((Backlog { end, generation, .. }, mut reader)) = self.next_lines()? else { return Ok(false) };
        let batch = SpoolBatch::read(&mut reader, end)?;
        if batch.is_empty() {
            // Never at once again: whatever removed the lines may do so all the time.
            self.shared.output().restore_spool()?;
            return Err(SpoolError::Changed { path: self.log.path().to_owned() });
        }
        // Without the lock of the files, because a database may take seconds. The recorder goes on meanwhile.
        batch.move_to(open(&mut self.store, &self.ledger)?, self.log.path())?;
        if let Some(spool) = &mut self.shared.output().spool {
            spool.set_drained(batch.end, generation);
        }
        self.reader = Some((generation, reader));
        Ok(true)
    }

    /// Returns where the events are that the store does not have, and a reader at the first one.
    fn next_lines(&mut self) -> Result<Option<(Backlog, LineReader)>, SpoolError> {
        // The lock is held until the file is open, so that the backlog and the reader are of the same file.
        let output = self.shared.output();
        let Some(spool) = &output.spool else { return Ok(None) };
        let backlog = spool.backlog();
        if backlog.bytes() == 0 {
            return Ok(None);
        }
        // Opened again only if the lines have moved: normally the reader is where the next batch starts.
        let reader = match self.reader.take() {
            Some((of, reader)) if of == backlog.generation && reader.offset() == backlog.start => reader,
            _ => spool.read_from(backlog.start)?,
        };
        Ok(Some((backlog, reader)))
    }

    fn clear(&mut self) -> Result<(), SpoolError> {
        self.shared.output().spool.as_mut().map_or(Ok(()), |spool| spool.clear_from(CLEAR_AT))
    }

    /// Moves a batch of a process that has ended. Returns false if no such process has events left.
    fn move_from_others(&mut self) -> Result<bool, SpoolError> {
        let others = match &mut self.others {
            Some(others) => others,
            // Listed once: processes that end later are left to the next recorder, or to a command of `ledger`.
            None => self.others.insert(self.folder.files()?.into()),
        };
        let Some(log) = others.front() else { return Ok(false) };
        // Before the file is taken, so that it is tried again if the store cannot be opened.
        let store = open(&mut self.store, &self.ledger)?;
        let dead = match self.dead.take() {
            Some(dead) => Some(dead),
            // A file that cannot be read stays for `ledger doctor`.
            None => DeadSpool::take(&self.folder, log).unwrap_or_default(),
        };
        match dead.map(|dead| dead.step(store)) {
            Some(Ok((Some(rest), _))) => self.dead = Some(rest),
            Some(Err(error @ SpoolError::Store(_))) => {
                // The next attempt is for another file.
                others.rotate_left(1);
                return Err(error);
            }
            _ => drop(others.pop_front()),
        }
        Ok(true)
    }

    fn close(&mut self) -> Result<(), SpoolError> {
        let (has_ended, recorded) = {
            let output = self.shared.output();
            (output.has_ended, output.recorded)
        };
        if recorded > 0 && !has_ended {
            // Without a last event, the run would look as if it still ran.
            open(&mut self.store, &self.ledger)?.mark_lost(&self.source)?;
        }
        // Before the spool is removed: a store that fails to close may not have the last events.
        if let Some(store) = self.store.take() {
            store.close()?;
        }
        let spool = self.shared.output().spool.take();
        spool.map_or(Ok(()), OwnSpool::remove)?;
        Ok(())
    }
}

enum Next {
    Continue,
    Wait,
    End,
}

fn open<'s>(
    store: &'s mut Option<Box<dyn EventStore>>,
    ledger: &LedgerLocation,
) -> Result<&'s mut dyn EventStore, SpoolError> {
    let opened = match store.take() {
        Some(opened) => opened,
        None => open_or_create(ledger)?,
    };
    Ok(store.insert(opened).as_mut())
}

const SLICE: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct Signal {
    /// When the thread must end, as soon as that is known.
    deadline: Mutex<Option<Instant>>,
}

impl Signal {
    /// Asks the thread to move all events and to end before a deadline.
    pub(super) fn finish(&self, deadline: Instant, thread: &Thread) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = Some(deadline);
        thread.unpark();
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_over(&self) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= Instant::now())
    }

    pub(super) fn pause(&self, time: Duration, pause: Pause) {
        let end = Instant::now() + time;
        loop {
            let now = Instant::now();
            let deadline = self.deadline();
            let is_done = match pause {
                Pause::UntilFinishing => deadline.is_some(),
                Pause::UntilDeadline => deadline.is_some_and(|deadline| deadline <= now),
            };
            if now >= end || is_done {
                return;
            }
            // Slices, because every event unparks the thread: a park would end with the next event.
            thread::sleep(SLICE.min(end - now));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    UntilFinishing,
    UntilDeadline,
}

#[derive(Debug)]
pub(super) struct Shared {
    output: Mutex<Output>,
    pub(super) signal: Signal,
}

impl Shared {
    pub(super) fn output(&self) -> MutexGuard<'_, Output> {
        // The lock is held while the local files are read and written, and never while the database is used.
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    pub(super) fn new(output: Output) -> Self {
        Self { output: Mutex::new(output), signal: Signal::default() }
    }
}
