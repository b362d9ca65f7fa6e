//! A git repository with contracts, for the tests of `counterproof contract`.

use std::process::{Command, Stdio};
use std::time::Duration;

use counterproof_store::write::{Durability, create_folder, write};
use counterproof_tests::{Finished, Sandbox};
use serde_json::{Value, json};

/// A sandbox that is a git repository.
pub(crate) struct Project {
    pub(crate) sandbox: Sandbox,
}

impl Project {
    pub(crate) fn new() -> Self {
        let sandbox = Sandbox::new();
        let locks = sandbox.path("../locks-of-the-tests").to_string();
        let locks = format!("{locks}-{}", std::process::id());
        let sandbox = sandbox
            .with_variable("COUNTERPROOF_LOCKS", &locks)
            .with_variable("GIT_CONFIG_GLOBAL", "/dev/null")
            .with_variable("USER", "ada")
            .with_file(".gitignore", ".counterproof/\nruns/\ntarget/\n");
        let project = Self { sandbox };
        project.git(&["init", "--quiet", "--initial-branch", "main"]);
        project.commit();
        project
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.sandbox.root()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Test").env(format!("GIT_{role}_EMAIL"), "test@localhost");
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "work"]);
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.sandbox.path(name);
        create_folder(path.parent().unwrap()).unwrap();
        write(&path, text.as_bytes(), Durability::Cached).unwrap();
    }

    pub(crate) fn contract(&self, arguments: &[&str]) -> Finished {
        self.sandbox.run(["contract"].iter().chain(arguments))
    }

    /// Adds a contract document.
    pub(crate) fn add(&self, contract: &Value) -> Finished {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contract.json");
        #[expect(clippy::disallowed_methods, reason = "outside of the repository, and read at once")]
        std::fs::write(&path, contract.to_string()).unwrap();
        self.contract(&["add", path.to_str().unwrap()])
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let finished = self.contract(&[arguments, &["--json"]].concat());
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished}"))
    }

    /// Runs contracts until the file `marker` exists, and interrupts the run. Returns its exit code.
    pub(crate) fn interrupt(&self, arguments: &[&str], marker: &str) -> Option<i32> {
        let mut run = self
            .sandbox
            .command(["contract", "run"].iter().chain(arguments))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !self.sandbox.path(marker).exists() {
            assert!(run.try_wait().unwrap().is_none(), "the run ended before it wrote `{marker}`");
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = rustix::process::Pid::from_child(&run);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        run.wait().unwrap().code()
    }

    #[track_caller]
    pub(crate) fn state(&self, id: &str) -> String {
        self.json(&["show", id])["state"].as_str().unwrap().to_owned()
    }
}

/// A contract that is met if its agent prints `{"ok": true}`, with nothing to undo.
pub(crate) fn simple(id: &str, dependencies: &[&str]) -> Value {
    json!({
        "id": id, "version": 1, "created_at": "2026-01-31T12:00:00Z",
        "input": {"type": "task", "data": {}}, "output": {"type": "result", "schema": {"ok": "boolean"}},
        "verification": {"command": "true", "assertions": ["output.ok"]},
        "rollback": {"strategy": "custom", "custom": "true"}, "dependencies": dependencies
    })
}

pub(crate) const GOOD: &str = "echo '{\"ok\": true}'";
pub(crate) const BAD: &str = "echo '{\"ok\": false}'";
