//! Brings the index up to date with the lines.

use std::fs::File;

use counterproof_store::line_log::{LineLog, LineReader, LogError};
use rusqlite::Connection;

use super::apply::{ApplyError, apply};
use super::coverage::{Coverage, Freshness};
use super::{Index, IndexError};
use crate::record::Record;

/// The lines that a writer has appended: their records with their offsets, and the length of the file afterwards.
#[derive(Debug)]
pub(crate) struct Appended<'a> {
    pub(crate) records: &'a [(Record, u64)],
    pub(crate) end: u64,
}

impl Index {
    /// Adds the lines that the index does not cover yet. Builds the index anew where the file was not only appended to.
    pub(crate) fn catch_up(&self) -> Result<(), IndexError> {
        match self.update() {
            Err(error) if error.is_damage() => self.rebuild(),
            other => other,
        }
    }

    /// Does the work of [`Index::catch_up`]. Fails if the index is damaged.
    pub(super) fn update(&self) -> Result<(), IndexError> {
        let log = &self.log;
        let Some(reader) = log.read_from(0)? else { return self.in_transaction(clear) };
        let io = |source| IndexError::Log(LogError::Read { path: log.path().to_owned(), source });
        let coverage = Coverage::load(&self.connection.borrow()).map_err(self.error())?;
        // Without a transaction first: usually the index is current.
        if let Some(coverage) = &coverage
            && coverage.freshness(reader.file()).map_err(io)? == Freshness::Current
        {
            return Ok(());
        }
        self.in_transaction(|connection| {
            // Another process may have updated the index in the meantime.
            let coverage = Coverage::load(connection).map_err(self.error())?;
            let freshness = coverage.as_ref().map_or(Ok(Freshness::Stale), |it| it.freshness(reader.file()));
            let start = match (freshness.map_err(io)?, coverage) {
                (Freshness::Current, Some(_)) => return Ok(()),
                (Freshness::Behind, Some(coverage)) => coverage.bytes,
                _ => {
                    clear(connection)?;
                    0
                }
            };
            let Some(mut lines) = log.read_from(start)? else { return Ok(()) };
            self.add_lines(connection, &mut lines)?;
            let covered = Coverage::of(lines.file(), lines.offset()).map_err(io)?;
            covered.save(connection).map_err(self.error())
        })
    }

    /// Adds the lines that this process has just appended under the lock of the log.
    pub(crate) fn extend(&self, file: &File, appended: &Appended<'_>) -> Result<(), IndexError> {
        let Some((_, start)) = appended.records.first() else { return Ok(()) };
        let is_next = self.in_transaction(|connection| {
            let coverage = Coverage::load(connection).map_err(self.error())?;
            if coverage.map_or(0, |it| it.bytes) != *start {
                return Ok(false);
            }
            for (record, offset) in appended.records {
                apply(connection, record, *offset).map_err(|error| self.apply_error(*offset, error))?;
            }
            let io = |source| IndexError::Log(LogError::Read { path: self.log.path().to_owned(), source });
            let covered = Coverage::of(file, appended.end).map_err(io)?;
            covered.save(connection).map_err(self.error()).map(|()| true)
        });
        match is_next {
            Ok(true) => Ok(()),
            // A reader has covered the new lines already.
            Ok(false) => self.catch_up(),
            Err(error) if error.is_damage() => self.rebuild(),
            Err(error) => Err(error),
        }
    }

    fn in_transaction<T>(&self, work: impl FnOnce(&Connection) -> Result<T, IndexError>) -> Result<T, IndexError> {
        let connection = self.connection.borrow();
        connection.execute_batch("BEGIN IMMEDIATE").map_err(self.error())?;
        match work(&connection) {
            Ok(value) => connection.execute_batch("COMMIT").map_err(self.error()).map(|()| value),
            Err(error) => {
                // The database may have ended the transaction itself. The error of the work is the one to report.
                let _ = connection.execute_batch("ROLLBACK");
                Err(error)
            }
        }
    }

    fn add_lines(&self, connection: &Connection, lines: &mut LineReader) -> Result<(), IndexError> {
        while let Some(line) = lines.next_line()? {
            let record = Record::parse(&line.bytes).map_err(|reason| IndexError::Line {
                path: self.log.path().to_owned(),
                line: line_number(&self.log, line.offset),
                reason,
            })?;
            apply(connection, &record, line.offset).map_err(|error| self.apply_error(line.offset, error))?;
        }
        Ok(())
    }

    fn apply_error(&self, offset: u64, error: ApplyError) -> IndexError {
        match error {
            ApplyError::Database(source) => IndexError::database(&self.path)(source),
            ApplyError::Contradiction(reason) => {
                let (path, line) = (self.log.path().to_owned(), line_number(&self.log, offset));
                IndexError::Contradiction { path, line, reason }
            }
        }
    }
}

fn clear(connection: &Connection) -> Result<(), IndexError> {
    connection
        .execute_batch("DELETE FROM coverage; DELETE FROM contract; DELETE FROM line; DELETE FROM dependency;")
        .map_err(IndexError::database(camino::Utf8Path::new(connection.path().unwrap_or_default())))
}

/// Returns the number of the line that starts at an offset, counted from 1. Only errors need it, so it is counted.
pub(crate) fn line_number(log: &LineLog, offset: u64) -> u64 {
    let mut number = 1;
    let Ok(Some(mut lines)) = log.read_from(0) else { return number };
    while lines.offset() < offset {
        match lines.next_line() {
            Ok(Some(_)) => number += 1,
            Ok(None) | Err(_) => break,
        }
    }
    number
}
