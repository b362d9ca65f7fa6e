//! The tool `shell`: its output, its limits, and what is left of a command.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use counterproof_guard::identity::RunIdentity;
use counterproof_guard::policy::Policy;
use counterproof_safe_run::Cancellation;
use counterproof_sessions::event::CommandLine;
use counterproof_workflow::tools::{AgentPolicy, Sandbox, ToolOptions, ToolOutcome, Tools};
use serde_json::{Value, json};

use crate::kit::{Kit, restricting, sandboxes};

fn shell(kit: &Kit, sandbox: Sandbox, arguments: &Value) -> ToolOutcome {
    Tools::new(kit.options(sandbox)).run("shell", &arguments.to_string(), &Cancellation::default())
}

/// Returns the number of running processes that have this word as an argument.
fn processes_with(word: &str) -> usize {
    let has_word = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().filter(has_word).count()
}

#[test]
fn a_command_ends_with_its_exit_code() {
    for sandbox in sandboxes() {
        let kit = Kit::new();
        let ended = shell(&kit, sandbox, &json!({"command": "echo out; echo err >&2; printf end; exit 3"}));
        // The order of the two streams is that in which they are read.
        let expected = ["out\nerr\nend\nexit code 3", "out\nenderr\nexit code 3", "err\nout\nend\nexit code 3"];
        assert!(expected.contains(&&*ended.message), "{sandbox:?}: {}", ended.message);
        assert_eq!((ended.result.success, ended.result.error.as_deref()), (Some(false), Some("exit code 3")));
        let command = ended.command.unwrap();
        assert_eq!(command.command, Some(CommandLine::Shell("echo out; echo err >&2; printf end; exit 3".into())));
        assert_eq!(
            (command.exit_code, command.stdout.as_deref(), command.stderr.as_deref()),
            (Some(3), Some("out\nend"), Some("err\n"))
        );
        let quiet = shell(&kit, sandbox, &json!({"command": "true"}));
        assert_eq!((quiet.message.as_str(), quiet.result.success), ("exit code 0", Some(true)), "{sandbox:?}");
        assert_eq!(shell(&kit, sandbox, &json!({"command": "cat"})).message, "exit code 0", "without input");
        assert!(shell(&kit, sandbox, &json!({"command": "kill -9 $$"})).message.ends_with("exit code 137"));
    }
}

#[test]
fn long_output_is_shown_in_part_and_recorded_whole() {
    let kit = Kit::new();
    let ended = shell(&kit, Sandbox::None, &json!({"command": "head -c 25000 /dev/zero | tr '\\0' x"}));
    let expected = format!("{}\n[Output truncated. 5000 characters removed.]\nexit code 0", "x".repeat(20_000));
    assert_eq!(ended.message, expected);
    assert_eq!((ended.result.truncated, ended.result.success), (Some(true), Some(true)));
    assert_eq!(ended.result.content.unwrap(), format!("{}\nexit code 0", "x".repeat(25_000)));
}

#[test]
fn a_flood_of_output_ends_the_command() {
    for sandbox in sandboxes() {
        let kit = Kit::new();
        let ended = shell(&kit, sandbox, &json!({"command": "yes; echo end"}));
        assert!(ended.message.starts_with("error: the command printed more than 8 MiB, and was killed\ny\n"));
        assert!(ended.message.ends_with("exit code 137"), "{sandbox:?}");
        assert!(ended.message.len() < 30_000);
        assert_eq!((ended.result.success, ended.interrupted), (Some(false), false));
        assert!(ended.result.content.unwrap().len() <= (8 << 20) + 200);
    }
}

#[test]
fn a_time_limit_ends_the_command_and_all_that_it_started() {
    for sandbox in sandboxes() {
        let kit = Kit::new();
        let seconds = format!("7{:07}.{}", std::process::id(), sandbox as u32);
        let line = format!("trap '' TERM; setsid sleep {seconds} & sleep {seconds}; sleep {seconds}");
        let ended = shell(&kit, sandbox, &json!({"command": line, "timeout_s": 1}));
        assert!(
            ended.message.starts_with("error: the command did not end within 1 s, and was killed\n"),
            "{}",
            ended.message
        );
        // bubblewrap itself ends by the first signal, and all processes in it are killed.
        let code = if sandbox == Sandbox::Bwrap { 143 } else { 137 };
        assert!(ended.message.ends_with(&format!("exit code {code}")), "{}", ended.message);
        assert_eq!(processes_with(&seconds), 0, "{sandbox:?}");
    }
}

