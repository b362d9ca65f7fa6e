//! What a command in a sandbox can and cannot do.

use std::fs;
use std::net::TcpListener;
use std::sync::Mutex;
use std::time::Duration;

use counterproof_safe_run::{Cancellation, Input};
use counterproof_workflow::tools::{Sandbox, SandboxChoice, SandboxedCommand, Tools};
use serde_json::json;

use crate::kit::{Kit, restricting, sandboxes, supervisor};

/// Runs a line with the tool, and returns its message.
fn shell(kit: &Kit, sandbox: Sandbox, line: &str) -> String {
    let tools = Tools::new(kit.options(sandbox));
    let outcome = tools.run("shell", &json!({"command": line}).to_string(), &Cancellation::default());
    assert_eq!(outcome.result.sandbox.as_deref(), Some(sandbox.name()));
    outcome.message
}

/// A file in the home folder of this user, which is removed at the end.
struct HomeFile(std::path::PathBuf);

impl Drop for HomeFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_sandbox_is_found_where_the_kernel_has_one() {
    let found = Sandbox::detect(SandboxChoice::Auto).unwrap();
    assert_eq!(found == Sandbox::None, restricting().is_empty());
}

#[test]
fn only_the_workspace_and_the_private_folder_are_written() {
    for sandbox in restricting() {
        let kit = Kit::new();
        let outside = kit.path("outside");
        let line = format!(
            "echo in > in; echo tmp > \"$TMPDIR/tmp\"; echo null > /dev/null && echo null; \
             echo x > {outside}/x; echo x > /tmp/counterproof-x; echo x > /dev/shm/counterproof-x; \
             echo x > \"$HOME/counterproof-x\"; mkdir {outside}/d; ln -s x {outside}/l; mv in {outside}/in; \
             cp in copy; mv copy moved; ls"
        );
        let message = shell(&kit, sandbox, &line);
        assert!(message.contains("null\n") && message.ends_with("in\nmoved\nexit code 0"), "{sandbox:?}: {message}");
        assert_eq!(
            (kit.content("in"), fs::read_to_string(kit.path("private/tmp")).unwrap()),
            ("in\n".into(), "tmp\n".into())
        );
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{sandbox:?}");
        let home = std::env::var("HOME").unwrap();
        for path in ["/tmp/counterproof-x", "/dev/shm/counterproof-x", &format!("{home}/counterproof-x")] {
            assert!(fs::symlink_metadata(path).is_err(), "{sandbox:?} {path}");
        }
    }
}

#[test]
fn secrets_and_other_temporary_files_are_not_read() {
    let home = std::env::var("HOME").unwrap();
    let name = format!(".counterproof-{}_history", std::process::id());
    let history = HomeFile(std::path::Path::new(&home).join(&name));
    fs::write(&history.0, "typed by a person").unwrap();
    for sandbox in restricting() {
        let kit = Kit::new();
        fs::write(kit.path("outside").join("file"), "of another").unwrap();
        kit.file("a.txt", "of the workspace");
        std::os::unix::fs::symlink(&history.0, kit.path("workspace").join("link")).unwrap();
        let line = format!(
            "cat a.txt; cat ~/{name}; cat link; cat {}/file; cat /etc/shadow; cat /etc/passwd",
            kit.path("outside")
        );
        let message = shell(&kit, sandbox, &line);
        assert!(message.contains("of the workspace") && message.contains("root:x:0"), "{sandbox:?}: {message}");
        assert!(!message.contains("typed") && !message.contains("of another"), "{sandbox:?}: {message}");
        assert!(!message.contains("root:*") && !message.contains("root:!"), "{sandbox:?}: {message}");
    }
}

