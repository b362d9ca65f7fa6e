//! The thread of a recorder: moves events from the spool to the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use counterproof_artifact::with_causes;
use counterproof_store::line_log::{LineLog, LineReader};

use super::own_spool::{Backlog, OwnSpool};
use super::record::Shared;
use super::signal::Pause;
use crate::location::LedgerLocation;
use crate::open::open_or_create;
use crate::spool::{DeadSpool, SpoolBatch, SpoolError, SpoolFolder};
use crate::store::{EventStore, SourceId};

/// How long events are collected after the first one. One transaction for many events costs far less than one for each.
const COLLECT: Duration = Duration::from_millis(25);

/// First and longest pause after a failure.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Size at which a spool is emptied if the store has all of its events. Without it, the spool would grow as long as the process runs.
const CLEAR_AT: u64 = 16 << 20;

/// Moves the events of a recorder to the store.
pub(super) struct Drain {
    shared: Arc<Shared>,
    ledger: LedgerLocation,
    folder: SpoolFolder,
    source: SourceId,
    log: LineLog,
    /// Reads the spool file with the offsets of a generation.
    reader: Option<(u64, LineReader)>,
    store: Option<Box<dyn EventStore>>,
    /// The files that other processes have left behind. `None` before they are listed.
    others: Option<VecDeque<LineLog>>,
    dead: Option<DeadSpool>,
    error: Option<String>,
}

/// How the thread has ended.
#[derive(Debug)]
pub(super) struct Drained {
    /// The last error, if events are left.
    pub(super) error: Option<String>,
}

impl Drain {
    pub(super) fn new(shared: Arc<Shared>, ledger: LedgerLocation, folder: SpoolFolder, source: SourceId) -> Self {
        let log = folder.file(&source);
        let (reader, store, others, dead, error) = (None, None, None, None, None);
        Self { shared, ledger, folder, source, log, reader, store, others, dead, error }
    }

    /// Works until the recorder finishes.
    pub(super) fn run(mut self) -> Drained {
        let mut backoff = BACKOFF[0];
        loop {
            match self.work() {
                Ok(Next::Continue) => (self.error, backoff) = (None, BACKOFF[0]),
                Ok(Next::Wait) => self.wait(),
                Ok(Next::End) => return Drained { error: None },
                Err(error) => {
                    self.error = Some(with_causes(&error));
                    // A connection that failed is opened again.
                    self.store = None;
                    self.dead = None;
                    self.shared.signal.pause(backoff, Pause::UntilDeadline);
                    backoff = (backoff * 2).min(BACKOFF[1]);
                }
            }
            if self.shared.signal.is_over() {
                return Drained { error: self.error };
            }
        }
    }

    /// Does one step. Events of this recorder go first.
    fn work(&mut self) -> Result<Next, SpoolError> {
        // Read before the backlog, because the recorder adds no event after it finishes.
        let is_finishing = self.shared.signal.deadline().is_some();
        if let Some(backlog) = self.backlog() {
            self.move_batch(backlog)?;
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
        if self.backlog().is_none() && self.shared.signal.deadline().is_none() {
            thread::park();
        }
        self.shared.signal.pause(COLLECT, Pause::UntilFinishing);
    }

    /// Returns the events of this recorder that the store does not have. `None` if it has all.
    fn backlog(&self) -> Option<Backlog> {
        let backlog = self.shared.output().spool.as_ref().map(OwnSpool::backlog)?;
        (backlog.bytes() > 0).then_some(backlog)
    }

    fn move_batch(&mut self, backlog: Backlog) -> Result<(), SpoolError> {
        let Backlog { start, end, generation } = backlog;
        let mut reader = match self.reader.take() {
            Some((of, reader)) if of == generation && reader.offset() == start => reader,
            _ => match &self.shared.output().spool {
                Some(spool) => spool.read_from(start)?,
                None => return Ok(()),
            },
        };
        let batch = SpoolBatch::read(&mut reader, end)?;
        if batch.is_empty() {
            // Never at once again: whatever removed the lines may do so all the time.
            self.shared.output().restore_spool()?;
            return Err(SpoolError::Changed { path: self.log.path().to_owned() });
        }
        batch.move_to(open(&mut self.store, &self.ledger)?, self.log.path())?;
        if let Some(spool) = &mut self.shared.output().spool {
            spool.set_drained(batch.end, generation);
        }
        self.reader = Some((generation, reader));
        Ok(())
    }

    /// Empties a large spool whose events the store has.
    fn clear(&mut self) -> Result<(), SpoolError> {
        self.shared.output().spool.as_mut().map_or(Ok(()), |spool| spool.clear_from(CLEAR_AT))
    }

    /// Moves a batch of a process that has ended. Returns false if no such process has events left.
    fn move_from_others(&mut self) -> Result<bool, SpoolError> {
        if self.others.is_none() {
            self.others = Some(self.folder.files()?.into());
        }
        let dead = if let Some(dead) = self.dead.take() {
            dead
        } else {
            let Some(log) = self.others.as_mut().and_then(VecDeque::pop_front) else { return Ok(false) };
            // A file that cannot be read stays for `ledger doctor`.
            let Ok(Some(dead)) = DeadSpool::take(&self.folder, &log) else { return Ok(true) };
            dead
        };
        let (rest, _) = dead.step(open(&mut self.store, &self.ledger)?)?;
        self.dead = rest;
        Ok(true)
    }

    /// States a missing end, and removes the spool file.
    fn close(&mut self) -> Result<(), SpoolError> {
        let (has_ended, recorded) = {
            let output = self.shared.output();
            (output.has_ended, output.recorded)
        };
        if recorded > 0 && !has_ended {
            open(&mut self.store, &self.ledger)?.mark_lost(&self.source)?;
        }
        if let Some(store) = self.store.take() {
            store.close()?;
        }
        let spool = self.shared.output().spool.take();
        spool.map_or(Ok(()), OwnSpool::remove)?;
        Ok(())
    }
}

/// What the thread does after a step.
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
