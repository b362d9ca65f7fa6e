//! Records the pair of runs in `sample-runs/`: both variants of the demo agent, byte-identical each time.
//!
//! `cargo xtask samples` runs it with the folder to write to. Clock, backoff and address are fixed and the concurrency is 1, thus
//! the files do not depend on the machine or the time.

use std::error::Error;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Side;
use counterproof_demo::{CASES, PLANTED, Variant};
use counterproof_runner::{Environment, Jitter, ResolveRule, Settings, Silent, SteppingClock};
use counterproof_store::write::{self, Durability};

/// The host name of the agent in the files.
const HOST: &str = "demo-agent.example";

fn main() -> Result<(), Box<dyn Error>> {
    let folder: Utf8PathBuf = std::env::args().nth(1).ok_or("missing argument: the folder to write to")?.into();
    let cases_path = folder.join("cases.json");
    write::create_folder(&folder)?;
    write::write(&cases_path, CASES.as_bytes(), Durability::Cached)?;
    write::write(&folder.join("README.md"), readme()?.as_bytes(), Durability::Cached)?;
    record(&folder, Variant::Baseline, Side::Baseline, "2026-03-02T08:00:00Z")?;
    record(&folder, Variant::New, Side::New, "2026-03-03T08:00:00Z")
}

fn record(folder: &Utf8Path, variant: Variant, side: Side, start: &str) -> Result<(), Box<dyn Error>> {
    let suite = counterproof_cases::load(&folder.join("cases.json"))?;
    // The runtime's thread serves the agent while the runner blocks the main thread.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let agent = runtime.block_on(counterproof_demo::start(variant))?;
    let mut settings = Settings::new(
        format!("sample-{side}").parse()?,
        side,
        format!("http://{HOST}").parse()?,
        folder.join("cases.json"),
        folder.join("runs"),
    );
    settings.resolve = vec![ResolveRule::new(HOST, agent.address())];
    settings.concurrency = NonZeroUsize::MIN.into();
    // The samples show a case that is tried again after a time-out.
    settings.retry.on = ["timeout", "network_error", "http_408", "http_429", "http_5xx"]
        .iter()
        .map(|name| name.parse())
        .collect::<Result<_, _>>()?;
    // Long enough that only the case that never answers times out, even on a busy machine.
    settings.timeout = Duration::from_secs(3);
    settings.retry.retries = 1;
    settings.deterministic = true;
    let environment = Environment {
        clock: Arc::new(SteppingClock::new(start.parse()?, Duration::from_millis(3))),
        jitter: Jitter::from_seed(7),
        ..Environment::from_system()
    };
    counterproof_runner::run(&settings, &suite.cases, environment, &mut Silent)?;
    Ok(())
}

fn readme() -> Result<String, std::fmt::Error> {
    let mut text = include_str!("../data/sample-runs.md").to_owned();
    for planted in PLANTED {
        writeln!(text, "| `{}` | {} | {} |", planted.case_id, planted.verdict, planted.story)?;
    }
    Ok(text)
}
