//! Examines a PostgreSQL database.

use postgres::{Client, Error};

use crate::store::Diagnosis;
use crate::tables::SCHEMA_VERSION;

/// Settings of a server on which the durability of commits depends.
const SETTINGS: [&str; 2] = ["fsync", "full_page_writes"];

pub(super) fn diagnose(client: &mut Client) -> Result<Vec<Diagnosis>, Error> {
    let server: String = client.query_one("SHOW server_version", &[])?.try_get(0)?;
    let mut found = vec![Diagnosis { name: "server_version", found: server, remedy: None }];
    for name in SETTINGS {
        let value: String = client.query_one(&format!("SHOW {name}"), &[])?.try_get(0)?;
        let remedy = (value != "on").then(|| format!("set `{name} = on`: a power failure can damage the database"));
        found.push(Diagnosis { name, found: value, remedy });
    }
    let version: i64 = client.query_one("SELECT version FROM schema_version", &[])?.try_get(0)?;
    let remedy = (version != SCHEMA_VERSION).then(|| format!("this program writes version {SCHEMA_VERSION}"));
    found.push(Diagnosis { name: "schema_version", found: version.to_string(), remedy });
    Ok(found)
}
