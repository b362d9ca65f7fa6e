//! A process of the integration tests. Without arguments, it is the supervisor of commands, since libtest provides the `main` of
//! a test. `hold` acquires resources until its standard input ends, `compete` acquires a port again
//! and again, and `restore` restores a snapshot.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_contracts::process::Cancellation;
use counterproof_contracts::resources::{LeaseRequest, Registry, ResourceRequest};
use counterproof_contracts::rollback::snapshot::{SnapshotLimits, restore};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(code) = counterproof_safe_run::enter() {
        return Ok(code);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["hold", locks, folder, contract, resources, claims, wait] => {
            hold(locks, folder, contract, resources, claims, wait)
        }
        ["restore", start] => {
            let restored = restore(&serde_json::from_str(start)?, SnapshotLimits::default())?;
            restored.map(|_| ExitCode::SUCCESS).map_err(|refusal| refusal.to_string().into())
        }
        ["compete", locks, contract, first, last, rounds] => {
            compete(locks, contract, first.parse()?..=last.parse()?, rounds.parse()?)
        }
        _ => Ok(ExitCode::FAILURE),
    }
}

/// Acquires a port again and again, and listens on it while it has it. Fails if another process listens on it.
fn compete(locks: &str, contract: &str, range: RangeInclusive<u16>, rounds: u32) -> Result<ExitCode, Box<dyn Error>> {
    let registry = Registry::open(Utf8Path::new(locks))?;
    let (first, last, variable) = (*range.start(), *range.end(), "PORT".to_owned());
    for _ in 0..rounds {
        let request = LeaseRequest {
            contract: &contract.parse()?,
            owner: "tester",
            now: jiff::Timestamp::now(),
            folder: Utf8Path::new("."),
            resources: &[ResourceRequest::Port { first, last, variable: variable.clone() }],
            locks: Vec::new(),
            wait: Duration::from_mins(1),
        };
        let acquired = registry.acquire(&request, |_| None, &Cancellation::default())?;
        TcpListener::bind(("127.0.0.1", acquired.environment[&variable].parse()?))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the exported variables as a line of JSON, or the code and the message of the error.
fn hold(
    locks: &str,
    folder: &str,
    contract: &str,
    resources: &str,
    claims: &str,
    wait: &str,
) -> Result<ExitCode, Box<dyn Error>> {
    let registry = Registry::open(Utf8Path::new(locks))?;
    let resources =
        ResourceRequest::parse_all(&serde_json::from_str::<Vec<_>>(resources)?).map_err(|mut all| all.remove(0))?;
    let request = LeaseRequest {
        contract: &contract.parse()?,
        owner: "tester",
        now: jiff::Timestamp::now(),
        folder: Utf8Path::new(folder),
        resources: &resources,
        locks: serde_json::from_str(claims)?,
        wait: Duration::from_millis(wait.parse()?),
    };
    let mut out = std::io::stdout();
    match registry.acquire(&request, |name| std::env::var_os(name), &Cancellation::default()) {
        Ok(acquired) => {
            writeln!(out, "{}", serde_json::to_string(&acquired.environment)?)?;
            std::io::stdin().read_to_end(&mut Vec::new())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            writeln!(out, "{}: {error}", error.code())?;
            Ok(ExitCode::from(9))
        }
    }
}
