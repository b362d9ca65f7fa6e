//! Agents that are started before a run: readiness, death, the end of their processes, and checkouts of other commits.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_runner::{
    AgentCommand, AgentStartError, Interrupt, RunningAgent, SetupError, StartContext, StartSpec, TemporaryWorktree,
    Urgency, Variables, WorktreeError, run_setup,
};
use tempfile::TempDir;

use crate::kit::supervisor;

struct Kit {
    folder: TempDir,
    context: StartContext,
}

impl Kit {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = Utf8Path::from_path(folder.path()).unwrap().join("agent.log");
        let context = StartContext { supervisor: Some(supervisor()), log, ..StartContext::default() };
        Self { folder, context }
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    fn start(&self, script: &str, change: impl FnOnce(&mut StartSpec)) -> Result<RunningAgent, AgentStartError> {
        let mut spec = StartSpec::new(shell(script).in_folder(self.folder.path()));
        change(&mut spec);
        RunningAgent::start(&spec, &self.context)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.context.log).unwrap()
    }
}

fn shell(script: &str) -> AgentCommand {
    shell_words::join(["sh", "-c", script]).parse().unwrap()
}

fn sleeping(marker: &str) -> bool {
    let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    String::from_utf8(listed.stdout).unwrap().lines().any(|line| line == format!("sleep {marker}"))
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Serves one response after the other on a port, from when `file` exists on.
fn serve_after(file: Utf8PathBuf, port: u16, statuses: &'static [&'static str]) {
    thread::spawn(move || {
        wait_until("the agent did not start", || file.exists());
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        for status in statuses {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn an_agent_is_ready_when_it_prints_the_text_and_all_its_processes_end_with_it() {
    let kit = Kit::new();
    let script = "setsid sleep 4731 & sleep 4731 & echo \"listening on $PORT\"; trap '' TERM; sleep 4731";
    let variables = Variables::resolve([("PORT", "{port}"), ("KEY", "s3cret-value")], |_| unreachable!()).unwrap();
    let agent = kit
        .start(&format!("echo $KEY; {script}"), |spec| {
            spec.command = spec.command.clone().with_variables(variables);
            spec.ready = Some("listening on {port}".parse().unwrap());
        })
        .unwrap();
    let port = agent.base_url().recorded().rsplit(':').next().unwrap().to_owned();
    // The last bytes may be the start of a secret: these digits of a port are held back until more output follows.
    wait_until("the log", || kit.log().starts_with("[redacted]\nlistening on "));
    assert!(format!("[redacted]\nlistening on {port}\n").starts_with(&kit.log()), "{}", kit.log());
    assert_eq!(agent.died(), None);
    wait_until("no process", || sleeping("4731"));
    let start = Instant::now();
    drop(agent);
    assert!(!sleeping("4731"));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert!(!kit.context.interrupt.reached(Urgency::Finish), "a wanted end interrupts nothing");
}

#[test]
fn an_agent_is_ready_after_a_response_that_is_not_an_error_of_the_server() {
    let kit = Kit::new();
    let port = free_port();
    serve_after(kit.path().join("up"), port, &["503 Busy", "404 Not Found"]);
    let url = format!("http://localhost:{port}");
    let agent = kit.start("touch up; sleep 4732", |spec| {
        spec.base_url = Some(url.parse().unwrap());
        spec.ready = Some(format!("{url}/health").parse().unwrap());
    });
    assert_eq!(agent.unwrap().base_url().recorded(), url);
}

#[test]
fn without_ready_a_connection_to_the_base_url_is_enough() {
    let kit = Kit::new();
    let port = free_port();
    serve_after(kit.path().join("up"), port, &["200 OK"]);
    let url = format!("http://localhost:{port}/api");
    kit.start("touch up; sleep 4733", |spec| spec.base_url = Some(url.parse().unwrap())).unwrap();
}

#[test]
fn an_agent_that_dies_is_reported_at_once_with_its_last_lines() {
    let kit = Kit::new();
    let error = kit.start("seq 100; echo broken >&2; exit 3", |_| ()).unwrap_err();
    let AgentStartError::Died(died) = error else { panic!("{error}") };
    assert_eq!((died.lines.len(), died.lines.last().map(String::as_str)), (20, Some("broken")));
    let message = died.to_string();
    assert!(
        message.starts_with("the agent ended with exit code 3 before it was ready; the last lines of "),
        "{message}"
    );
    assert!(!kit.context.interrupt.reached(Urgency::Finish));
}

#[test]
fn an_agent_that_is_never_ready_is_stopped() {
    let kit = Kit::new();
    let error = kit
        .start("echo loading; sleep 4734", |spec| {
            spec.ready = Some("http://localhost:{port}/health".parse().unwrap());
            spec.ready_timeout = Duration::from_millis(300);
        })
        .unwrap_err();
    let message = error.to_string();
    for part in ["not ready within 300ms: waited for http://localhost:", "/health", "\n  loading"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!sleeping("4734"));
}

#[test]
fn the_death_of_an_agent_that_is_needed_interrupts_the_run() {
    let kit = Kit::new();
    let script = "echo up; until [ -e end ]; do sleep 0.02; done; echo over; exit 7";
    let agent = kit.start(script, |spec| spec.ready = Some("up".parse().unwrap())).unwrap();
    let end = kit.path().join("end");
    counterproof_store::write::write(&end, b"", counterproof_store::write::Durability::Cached).unwrap();
    wait_until("no interrupt", || kit.context.interrupt.reached(Urgency::Abandon));
    let died = agent.died().unwrap();
    assert_eq!(died.lines, ["up", "over"]);
    assert!(died.to_string().contains("exit code 7 during the run"), "{died}");
}

#[test]
fn an_interrupt_ends_the_wait() {
    let kit = Kit::new();
    let (interrupt, file) = (kit.context.interrupt.clone(), kit.path().join("up"));
    thread::spawn(move || {
        wait_until("the agent did not start", || file.exists());
        Interrupt::trigger(&interrupt);
    });
    let error = kit.start("touch up; sleep 4735", |_| ()).unwrap_err();
    assert!(matches!(error, AgentStartError::Interrupted), "{error}");
    assert!(!sleeping("4735"));
}

#[test]
fn a_server_at_the_address_of_the_agent_is_not_taken_for_it() {
    let kit = Kit::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    let error = kit.start("sleep 4736", |spec| spec.base_url = Some(url.parse().unwrap())).unwrap_err();
    assert!(matches!(&error, AgentStartError::AddressInUse(at) if *at == url), "{error}");
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let kit = Kit::new();
    let spec = StartSpec::new("/nowhere/agent --key s3cret".parse().unwrap());
    let AgentStartError::NotStarted(error) = RunningAgent::start(&spec, &kit.context).unwrap_err() else { panic!() };
    assert_eq!(error.to_string(), "failed to start `/nowhere/agent`");
}

#[test]
fn setup_runs_to_its_end_in_its_folder() {
    let kit = Kit::new();
    run_setup(&shell("echo built > result").in_folder(kit.folder.path()), &kit.context).unwrap();
    assert_eq!(std::fs::read(kit.path().join("result")).unwrap(), b"built\n");
    let context = StartContext { log: kit.path().join("second.log"), ..kit.context.clone() };
    let error = run_setup(&shell("echo no compiler; exit 2"), &context).unwrap_err();
    assert!(matches!(&error, SetupError::Failed { lines, .. } if lines == &["no compiler"]), "{error}");
}

/// A repository with two commits of `agent/version`.
fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let script = "git init -q -b main . && git config user.name a && git config user.email a@b && mkdir agent && cd agent && \
                  echo 1 > version && git add . && git commit -qm one && git tag first && echo 2 > version && git commit -qam two";
    let status = Command::new("sh").args(["-c", script]).current_dir(folder.path()).status().unwrap();
    assert!(status.success());
    folder
}

fn git(folder: &TempDir, arguments: &str) -> String {
    let output = Command::new("git").args(arguments.split(' ')).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_commit_is_checked_out_next_to_the_work_tree_and_removed_again() {
    let repository = repository();
    let state = || (git(&repository, "worktree list"), git(&repository, "status --porcelain"));
    let before = state();
    let folder = Utf8Path::from_path(repository.path()).unwrap().join("agent");
    let worktree = TemporaryWorktree::create(&folder, "first").unwrap();
    assert_eq!(std::fs::read(worktree.folder().join("version")).unwrap(), b"1\n");
    assert_eq!(std::fs::read(folder.join("version")).unwrap(), b"2\n");
    let second = TemporaryWorktree::create(&folder, "main").unwrap();
    assert!(worktree.folder().exists(), "a worktree in use is not a leftover");
    let tree = worktree.folder().to_owned();
    drop((worktree, second));
    assert!(!tree.exists());
    assert_eq!(state(), before);
}

#[test]
fn worktrees_of_killed_processes_are_removed_at_the_next_start() {
    let repository = repository();
    let before = git(&repository, "worktree list");
    let root = Utf8Path::from_path(repository.path()).unwrap();
    let leftovers: Vec<_> = ["with-files", "gone"]
        .map(|name| {
            let outer = tempfile::Builder::new().prefix(&format!("counterproof-ref-{name}")).tempdir().unwrap().keep();
            let tree = outer.join("tree");
            git(&repository, &format!("worktree add --quiet --detach {} first", tree.display()));
            outer
        })
        .into();
    std::fs::remove_dir_all(&leftovers[1]).unwrap();
    drop(TemporaryWorktree::create(root, "main").unwrap());
    assert_eq!(git(&repository, "worktree list"), before);
    assert!(!leftovers[0].exists());
}

#[test]
fn unknown_commits_and_folders_without_a_repository_are_errors() {
    let repository = repository();
    let root = Utf8Path::from_path(repository.path()).unwrap();
    for reference in ["no-such-branch", "--all", ""] {
        let error = TemporaryWorktree::create(root, reference).unwrap_err();
        assert!(matches!(&error, WorktreeError::UnknownCommit(name) if name == reference), "{error}");
    }
    let outside = tempfile::tempdir().unwrap();
    let error = TemporaryWorktree::create(Utf8Path::from_path(outside.path()).unwrap(), "main").unwrap_err();
    assert!(matches!(error, WorktreeError::NoRepository { .. }), "{error}");
}
