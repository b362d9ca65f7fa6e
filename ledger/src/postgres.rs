//! The store in a PostgreSQL database, for teams that share one.
//!
//! The tables are in the schema `counterproof`. Writers take turns by an advisory lock. Without it, numbers of events could become
//! visible out of order, and readers that follow the events would miss some.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, Error, GenericClient, NoTls, Transaction};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::line::EventLine;
use crate::location::PostgresUrl;
use crate::store::{AppendResult, BatchRows, Cell, Check, EventStore, Query, Row, SourceId, StoreError, run_row};
use crate::tables::{
    ALL, Dialect, INDEXES, Kind, MergedRows, RUN_SOURCES, RUNS, SCHEMA_VERSION, Table, create_events, create_index,
    create_table, on_conflict,
};

pub struct PostgresStore {
    url: PostgresUrl,
    client: Client,
}

impl PostgresStore {
    /// Opens a ledger, and creates its tables where they do not exist.
    pub fn open_or_create(url: &PostgresUrl) -> Result<Self, StoreError> {
        Self::new(url, Tables::Created)
    }

    pub fn open(url: &PostgresUrl) -> Result<Self, StoreError> {
        Self::new(url, Tables::Required)
    }

    fn new(url: &PostgresUrl, tables: Tables) -> Result<Self, StoreError> {
        let mut client = connect(url)?;
        prepare(&mut client, url, tables)?;
        Ok(Self { url: url.clone(), client })
    }

    /// Does work in a transaction, while other writers wait.
    fn write<T>(&mut self, work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Error>) -> Result<T, StoreError> {
        let write = || {
            let mut transaction = self.client.transaction()?;
            // First of all: the numbers of events must become visible in their order.
            lock(&mut transaction)?;
            let done = work(&mut transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        write().map_err(StoreError::postgres(&self.url))
    }
}

impl EventStore for PostgresStore {
    /// The rights of a role are not known before it uses them.
    fn is_read_only(&self) -> bool {
        false
    }

    fn append(&mut self, events: &[EventLine<'_>]) -> Result<AppendResult, StoreError> {
        self.write(|transaction| append(transaction, events))
    }

    fn mark_lost(&mut self, source: &SourceId) -> Result<(), StoreError> {
        let SourceId { run_id, shim_id } = source;
        let text = "UPDATE run_sources SET is_lost = 1 WHERE run_id = $1 AND shim_id = $2 AND ended_at IS NULL";
        self.write(|transaction| {
            transaction.execute(text, &[run_id, shim_id])?;
            update_runs(transaction, &[run_id])
        })
    }

    fn select(&mut self, query: &Query) -> Result<Vec<Row<'static>>, StoreError> {
        let mut select = || {
            let found = self.client.query(&text(query), &values(query))?;
            found.iter().map(cells).collect::<Result<Vec<_>, Error>>()
        };
        select().map_err(StoreError::postgres(&self.url))
    }

    fn change(&mut self, statements: &[Query]) -> Result<u64, StoreError> {
        self.write(|transaction| {
            let mut changed = 0;
            for query in statements {
                changed += transaction.execute(&text(query), &values(query))?;
            }
            Ok(changed)
        })
    }

    fn has_table(&mut self, name: &str) -> Result<bool, StoreError> {
        let found = self.client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&format!("counterproof.{name}")]);
        found.and_then(|row| row.try_get(0)).map_err(StoreError::postgres(&self.url))
    }

    fn compact(&mut self) -> Result<(), StoreError> {
        // One by one: several statements in one message are a transaction, in which VACUUM fails.
        let failed = StoreError::postgres(&self.url);
        // Also the tables that other crates have added.
        let names = "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'counterproof'";
        let tables = self.client.query(names, &[]).map_err(&failed)?;
        let mut tables = tables.iter().map(|row| row.try_get::<_, String>(0));
        tables.try_for_each(|table| self.client.batch_execute(&format!("VACUUM {}", table?))).map_err(failed)
    }

    fn diagnose(&mut self) -> Result<Vec<Check>, StoreError> {
        diagnose(&mut self.client).map_err(StoreError::postgres(&self.url))
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.client.close().map_err(StoreError::postgres(&self.url))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStore({})", self.url)
    }
}

fn text(query: &Query) -> String {
    query.text().replace('?', "$")
}

fn values(query: &Query) -> Vec<&(dyn ToSql + Sync)> {
    query.values().iter().map(|value: &Cell| value as &(dyn ToSql + Sync)).collect()
}