#[test]
fn there_is_no_network_except_to_allowed_ports() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let python = format!("import socket; socket.create_connection((\"127.0.0.1\", {port})); print(\"connected\")");
    let line = format!("python3 -c '{python}'");
    for sandbox in restricting() {
        let kit = Kit::new();
        let message = shell(&kit, sandbox, &line);
        assert!(!message.contains("connected\n") && message.ends_with("exit code 1"), "{sandbox:?}: {message}");
        let bind = "python3 -c 'import socket; socket.socket().bind((\"127.0.0.1\", 0)); print(\"bound\")'";
        let bound = shell(&kit, sandbox, bind).contains("bound\n");
        // In namespaces of its own, a command has only itself to serve.
        assert!(sandbox == Sandbox::Bwrap || !bound);
        let output = Mutex::new(Vec::new());
        let command = SandboxedCommand { tcp_ports: vec![port], ..command(&kit, &format!("cat; {line}")) };
        let record = command
            .run(sandbox, &Cancellation::default(), &mut |_, _, bytes| output.lock().unwrap().extend_from_slice(bytes));
        let output = String::from_utf8(output.into_inner().unwrap()).unwrap();
        assert!(record.unwrap().ending.is_success(), "{sandbox:?}: {output}");
        assert_eq!(output, "a taskconnected\n");
    }
}

fn command(kit: &Kit, line: &str) -> SandboxedCommand {
    SandboxedCommand {
        line: line.to_owned(),
        workspace: kit.path("workspace"),
        private: kit.path("private"),
        readable: Vec::new(),
        environment: [].into(),
        input: Input::bytes(b"a task").unwrap(),
        tcp_ports: Vec::new(),
        timeout: None,
        output_limit: None,
        grace: Duration::from_secs(1),
        supervisor: Some(supervisor()),
    }
}

#[test]
fn this_process_is_out_of_reach() {
    let id = std::process::id();
    for sandbox in restricting() {
        let kit = Kit::new();
        let line = format!("exec 2>/dev/null; kill -0 {id} && echo reached; cat /proc/{id}/environ | wc -c; echo end");
        let message = shell(&kit, sandbox, &line);
        assert_eq!(message, "0\nend\nexit code 0", "{sandbox:?}");
    }
}

#[test]
fn root_has_no_rights_on_the_system() {
    for sandbox in restricting() {
        let kit = Kit::new();
        let line = "mount -o remount,rw,bind / 2>/dev/null && echo mounted; grep CapEff /proc/self/status";
        let message = shell(&kit, sandbox, line);
        let rights = message.lines().next().unwrap().strip_prefix("CapEff:\t").unwrap();
        let rights = u64::from_str_radix(rights, 16).unwrap();
        // The rights on files and on users: `CAP_CHOWN` to `CAP_SETUID`, of which one is dropped.
        assert_eq!(rights & !0b1111_1011, 0, "{sandbox:?}: {message}");
    }
}

#[test]
fn the_environment_has_no_secrets() {
    for sandbox in sandboxes() {
        let kit = Kit::new();
        let tools = Tools::new(kit.options(sandbox));
        let line = "echo \"$TMPDIR|$PYTHONDONTWRITEBYTECODE|$HOME|$(pwd)\"";
        let outcome = tools.run("shell", &json!({"command": line}).to_string(), &Cancellation::default());
        let (private, workspace) = (kit.path("private"), kit.path("workspace"));
        let home = std::env::var("HOME").unwrap();
        assert_eq!(outcome.message, format!("{private}|1|{home}|{workspace}\nexit code 0"), "{sandbox:?}");
    }
}

#[test]
fn builds_work_in_a_sandbox() {
    for sandbox in restricting() {
        let kit = Kit::new();
        kit.file("Cargo.toml", "[package]\nname = \"a\"\nedition = \"2024\"\n");
        kit.file("src/lib.rs", "#[test]\nfn works() {}\n");
        kit.file("test_a.py", "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n");
        // Each only where the program is installed.
        for (program, line, expected) in [
            ("cargo", "cargo test -q", "1 passed"),
            ("python3", "python3 -m unittest", "OK"),
            ("node", "node -e 'console.log(require(\"os\").tmpdir().length > 0)'", "true"),
            (
                "git",
                "git init -q . && git add src && git -c user.name=a -c user.email=a commit -qm a && git log --oneline | wc -l",
                "1",
            ),
        ] {
            let message =
                shell(&kit, sandbox, &format!("command -v {program} >&2 || {{ echo absent; exit; }}; {line}"));
            assert!(message.contains("absent\n") || message.contains(expected), "{sandbox:?} {program}: {message}");
            assert!(message.ends_with("exit code 0"), "{sandbox:?} {program}: {message}");
        }
    }
}
