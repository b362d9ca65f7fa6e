//! Many processes that write one store, and processes that are killed while they do.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_contracts::Store;
use counterproof_contracts::store::Record;

use crate::kit::{add, contract};

/// Variables that make the test [`child`] a writer.
const STORE: &str = "CONTRACTS_TEST_STORE";
const NAME: &str = "CONTRACTS_TEST_NAME";
const COUNT: &str = "CONTRACTS_TEST_COUNT";

/// Adds contracts one by one, and prints the number of each one that is stored. Does nothing unless another test starts it.
#[test]
fn child() {
    let (Ok(path), Ok(name), Ok(count)) = (std::env::var(STORE), std::env::var(NAME), std::env::var(COUNT)) else {
        return;
    };
    let store = Store::new(path);
    for number in 0..count.parse().unwrap() {
        add(&store, &[contract(&format!("{name}/{number}"), &[])]).unwrap();
        // Not `println!`, which the test harness captures.
        writeln!(std::io::stdout(), "stored {number}").unwrap();
    }
}

fn start(path: &Utf8Path, name: &str, count: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child", "--nocapture", "--test-threads", "1"])
        .envs([(STORE, path.as_str()), (NAME, name), (COUNT, &count.to_string())])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns a folder in memory, where syncs are fast, or an ordinary one.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let builder = || tempfile::Builder::new();
    if memory.is_dir()
        && let Ok(folder) = builder().tempdir_in(memory)
    {
        return folder;
    }
    builder().tempdir().unwrap()
}

fn records(path: &Utf8Path) -> Vec<Record> {
    let text = std::fs::read(path).unwrap();
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| Record::parse(line).unwrap_or_else(|error| panic!("{error}"))).collect()
}

#[test]
fn eight_processes_append_a_thousand_lines_each_and_lose_none() {
    let folder = folder();
    let path = Utf8Path::from_path(folder.path()).unwrap().join("contracts.jsonl");
    // Each contract is two lines: itself, and that it is ready.
    let children: Vec<Child> = (0..8).map(|number| start(&path, &format!("p{number}"), 500)).collect();
    for mut child in children {
        // The pipe must be read, or the child waits for room in it.
        let output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert_eq!(output.filter(|line| line.contains("stored ")).count(), 500);
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(records(&path).len(), 8 * 1_000);
    let store = Store::new(path);
    assert_eq!(store.statuses().unwrap().len(), 8 * 500);
}

#[test]
fn a_process_that_is_killed_while_it_writes_loses_no_line_that_it_reported() {
    let folder = folder();
    for kill in 0..25_u32 {
        let path: Utf8PathBuf = Utf8Path::from_path(folder.path()).unwrap().join(format!("killed-{kill}.jsonl"));
        let mut child = start(&path, "p", 100_000);
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let first = output.by_ref().find(|line| line.contains("stored "));
        assert!(first.is_some());
        // The golden ratio spreads the moments without large gaps.
        std::thread::sleep(Duration::from_millis(40).mul_f64((f64::from(kill) * 0.618_033_988_75).fract()));
        child.kill().unwrap();
        child.wait().unwrap();
        let reported = 1 + output.filter(|line| line.contains("stored ")).count();
        // A new process repairs a torn line, and continues.
        let store = Store::new(path.clone());
        add(&store, &[contract("after", &[])]).unwrap();
        let ids: Vec<String> = records(&path).iter().map(|record| record.id().to_string()).collect();
        for number in 0..reported {
            assert!(ids.contains(&format!("p/{number}")), "kill {kill}: line {number} of {reported} is lost");
        }
        assert!(ids.contains(&"after".to_owned()));
    }
}
