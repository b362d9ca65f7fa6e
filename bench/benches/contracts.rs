//! The speed of the store of contracts: appends against raw synced appends, and reads of large stores.
//!
//! `contracts [FOLDER] [CONTRACTS]`: a scratch folder on the disk to measure, and the size of the large store.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints its figures and may panic")]

use std::fs::OpenOptions;
use std::io::{BufWriter, Write as _};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_bench::{arguments, machine, peak_memory, target_folder};
use counterproof_contracts::control_room::{ControlRoom, ControlRoomOptions};
use counterproof_contracts::graph::{Graph, GraphQuery};
use counterproof_contracts::{Contract, ContractKey, Store};
use counterproof_store::line_log::LockOptions;
use jiff::Timestamp;
use serde_json::json;

/// The name of a command and what it reads.
type Read<'r> = (&'static str, &'r dyn Fn(&Store));

/// Appends of each kind, in turns.
const APPENDS: usize = 400;

/// Reads of each kind. Their median counts.
const READS: usize = 9;

fn main() {
    println!("machine: {}", machine());
    let mut arguments = arguments().into_iter();
    let folder = arguments.next().map_or_else(target_folder, Utf8PathBuf::from);
    let contracts = arguments.next().map_or(100_000, |contracts| contracts.parse().unwrap());
    let scratch = tempfile::Builder::new().prefix("bench-contracts-").tempdir_in(&folder).unwrap();
    let scratch = Utf8Path::from_path(scratch.path()).unwrap();
    reads(scratch, 10_000);
    reads(scratch, contracts);
    // Last: its large change is not a part of the memory of the reads.
    appends(scratch);
}

fn contract(number: usize) -> Contract {
    serde_json::from_value(json!({
        "id": format!("bench/contract-{number:07}"), "version": 1, "created_at": "2026-01-31T12:00:00Z",
        "input": {"type": "task", "data": {"files": ["src/a.rs", "src/b.rs"], "issue": "memory grows with large inputs"}},
        "output": {"type": "code_change", "schema": {"modified_files": "string[]", "test_coverage": "boolean"}},
        "verification": {"command": "cargo test", "assertions": ["output.test_coverage == true"]},
        "rollback": {"strategy": "git_reset"}, "metadata": {"project": "bench", "agent": "bench"},
    }))
    .unwrap()
}

/// Appends contracts to a store and the same bytes to a plain file, in turns. Both sync each append.
fn appends(scratch: &Utf8Path) {
    let store = Store::new(scratch.join("appends.jsonl"));
    let path = scratch.join("raw.jsonl");
    #[expect(clippy::disallowed_methods, reason = "the floor is a plain file")]
    let mut raw = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    let now = Timestamp::UNIX_EPOCH;
    let mut times: [Vec<Duration>; 2] = Default::default();
    for number in 0..APPENDS {
        let contract = contract(number);
        let started = Instant::now();
        store.edit(&LockOptions::default()).unwrap().add(std::slice::from_ref(&contract), now).unwrap();
        times[0].push(started.elapsed());
        let text = std::fs::read(store.path()).unwrap();
        let appended = text.iter().rev().skip(1).position(|byte| *byte == b'\n').unwrap_or(text.len());
        // A new contract is two lines: itself, and that it is ready.
        let bytes = vec![b'x'; appended + serde_json::to_vec(&contract).unwrap().len()];
        let started = Instant::now();
        raw.write_all(&bytes).and_then(|()| raw.sync_data()).unwrap();
        times[1].push(started.elapsed());
    }
    // Many in one change share one sync.
    let many: Vec<Contract> = (APPENDS..APPENDS + 10_000).map(contract).collect();
    let started = Instant::now();
    store.edit(&LockOptions::default()).unwrap().add(&many, now).unwrap();
    let batch = started.elapsed();
    let [store_times, raw_times] = times;
    let (store_median, raw_median) = (median(store_times), median(raw_times));
    println!("appends, each synced, {APPENDS} in turns");
    println!("  store  {:>9.3} ms  {:>8.0}/s", ms(store_median), 1.0 / store_median.as_secs_f64());
    println!("  raw    {:>9.3} ms  {:>8.0}/s", ms(raw_median), 1.0 / raw_median.as_secs_f64());
    println!("  ratio  {:>9.2}     (aim 1.5)", store_median.as_secs_f64() / raw_median.as_secs_f64());
    println!("  10,000 contracts in one change: {:.2} s, {:.0}/s", batch.as_secs_f64(), 1e4 / batch.as_secs_f64());
}

/// Writes a store with this many contracts, each of which was executed, and reads it as the commands do.
fn reads(scratch: &Utf8Path, contracts: usize) {
    let path = scratch.join(format!("{contracts}.jsonl"));
    {
        #[expect(clippy::disallowed_methods, reason = "a store through the API would sync a million times")]
        let mut file = BufWriter::new(OpenOptions::new().create(true).append(true).open(&path).unwrap());
        for number in 0..contracts {
            let contract = contract(number);
            serde_json::to_writer(&mut file, &contract).unwrap();
            file.write_all(b"\n").unwrap();
            let states = ["pending", "ready", "claimed", "executing", "verifying", "completed"];
            for change in states.windows(2) {
                let line = json!({
                    "record": "transition", "id": contract.id, "version": 1, "from": change[0], "to": change[1],
                    "at": "2026-01-31T12:00:00Z", "actor": "agent:bench", "reason": "the step of the execution ended",
                    "owner": "bench", "details": {"process": {"pid": 4711, "host": "bench"}, "workdir": "/srv/project"},
                });
                writeln!(file, "{line}").unwrap();
            }
        }
        file.flush().unwrap();
    }
    println!("{contracts} contracts, {} lines, {} MB", contracts * 6, path.metadata().unwrap().len() >> 20);
    // Each command is a new process, which reads the file anew.
    let key: ContractKey = format!("bench/contract-{:07}", contracts / 2).parse().unwrap();
    let options = ControlRoomOptions::new(Timestamp::UNIX_EPOCH, &|_| None);
    let reads: [Read<'_>; 4] = [
        ("list", &|store| assert_eq!(store.statuses().unwrap().len(), contracts)),
        ("history of one", &|store| assert_eq!(store.history(&key.id).unwrap().versions.len(), 1)),
        ("status", &|store| assert_eq!(ControlRoom::read(store, &options).unwrap().contracts, contracts as u64)),
        ("graph", &|store| drop(Graph::read(store, &GraphQuery { around: &[], max_nodes: contracts }).unwrap())),
    ];
    for (name, read) in reads {
        let times = (0..READS).map(|_| {
            let started = Instant::now();
            read(&Store::new(path.clone()));
            started.elapsed()
        });
        println!("  {name:<16} {:>8.1} ms", ms(median(times.collect())));
    }
    println!("  peak memory of the process so far: {:.0} MiB", peak_memory().unwrap_or(f64::NAN));
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
