//! The tables in a PostgreSQL database.

use postgres::{Client, GenericClient, Transaction};

use crate::location::PostgresUrl;
use crate::store::StoreError;
use crate::tables::{ALL, Dialect, INDEXES, SCHEMA_VERSION, create_events, create_index, create_table};

/// The number of the advisory lock that writers take: the letters `CPLedger`.
const WRITER_LOCK: i64 = 0x4350_4c65_6467_6572;

/// Waits for other writers until the end of the transaction.
pub(super) fn lock(transaction: &mut Transaction<'_>) -> Result<(), postgres::Error> {
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&WRITER_LOCK]).map(drop)
}

/// Whether tables may be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tables {
    /// They are created if necessary.
    Created,
    /// They must exist.
    Required,
}

/// Checks the tables, and creates them if that is allowed.
pub(super) fn prepare(client: &mut Client, url: &PostgresUrl, tables: Tables) -> Result<(), StoreError> {
    let failed = StoreError::postgres(url);
    client.batch_execute("SET search_path = counterproof").map_err(&failed)?;
    match (version(client, url)?, tables) {
        (Some(SCHEMA_VERSION), _) => return Ok(()),
        (None, Tables::Required) => return Err(StoreError::Missing { location: url.to_string() }),
        _ => {}
    }
    let mut transaction = client.transaction().map_err(&failed)?;
    lock(&mut transaction).map_err(&failed)?;
    // Another process may have created the tables in the meantime.
    if version(&mut transaction, url)?.is_none() {
        create(&mut transaction).map_err(&failed)?;
    }
    transaction.commit().map_err(&failed)
}

/// Returns the version of the tables; `None` if there are no tables.
fn version(client: &mut impl GenericClient, url: &PostgresUrl) -> Result<Option<i64>, StoreError> {
    let failed = StoreError::postgres(url);
    let exists = client.query_one("SELECT to_regclass('counterproof.schema_version') IS NOT NULL", &[]);
    if !exists.and_then(|row| row.try_get::<_, bool>(0)).map_err(&failed)? {
        return Ok(None);
    }
    let row = client.query_opt("SELECT version FROM counterproof.schema_version", &[]).map_err(&failed)?;
    let found: Option<i64> = row.map(|row| row.try_get(0)).transpose().map_err(&failed)?;
    match found {
        Some(found) if found > SCHEMA_VERSION => {
            Err(StoreError::Newer { location: url.to_string(), found, known: SCHEMA_VERSION })
        }
        found => Ok(found),
    }
}

fn create(transaction: &mut Transaction<'_>) -> Result<(), postgres::Error> {
    let mut statements = vec![
        // A user without the right to create schemas can use one that exists.
        "DO $$ BEGIN IF to_regnamespace('counterproof') IS NULL THEN CREATE SCHEMA counterproof; END IF; END $$"
            .to_owned(),
        create_events(Dialect::Postgres),
    ];
    statements.extend(ALL.map(|table| create_table(table, Dialect::Postgres)));
    statements.extend(INDEXES.iter().map(create_index));
    statements.push("CREATE TABLE schema_version (version BIGINT NOT NULL)".to_owned());
    transaction.batch_execute(&statements.join(";\n"))?;
    transaction.execute("INSERT INTO schema_version (version) VALUES ($1)", &[&SCHEMA_VERSION]).map(drop)
}