/// The arrays are in the order of the events, and `id` follows it.
const INSERT: &str = "INSERT INTO events (run_id, shim_id, seq, digest, type, ts, line) \
                      SELECT run_id, shim_id, seq, digest, type, ts, line FROM UNNEST($1::text[], $2::text[], \
                      $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[]) WITH ORDINALITY \
                      AS new (run_id, shim_id, seq, digest, type, ts, line, number) ORDER BY number \
                      ON CONFLICT DO NOTHING RETURNING run_id, shim_id, seq, digest";

type Key = (String, String, Option<i64>, Option<String>);

fn append(transaction: &mut Transaction<'_>, events: &[EventLine<'_>]) -> Result<AppendResult, Error> {
    let total = events.len() as u64;
    // The database tells which events are new: others may add the same ones from a spool at the same time.
    let mut keys = insert(transaction, events)?;
    let added = keys.len() as u64;
    // If a batch has an event twice, the first one was added.
    let new: Vec<&EventLine<'_>> = events.iter().filter(|event| keys.remove(&key(event))).collect();
    let rows = BatchRows::new(&new);
    for table in &rows.tables {
        upsert(transaction, table)?;
    }
    update_runs(transaction, &rows.runs)?;
    Ok(AppendResult { added, repeated: total - added })
}

fn key(event: &EventLine<'_>) -> Key {
    (event.run_id().to_owned(), event.shim_id().to_owned(), event.seq(), event.digest().map(str::to_owned))
}

fn insert(transaction: &mut Transaction<'_>, events: &[EventLine<'_>]) -> Result<HashSet<Key>, Error> {
    fn column<'a, T>(events: &'a [EventLine<'a>], value: impl Fn(&'a EventLine<'a>) -> T) -> Vec<T> {
        events.iter().map(value).collect()
    }
    let statement = transaction.prepare(INSERT)?;
    let inserted = transaction.query(
        &statement,
        &[
            &column(events, EventLine::run_id),
            &column(events, EventLine::shim_id),
            &column(events, EventLine::seq),
            &column(events, EventLine::digest),
            &column(events, EventLine::kind),
            &column(events, EventLine::ts),
            &column(events, EventLine::line),
        ],
    )?;
    let key = |row: &postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?));
    inserted.iter().map(key).collect()
}

fn update_runs(transaction: &mut Transaction<'_>, runs: &[&str]) -> Result<(), Error> {
    let text = format!("SELECT {} FROM run_sources WHERE run_id = ANY($1::text[])", RUN_SOURCES.column_names());
    let mut sources: HashMap<String, Vec<Row<'static>>> = HashMap::new();
    for row in transaction.query(&text, &[&runs])? {
        sources.entry(row.try_get(0)?).or_default().push(cells(&row)?);
    }
    let rows = sources.values().filter_map(|sources| run_row(sources)).collect();
    upsert(transaction, &MergedRows::new(&RUNS, rows))
}

fn upsert(transaction: &mut Transaction<'_>, rows: &MergedRows<'_>) -> Result<(), Error> {
    // Without rows, even a round trip would be wasted.
    if rows.rows.is_empty() {
        return Ok(());
    }
    let table = rows.table;
    let columns: Vec<Array> = (0..table.columns.len()).map(|number| Array::new(table, &rows.rows, number)).collect();
    // One statement with an array for each column: a statement for each row would cost a round trip.
    let values: Vec<&(dyn ToSql + Sync)> = columns.iter().map(Array::as_sql).collect();
    let statement = transaction.prepare(&upsert_text(table))?;
    transaction.execute(&statement, &values).map(drop)
}

fn upsert_text(table: &Table) -> String {
    let array = |(number, kind): (usize, Kind)| match kind {
        Kind::Text => format!("${number}::text[]"),
        Kind::Integer => format!("${number}::bigint[]"),
    };
    let arrays: Vec<_> = (1..).zip(table.columns.iter().map(|column| column.kind)).map(array).collect();
    let (name, columns, conflict) = (table.name, table.column_names(), on_conflict(table, Dialect::Postgres));
    format!("INSERT INTO {name} ({columns}) SELECT * FROM UNNEST({}) {conflict}", arrays.join(", "))
}

enum Array {
    Texts(Vec<Option<String>>),
    Numbers(Vec<Option<i64>>),
}

impl Array {
    fn new(table: &Table, rows: &[Row<'_>], number: usize) -> Self {
        let cells = rows.iter().map(|row| &row.cells()[number]);
        match table.columns[number].kind {
            Kind::Text => Array::Texts(cells.map(|cell| cell.as_text().map(str::to_owned)).collect()),
            Kind::Integer => Array::Numbers(cells.map(Cell::as_integer).collect()),
        }
    }

    fn as_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Array::Texts(texts) => texts,
            Array::Numbers(numbers) => numbers,
        }
    }
}