#[test]
fn a_daemon_does_not_outlive_its_command() {
    for sandbox in sandboxes() {
        let kit = Kit::new();
        let seconds = format!("6{:07}.{}", std::process::id(), sandbox as u32);
        let line = format!("setsid sh -c 'setsid sleep {seconds} >/dev/null 2>&1 & echo started' && echo end");
        let ended = shell(&kit, sandbox, &json!({"command": line}));
        assert_eq!(ended.message, "started\nend\nexit code 0", "{sandbox:?}");
        assert_eq!(processes_with(&seconds), 0, "{sandbox:?}");
    }
}

#[test]
fn a_cancelled_command_is_interrupted() {
    for sandbox in sandboxes() {
        let kit = Kit::new();
        let cancel = Cancellation::default();
        let tools = Tools::new(kit.options(sandbox));
        thread::scope(|scope| {
            let running = scope.spawn(|| tools.run("shell", r#"{"command": "echo > ready; sleep 1000"}"#, &cancel));
            let end = Instant::now() + Duration::from_mins(1);
            while !kit.path("workspace/ready").exists() {
                assert!(Instant::now() < end, "the command did not start");
                thread::sleep(Duration::from_millis(5));
            }
            cancel.cancel();
            let ended = running.join().unwrap();
            assert!(
                ended.interrupted && ended.message.starts_with("error: the command was interrupted\n"),
                "{ended:?}"
            );
        });
        let later = tools.run("shell", r#"{"command": "true"}"#, &cancel);
        assert_eq!((later.message.as_str(), later.interrupted), ("error: the command was interrupted", true));
    }
}

#[test]
fn a_policy_decides_each_call() {
    let kit = Kit::new();
    let policy = "policy_id: agent\nversion: 1.0.0\nmode: guardrails\nrules:\n\
                  - {rule_id: no-docs, kind: deny, match: {tool_name: {glob: [write]}, server_name: {glob: [agent]}, \
                  args: {key_equals: {path: docs.md}}}, effect: {message: The documents stay}}\n\
                  - {rule_id: one-command, kind: budget, match: {tool_name: {glob: [shell]}}, \
                  effect: {budget: {limit_calls: 1}}}\n";
    let policy = Policy::parse(Utf8Path::new("policy.yaml"), policy.as_bytes()).unwrap();
    let (identity, _) = RunIdentity::from_environment(|_| None);
    let policy = Some(AgentPolicy { policy: Arc::new(policy), identity });
    let tools = Tools::new(ToolOptions { policy, ..kit.options(Sandbox::None) });
    let run = |name: &str, arguments: Value| tools.run(name, &arguments.to_string(), &Cancellation::default());
    let refused = run("write", json!({"path": "docs.md", "content": "x"}));
    assert_eq!(refused.message, "error: refused by no-docs: The documents stay");
    let decision = refused.decision.unwrap();
    assert_eq!((&decision["action"], &decision["rule_id"]), (&json!("BLOCK"), &json!("no-docs")));
    assert_eq!((refused.result.success, kit.path("workspace/docs.md").exists()), (Some(false), false));
    assert_eq!(run("write", json!({"path": "other.md", "content": "x"})).decision, None);
    assert_eq!(run("shell", json!({"command": "echo ran"})).message, "ran\nexit code 0");
    let second = run("shell", json!({"command": "echo ran"}));
    assert!(second.message.starts_with("error: refused by one-command: "), "{}", second.message);
    assert_eq!(second.command, None);
}

#[test]
fn a_command_in_a_sandbox_cannot_kill_its_supervisor() {
    for sandbox in restricting() {
        let kit = Kit::new();
        let seconds = format!("5{:07}.{}", std::process::id(), sandbox as u32);
        let line = format!("setsid sleep {seconds} >/dev/null 2>&1 & kill -9 $PPID; kill -9 -1; echo end");
        let ended = shell(&kit, sandbox, &json!({"command": line}));
        // Linux before 6.12 does not restrict signals.
        assert!(sandbox == Sandbox::Landlock || ended.message.contains("end\n"), "{}", ended.message);
        if ended.message.contains("end\n") {
            assert_eq!(processes_with(&seconds), 0, "{sandbox:?}");
        }
    }
}
