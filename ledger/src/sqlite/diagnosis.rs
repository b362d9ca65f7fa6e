//! Examines a SQLite file.

use rusqlite::{Connection, Result};

use super::database::Access;
use crate::store::Diagnosis;
use crate::tables::SCHEMA_VERSION;

/// Findings of the integrity check that are listed.
const LISTED: usize = 5;

pub(super) fn diagnose(connection: &Connection, access: Access) -> Result<Vec<Diagnosis>> {
    let mut found = vec![integrity(connection)?];
    // Only writers depend on the mode, and a protected file is read in another one.
    if access == Access::ReadWrite {
        found.push(journal_mode(connection)?);
    }
    found.push(schema_version(connection)?);
    Ok(found)
}

fn integrity(connection: &Connection) -> Result<Diagnosis> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let findings: Vec<String> = statement.query_map([], |row| row.get(0))?.take(LISTED).collect::<Result<_>>()?;
    let is_well = findings == ["ok"];
    let remedy = "restore a backup, or move the file away and ingest an export of its events with `ledger ingest`";
    let remedy = (!is_well).then(|| remedy.to_owned());
    Ok(Diagnosis { name: "integrity", found: findings.join("; "), remedy })
}

fn journal_mode(connection: &Connection) -> Result<Diagnosis> {
    let found: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let remedy =
        (found != "wal").then(|| "move the ledger to a local disk: its file system has no shared memory".into());
    Ok(Diagnosis { name: "journal_mode", found, remedy })
}

fn schema_version(connection: &Connection) -> Result<Diagnosis> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let remedy = (found != SCHEMA_VERSION).then(|| format!("this program writes version {SCHEMA_VERSION}"));
    Ok(Diagnosis { name: "schema_version", found: found.to_string(), remedy })
}
