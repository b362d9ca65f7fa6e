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
    pub(crate) fn catch_up(&self, log: &LineLog) -> Result<(), IndexError> {
        let Some(reader) = log.read_from(0)? else { return self.in_transaction(clear) };
        let io = |source| IndexError::Log(LogError::Read { path: log.path().to_owned(), source });
        let coverage = Coverage::load(&self.connection).map_err(self.error())?;
        // Without a transaction first: most of the time nothing is to be done.
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
            add_lines(connection, log, &mut lines, self)?;
            let covered = Coverage::of(lines.file(), lines.offset()).map_err(io)?;
            covered.save(connection).map_err(self.error())
        })
    }

    /// Adds the lines that this process has just appended under the lock of the log.
    pub(crate) fn extend(&self, log: &LineLog, file: &File, appended: &Appended<'_>) -> Result<(), IndexError> {
        let Some((_, start)) = appended.records.first() else { return Ok(()) };
        let is_next = self.in_transaction(|connection| {
            let coverage = Coverage::load(connection).map_err(self.error())?;
            if coverage.map_or(0, |it| it.bytes) != *start {
                return Ok(false);
            }
            for (record, offset) in appended.records {
                apply(connection, record, *offset).map_err(|error| self.apply_error(log, *offset, error))?;
            }
            let io = |source| IndexError::Log(LogError::Read { path: log.path().to_owned(), source });
            let covered = Coverage::of(file, appended.end).map_err(io)?;
            covered.save(connection).map_err(self.error()).map(|()| true)
        })?;
        // A reader may have covered the new lines already, before it could be told.
        if is_next { Ok(()) } else { self.catch_up(log) }
    }

    fn in_transaction<T>(&self, work: impl FnOnce(&Connection) -> Result<T, IndexError>) -> Result<T, IndexError> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(self.error())?;
        let result = work(&self.connection);
        let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.connection.execute_batch(end).map_err(self.error())?;
        result
    }

    fn apply_error(&self, log: &LineLog, offset: u64, error: ApplyError) -> IndexError {
        match error {
            ApplyError::Database(source) => IndexError::database(&self.path)(source),
            ApplyError::Contradiction(reason) => {
                IndexError::Contradiction { path: log.path().to_owned(), line: line_number(log, offset), reason }
            }
        }
    }
}

fn clear(connection: &Connection) -> Result<(), IndexError> {
    connection
        .execute_batch("DELETE FROM coverage; DELETE FROM contract; DELETE FROM line; DELETE FROM dependency;")
        .map_err(IndexError::database(camino::Utf8Path::new(connection.path().unwrap_or_default())))
}

fn add_lines(connection: &Connection, log: &LineLog, lines: &mut LineReader, index: &Index) -> Result<(), IndexError> {
    while let Some(line) = lines.next_line()? {
        let record = Record::parse(&line.bytes).map_err(|reason| IndexError::Line {
            path: log.path().to_owned(),
            line: line_number(log, line.offset),
            reason,
        })?;
        apply(connection, &record, line.offset).map_err(|error| index.apply_error(log, line.offset, error))?;
    }
    Ok(())
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