/// Settings of a server on which the durability of commits depends.
const DURABILITY_SETTINGS: [&str; 2] = ["fsync", "full_page_writes"];

fn diagnose(client: &mut Client) -> Result<Vec<Check>, Error> {
    let server: String = client.query_one("SHOW server_version", &[])?.try_get(0)?;
    let mut found = vec![Check { name: "server_version", found: server, remedy: None }];
    for name in DURABILITY_SETTINGS {
        let value: String = client.query_one(&format!("SHOW {name}"), &[])?.try_get(0)?;
        let remedy = (value != "on").then(|| format!("set `{name} = on`: a power failure can damage the database"));
        found.push(Check { name, found: value, remedy });
    }
    let version: i64 = client.query_one("SELECT version FROM schema_version", &[])?.try_get(0)?;
    let remedy = (version != SCHEMA_VERSION).then(|| format!("this program writes version {SCHEMA_VERSION}"));
    found.push(Check { name: "schema_version", found: version.to_string(), remedy });
    Ok(found)
}

/// The number of the advisory lock that writers take: the letters `CPLedger`.
const WRITER_LOCK: i64 = 0x4350_4c65_6467_6572;

fn lock(transaction: &mut Transaction<'_>) -> Result<(), Error> {
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&WRITER_LOCK]).map(drop)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tables {
    Created,
    Required,
}

/// Checks the tables, and creates them if that is allowed.
fn prepare(client: &mut Client, url: &PostgresUrl, tables: Tables) -> Result<(), StoreError> {
    let failed = StoreError::postgres(url);
    // Not `public`, where other programs may have tables of the same names.
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

fn create(transaction: &mut Transaction<'_>) -> Result<(), Error> {
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

/// The name by which the server lists the connection.
const NAME: &str = "counterproof";

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Settings of a session. Each commit is on the disk of the server when it returns, and a client that hangs does not block the
/// others.
const SETTINGS: &str = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; \
                        SET synchronous_commit = on; SET client_min_messages = warning";

fn connect(url: &PostgresUrl) -> Result<Client, StoreError> {
    let failed = StoreError::postgres(url);
    let mut config = parse(url)?;
    config.application_name(NAME).tcp_user_timeout(ANSWER_WITHIN);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_WITHIN);
    }
    let mut client = match tls(&config).map_err(|reason| StoreError::Tls { location: url.to_string(), reason })? {
        Some(tls) => config.connect(tls),
        None => config.connect(NoTls),
    }
    .map_err(&failed)?;
    client.batch_execute(SETTINGS).map_err(&failed)?;
    Ok(client)
}

fn parse(url: &PostgresUrl) -> Result<Config, StoreError> {
    let Some(text) = url.connection_text() else {
        let reason = "write `:`, `/`, `?`, `&`, `=` and `@` in names and passwords as `%3A`, `%2F`, `%3F`, `%26`, `%3D` and `%40`";
        return Err(StoreError::Url { location: url.to_string(), reason: reason.to_owned() });
    };
    text.parse().map_err(|error: Error| {
        // The error names a parameter, and never its value.
        let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        StoreError::Url { location: url.to_string(), reason }
    })
}

/// Returns the TLS client. Returns `None` if the connection needs none, or prefers TLS and the system has no certificates.
fn tls(config: &Config) -> Result<Option<MakeRustlsConnect>, String> {
    let is_local = config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)));
    if config.get_ssl_mode() == SslMode::Disable || is_local {
        return Ok(None);
    }
    // An error means that the program installed a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match MakeRustlsConnect::with_native_certs() {
        Ok((tls, _)) => Ok(Some(tls)),
        Err(_) if config.get_ssl_mode() == SslMode::Prefer => Ok(None),
        Err(errors) => Err(errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string)),
    }
}

impl ToSql for Cell<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Cell::Null => Ok(IsNull::Yes),
            Cell::Integer(number) => number.to_sql(kind, out),
            Cell::Text(text) => (&**text).to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::TEXT | Type::INT8)
    }

    to_sql_checked!();
}

/// Reads a row. Columns of other types than text and 64-bit numbers have no value.
fn cells(row: &postgres::Row) -> Result<Row<'static>, Error> {
    let cell = |(number, column): (usize, &postgres::Column)| match *column.type_() {
        Type::TEXT => row.try_get::<_, Option<String>>(number).map(Cell::from),
        Type::INT8 => row.try_get::<_, Option<i64>>(number).map(Cell::from),
        _ => Ok(Cell::Null),
    };
    row.columns().iter().enumerate().map(cell).collect::<Result<Vec<_>, _>>().map(Row::from_cells)
}
