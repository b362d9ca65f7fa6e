//! Resources with real processes: who gets them, who does not, and what a killed holder leaves.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use counterproof_contracts::process::Cancellation;
use counterproof_contracts::resources::{LeaseError, LeaseRequest, Registry, ResourceRequest};
use serde_json::{Value, json};

use crate::kit::{Folder, processes_with, unique_sleep, wait_until, worker};

/// A process that holds resources, or could not get them.
struct Holder {
    process: Child,
    /// What it printed first.
    line: String,
}

impl Holder {
    fn environment(&self) -> Value {
        serde_json::from_str(&self.line).unwrap_or_else(|_| panic!("{}", self.line))
    }

    fn is_refused(&self) -> bool {
        self.line.starts_with("conflict: ")
    }

    /// Ends the process by closing its input.
    fn release(mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success(), "{}", self.line);
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

struct Kit {
    locks: Folder,
    work: Folder,
}

impl Kit {
    fn new() -> Self {
        Self { locks: Folder::new(), work: Folder::new() }
    }

    fn start(&self, contract: &str, resources: &Value, claims: &Value, wait_ms: u64) -> Holder {
        let mut command = Command::new(worker());
        let locks = self.locks.path().join("registry");
        command.args(["hold", locks.as_str(), self.work.path().as_str(), contract]);
        command.args([resources.to_string(), claims.to_string(), wait_ms.to_string()]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Holder { process, line }
    }

    fn hold(&self, contract: &str, resources: &Value) -> Holder {
        self.start(contract, resources, &json!([]), 0)
    }
}

fn session(name: &str) -> Value {
    json!([{"type": "session", "spec": {"name": name, "env": "SESSION"}}])
}

fn files(patterns: &[&str]) -> Value {
    json!([{"type": "file_lock", "spec": {"paths": patterns}}])
}

#[test]
fn a_conflict_names_the_holder_and_ends_with_it() {
    let kit = Kit::new();
    let first = kit.hold("shop/one/001", &session("browser"));
    assert_eq!(first.environment(), json!({"SESSION": "browser"}));
    let refused = kit.hold("shop/two/001", &session("browser"));
    let pid = first.process.id();
    assert!(
        refused.line.contains(&format!(
            "session `browser` is held by contract `shop/one/001` (owner `tester`, process {pid}, since 20"
        )),
        "{}",
        refused.line
    );
    assert!(!kit.hold("shop/two/001", &session("other")).is_refused());
    first.release();
    let next = kit.hold("shop/two/001", &session("browser"));
    assert!(!next.is_refused(), "{}", next.line);
    next.release();
}

#[test]
fn a_holder_that_is_killed_has_nothing_any_more() {
    let kit = Kit::new();
    for _ in 0..5 {
        let holder = kit.hold("shop/one/001", &session("browser"));
        assert!(!holder.is_refused(), "{}", holder.line);
        holder.kill();
    }
}

#[test]
fn eight_processes_have_one_session_one_at_a_time_and_no_port_twice() {
    let kit = Kit::new();
    let resources = json!([
        {"type": "session", "spec": {"name": "one"}},
        {"type": "port", "spec": {"range": [42100, 42199]}},
        {"type": "file_lock", "spec": {"paths": ["out/*"]}}
    ]);
    thread::scope(|scope| {
        for number in 0..8 {
            let (kit, resources) = (&kit, &resources);
            scope.spawn(move || {
                let holder = kit.start(&format!("shop/c{number}/001"), resources, &json!([]), 60_000);
                let marker = kit.work.path().join("marker");
                // Fails if another process is between acquiring and giving back.
                std::fs::create_dir(&marker).unwrap_or_else(|error| panic!("{error}: {}", holder.line));
                thread::sleep(Duration::from_millis(5));
                std::fs::remove_dir(&marker).unwrap();
                holder.release();
            });
        }
    });
    let port = json!([{"type": "port", "spec": {"range": [42100, 42199]}}, {"type": "port", "spec": {"range": [42100, 42199], "env": "SECOND"}}]);
    let holders: Vec<Holder> = thread::scope(|scope| {
        let start = |number: u32| {
            let (kit, port) = (&kit, &port);
            scope.spawn(move || kit.start(&format!("shop/p{number}/001"), port, &json!([]), 60_000))
        };
        let started: Vec<_> = (0..8).map(start).collect();
        started.into_iter().map(|holder| holder.join().unwrap()).collect()
    });
    let ports: BTreeSet<String> = holders
        .iter()
        .flat_map(|holder| ["PORT", "SECOND"].map(|name| holder.environment()[name].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(ports.len(), 16, "{ports:?}");
    holders.into_iter().for_each(Holder::release);
}

#[test]
fn processes_that_compete_never_have_the_same_port() {
    let kit = Kit::new();
    let locks = kit.locks.path().join("registry");
    let start = |number: u32| {
        let contract = format!("shop/c{number}/001");
        let arguments = ["compete", locks.as_str(), &contract, "42200", "42215", "60"];
        Command::new(worker()).args(arguments).stderr(Stdio::piped()).spawn().unwrap()
    };
    let processes: Vec<Child> = (0..8).map(start).collect();
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_range_without_a_free_port_is_a_conflict_with_its_counts() {
    let kit = Kit::new();
    let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let used = server.local_addr().unwrap().port();
    let refused = kit.hold("shop/one/001", &json!([{"type": "port", "spec": {"range": [used, used]}}]));
    let expected = format!("no free port in {used}-{used}: 0 held by contracts, 1 in use by other programs");
    assert!(refused.line.contains(&expected), "{}", refused.line);
}

#[test]
fn nothing_is_held_if_one_resource_is_not_free() {
    let kit = Kit::new();
    let first = kit.hold("shop/one/001", &session("a"));
    let both = json!([{"type": "session", "spec": {"name": "b"}}, {"type": "session", "spec": {"name": "a"}}]);
    assert!(kit.hold("shop/two/001", &both).is_refused());
    assert!(!kit.hold("shop/three/001", &session("b")).is_refused(), "`b` was not taken");
    first.release();
}

#[test]
fn files_overlap_if_a_path_can_match_both_also_through_links() {
    let kit = Kit::new();
    std::fs::create_dir_all(kit.work.path().join("src/memory")).unwrap();
    std::os::unix::fs::symlink("src", kit.work.path().join("link")).unwrap();
    let first = kit.hold("shop/one/001", &files(&["src/memory/*", "docs/{a,b}.md"]));
    assert!(!first.is_refused());
    for patterns in [["src/**/pool.rs"], ["link/memory/x"], ["docs/b.*"], ["**"]] {
        assert!(kit.hold("shop/two/001", &files(&patterns)).is_refused(), "{patterns:?}");
    }
    for patterns in [["src/other/*"], ["src/memory/sub/x"], ["docs/c.md"]] {
        let holder = kit.hold("shop/two/001", &files(&patterns));
        assert!(!holder.is_refused(), "{patterns:?}: {}", holder.line);
        holder.release();
    }
    first.release();
}

#[test]
fn a_working_directory_is_shared_or_exclusive() {
    let kit = Kit::new();
    let claim = |access: &str| json!([{"type": "working_directory", "path": kit.work.path(), "access": access}]);
    let start = |contract: &str, access: &str| kit.start(contract, &json!([]), &claim(access), 0);
    let (one, two) = (start("a/1", "shared"), start("a/2", "shared"));
    assert!(!one.is_refused() && !two.is_refused() && start("a/3", "exclusive").is_refused());
    one.release();
    two.release();
    let exclusive = start("a/3", "exclusive");
    assert!(!exclusive.is_refused() && start("a/1", "shared").is_refused());
    let link = kit.locks.path().join("link");
    std::os::unix::fs::symlink(kit.work.path(), &link).unwrap();
    let through_link = json!([{"type": "working_directory", "path": link, "access": "shared"}]);
    let refused = kit.start("a/1", &json!([]), &through_link, 0);
    assert!(refused.line.contains("overlaps with working directory"), "{}", refused.line);
    exclusive.release();
}

#[test]
fn variables_are_set_or_must_be_set() {
    let kit = Kit::new();
    let resources =
        json!([{"type": "env", "spec": {"name": "MODE", "value": "test"}}, {"type": "env", "spec": {"name": "PATH"}}]);
    let holder = kit.hold("shop/one/001", &resources);
    assert_eq!(holder.environment(), json!({"MODE": "test"}));
    holder.release();
    let missing = kit.hold("shop/one/001", &json!([{"type": "env", "spec": {"name": "CERTAINLY_NOT_SET_HERE"}}]));
    assert_eq!(missing.line, "env_not_set: the variable `CERTAINLY_NOT_SET_HERE` is not set; the contract needs it\n");
}

#[test]
fn a_cancellation_ends_the_wait() {
    let kit = Kit::new();
    let first = kit.hold("shop/one/001", &session("browser"));
    let registry = Registry::open(&kit.locks.path().join("registry")).unwrap();
    let resources: Vec<_> = serde_json::from_value(session("browser")).unwrap();
    let resources = ResourceRequest::parse_all(&resources).unwrap();
    let (contract, folder, cancellation) = ("a/1".parse().unwrap(), kit.work.path(), Cancellation::default());
    let request = LeaseRequest {
        contract: &contract,
        owner: "tester",
        now: jiff::Timestamp::UNIX_EPOCH,
        folder: &folder,
        resources: &resources,
        locks: Vec::new(),
        wait: Duration::MAX,
    };
    let error = thread::scope(|scope| {
        let waiting = scope.spawn(|| registry.acquire(&request, |_| None, &cancellation).unwrap_err());
        thread::sleep(Duration::from_millis(50));
        cancellation.cancel();
        waiting.join().unwrap()
    });
    assert!(matches!(error, LeaseError::Cancelled), "{error}");
    let holders = registry.leases().unwrap().unwrap();
    assert_eq!(
        holders.iter().map(|holder| holder.owner().unwrap().contract.as_str()).collect::<Vec<_>>(),
        ["shop/one/001"]
    );
    first.release();
}

#[test]
fn a_process_that_the_holder_has_started_does_not_keep_its_resources() {
    let kit = Kit::new();
    let registry = kit.locks.path().join("registry");
    let sleep = unique_sleep();
    let acquire = |registry: &Registry| {
        let (contract, folder) = ("a/1".parse().unwrap(), kit.work.path());
        let resources = [ResourceRequest::Session { name: "s".to_owned(), variable: None }];
        let now = jiff::Timestamp::UNIX_EPOCH;
        let request = LeaseRequest {
            contract: &contract,
            owner: "t",
            now,
            folder: &folder,
            resources: &resources,
            locks: Vec::new(),
            wait: Duration::ZERO,
        };
        registry.acquire(&request, |_| None, &Cancellation::default())
    };
    let registry = Registry::open(&registry).unwrap();
    let held = acquire(&registry).unwrap();
    let mut child = Command::new("sleep").arg(&sleep).spawn().unwrap();
    wait_until("it runs", || processes_with(&sleep) > 0);
    // A record that was not removed, as after a kill: only the lock tells whether its holder lives.
    let copy = held.record().with_file_name("holder-0-copy.json");
    std::fs::hard_link(held.record(), &copy).unwrap();
    assert_eq!(acquire(&registry).unwrap_err().code(), "conflict");
    drop(held);
    // A process that another test starts has the lock, too, until it executes its program.
    wait_until("the resources are free", || acquire(&registry).is_ok());
    assert!(!copy.exists());
    child.kill().unwrap();
    child.wait().unwrap();
}
