//! Commands of contracts: limits, cancellation, input and evidence.

use std::thread;
use std::time::Duration;

use counterproof_contracts::process::{
    AgentError, Cancellation, EvidenceBudget, EvidenceFolder, FinishedCommand, ProcessError, ShellCommand, StopReason,
    agent_command, agent_output, run,
};
use counterproof_redaction::Redactor;
use counterproof_safe_run::Ending;
use serde_json::json;

use crate::kit::{Folder, processes_with, unique_sleep, wait_until, worker};

fn finished(command: &ShellCommand) -> FinishedCommand {
    run(command, &Cancellation::default()).unwrap()
}

#[test]
fn a_command_has_its_folder_environment_and_input() {
    let folder = Folder::new();
    let mut command = folder.command("pwd -P; echo \"$PORT ${HOME-unset}\"; cat; echo warning >&2; exit 3");
    command.set("PORT", "3200");
    command.environment.insert("HOME".into(), None);
    command.input = b"from stdin".to_vec();
    let finished = finished(&command);
    assert_eq!((finished.ending, finished.stopped, finished.is_success()), (Ending::Exited(3), None, false));
    let expected = format!("{}\n3200 unset\nfrom stdin", folder.path());
    assert_eq!(String::from_utf8(finished.stdout.bytes).unwrap(), expected);
    assert_eq!(finished.stderr.bytes, b"warning\n");
}

#[test]
fn a_time_limit_ends_every_process_of_a_command_that_ignores_it() {
    let folder = Folder::new();
    let (ours, other) = (unique_sleep(), unique_sleep());
    let line = format!("trap '' TERM; setsid sleep {other} & sleep {ours}; sleep {ours}");
    let command = ShellCommand {
        timeout: Duration::from_millis(300),
        grace: Duration::from_millis(100),
        ..folder.command(&line)
    };
    let finished = finished(&command);
    assert_eq!((finished.stopped, finished.is_success()), (Some(StopReason::TimedOut), false));
    assert_eq!((processes_with(&ours), processes_with(&other)), (0, 0));
}

#[test]
fn a_command_that_handles_the_time_limit_is_still_timed_out() {
    let folder = Folder::new();
    let line = "trap 'echo asked > asked; exit 0' TERM; while :; do sleep 0.01; done";
    let command = ShellCommand { timeout: Duration::from_millis(200), ..folder.command(line) };
    let finished = finished(&command);
    assert_eq!((finished.ending, finished.stopped), (Ending::Exited(0), Some(StopReason::TimedOut)));
    assert!(!finished.is_success());
    assert_eq!(folder.read("asked"), "asked\n");
}

#[test]
fn a_cancellation_ends_all_commands_and_prevents_further_ones() {
    let folder = Folder::new();
    let cancellation = Cancellation::default();
    let sleeps: Vec<String> = (0..3).map(|_| unique_sleep()).collect();
    thread::scope(|scope| {
        let running: Vec<_> = sleeps
            .iter()
            .map(|sleep| folder.command(&format!("sleep {sleep}")))
            .map(|command| scope.spawn(|| run(&{ command }, &cancellation).unwrap()))
            .collect();
        wait_until("all run", || sleeps.iter().all(|sleep| processes_with(sleep) > 0));
        cancellation.cancel();
        for command in running {
            assert_eq!(command.join().unwrap().stopped, Some(StopReason::Cancelled));
        }
    });
    assert!(sleeps.iter().all(|sleep| processes_with(sleep) == 0));
    let error = run(&folder.command("touch started"), &cancellation).unwrap_err();
    assert!(matches!(error, ProcessError::Cancelled) && !folder.path().join("started").exists());
}

#[test]
fn a_command_that_prints_without_end_is_killed() {
    let folder = Folder::new();
    let command = ShellCommand { output_limit: 1 << 20, stdout_limit: 10, ..folder.command("trap '' TERM; yes") };
    let finished = finished(&command);
    assert_eq!(finished.stopped, Some(StopReason::OutputTooLarge));
    assert_eq!((finished.stdout.bytes.len(), finished.stdout.is_cut), (10, true));
}

#[test]
fn a_large_input_that_is_not_read_does_not_block() {
    let folder = Folder::new();
    let command = ShellCommand { input: vec![b'x'; 4 << 20], ..folder.command("true") };
    assert!(finished(&command).is_success());
}

#[test]
fn a_missing_folder_is_an_error_with_a_code() {
    let folder = Folder::new();
    let command = ShellCommand { supervisor: Some(worker()), ..ShellCommand::new("true", folder.path().join("none")) };
    let error = run(&command, &Cancellation::default()).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("command_not_started", "cannot run the command `true`"));
}

#[test]
fn evidence_is_redacted_and_never_overwritten() {
    let folder = Folder::new();
    let redactor = Redactor::new(["hunter2-hunter2"]).unwrap();
    let path = folder.path().join("evidence");
    let evidence = EvidenceFolder { path: &path, redactor: &redactor };
    let command = folder.command("echo password=hunter2-hunter2; exit 1");
    let files = evidence.store("attempt-1", finished(&command), &mut EvidenceBudget::default()).unwrap();
    assert_eq!((files.log.as_str(), files.events.as_str()), ("attempt-1.log", "attempt-1.jsonl"));
    for name in [&files.log, &files.events] {
        let text = folder.read(&format!("evidence/{name}"));
        assert!(text.contains("password=[redacted]") && !text.contains("hunter2"), "{text}");
    }
    let error = evidence.store("attempt-1", finished(&command), &mut EvidenceBudget::default()).unwrap_err();
    assert!(matches!(&error, ProcessError::Exists(existing) if existing.ends_with("attempt-1.log")), "{error}");
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn an_agent_gets_the_input_and_returns_json() {
    let folder = Folder::new();
    let contract = serde_json::from_value(json!({
        "id": "shop/refund/001", "version": 2, "created_at": "2026-02-02T14:30:00Z",
        "input": {"type": "codebase_context", "data": {"issue": "leak"}, "constraints": {"memory_baseline": 10}},
        "output": {"type": "code_change", "schema": true},
        "verification": {"command": "true"}, "rollback": {"strategy": "git_reset"}
    }))
    .unwrap();
    let agent = |line: &str| {
        let command = agent_command(&contract, line, &folder.path()).unwrap();
        agent_output(&finished(&ShellCommand { supervisor: Some(worker()), ..command }))
    };
    let echo = r#"printf '{"input": '; cat; printf ', "contract": "%s@%s"}' "$COUNTERPROOF_CONTRACT_ID" "$COUNTERPROOF_CONTRACT_VERSION""#;
    let input = json!({"type": "codebase_context", "data": {"issue": "leak"}, "constraints": {"memory_baseline": 10}});
    assert_eq!(agent(echo).unwrap(), json!({"input": input, "contract": "shop/refund/001@2"}));
    assert!(matches!(agent("echo '{}'; exit 7"), Err(AgentError::Failed(Ending::Exited(7)))));
    assert!(matches!(agent("echo done"), Err(AgentError::NotJson(_))));
    assert!(matches!(agent("head -c 16777217 /dev/zero"), Err(AgentError::TooLarge)));
    assert!(matches!(agent("yes"), Err(AgentError::TooLarge)), "it is killed at the limit");
    assert!(matches!(agent("yes >&2"), Err(AgentError::TooLarge)));
}

#[test]
fn the_evidence_of_many_short_lines_and_of_many_attempts_is_bounded() {
    let folder = Folder::new();
    let redactor = Redactor::new(["hunter2-hunter2"]).unwrap();
    let path = folder.path().join("evidence");
    let evidence = EvidenceFolder { path: &path, redactor: &redactor };
    let mut budget = EvidenceBudget::default();
    let size = |name: &str| std::fs::metadata(path.join(name)).unwrap().len();
    let command = folder.command("yes '' | head -c 4000000; exit 1");
    for (number, limit) in [(1, 17 << 20), (2, 80 << 10), (3, 80 << 10)] {
        let files = evidence.store(&format!("attempt-{number}"), finished(&command), &mut budget).unwrap();
        assert!(size(&files.log) + size(&files.events) < limit, "attempt {number}");
        let text = folder.read(&format!("evidence/{}", files.events));
        assert!(text.contains("bytes of output are left out") && text.contains("exit_code"), "attempt {number}");
    }
}
