//! Runs workflows in a sandbox with a repository and a model server.

use std::process::{Child, Command, Stdio};

use camino::Utf8PathBuf;
use counterproof_tests::workflow_model::{CODE, TARGET, TESTS, Turn, answer};
use counterproof_tests::{Finished, ModelAnswer, ModelRequest, ModelServer, Sandbox};
use serde_json::Value;

pub(crate) struct Kit {
    pub(crate) sandbox: Sandbox,
    pub(crate) server: ModelServer,
}

impl Kit {
    pub(crate) fn new(turns: Vec<Turn>) -> Self {
        Self::answering(move |_, request| answer(&turns, request))
    }

    pub(crate) fn answering(decide: impl Fn(usize, &ModelRequest) -> ModelAnswer + Send + Sync + 'static) -> Self {
        let server = ModelServer::start(decide);
        let sandbox = Sandbox::new()
            .with_file("repo/calc.py", CODE)
            .with_file("repo/test_calc.py", TESTS)
            .with_file("repo/.gitignore", "__pycache__/\n")
            .with_variable("COUNTERPROOF_LEDGER", "ledger.db")
            .with_variable("GIT_CONFIG_GLOBAL", "/dev/null");
        let kit = Self { sandbox, server };
        kit.git("repo", &["init", "-q", "-b", "main"]);
        kit.git("repo", &["config", "user.name", "Ada"]);
        kit.git("repo", &["config", "user.email", "ada@example.org"]);
        kit.git("repo", &["add", "-A"]);
        kit.git("repo", &["commit", "-q", "-m", "start"]);
        kit
    }

    pub(crate) fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.sandbox.path(folder)).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn model(&self) -> Vec<String> {
        ["--model-url", &format!("{}/v1", self.server.origin()), "--model", "m"].map(str::to_owned).into()
    }

    pub(crate) fn fix(&self) -> Vec<String> {
        let mut arguments =
            ["workflow", "run", "fix-failing-test", "--repo", "repo", "--test", TARGET].map(str::to_owned).to_vec();
        arguments.extend(self.model());
        arguments.extend(
            ["--test-cmd", "python3 -m unittest -v {test}", "--suite-cmd", "python3 -m unittest -v", "--json"]
                .map(str::to_owned),
        );
        arguments
    }

    pub(crate) fn implement(&self) -> Vec<String> {
        let mut arguments = ["workflow", "run", "implement-feature", "--repo", "repo", "--spec", "Add triple"]
            .map(str::to_owned)
            .to_vec();
        arguments.extend(self.model());
        arguments.extend(["--suite-cmd", "python3 -m unittest -v", "--json"].map(str::to_owned));
        arguments
    }

    pub(crate) fn run(&self, arguments: &[String], more: &[&str]) -> Finished {
        self.sandbox.run(arguments.iter().map(String::as_str).chain(more.iter().copied()))
    }

    pub(crate) fn start(&self, arguments: &[String]) -> Child {
        let mut command = self.sandbox.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn session(&self, arguments: &[&str]) -> Finished {
        self.sandbox.run(["session"].iter().chain(arguments).chain(&["--json"]))
    }

    /// Runs a query that succeeds.
    pub(crate) fn query(&self, arguments: &[&str]) -> Value {
        let run = self.session(arguments);
        assert_eq!(run.code, Some(0), "{run:?}");
        document(&run)
    }

    pub(crate) fn resume(&self, id: &str, more: &[&str]) -> Finished {
        self.session(&[&["resume", id], more].concat())
    }

    pub(crate) fn checkpoints(&self, session: &str) -> Vec<Value> {
        let page = self.query(&["checkpoints", session, "--limit", "1000"]);
        assert_eq!(page["next"], Value::Null);
        page["checkpoints"].as_array().unwrap().clone()
    }

    pub(crate) fn events(&self, session: &str) -> Vec<Value> {
        let page = self.query(&["timeline", session, "--limit", "1000"]);
        page["events"].as_array().unwrap().clone()
    }

    /// Returns the record of a pull request, and its files by `git ls-tree`.
    pub(crate) fn pull_request(&self, result: &Value) -> (Value, String) {
        let url = result["pr_url"].as_str().unwrap_or_else(|| panic!("{result}"));
        let path = Utf8PathBuf::from(url.strip_prefix("file://").unwrap());
        let record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let repository = record["repository"].as_str().unwrap();
        let head = record["head"].as_str().unwrap();
        let tree = self.git(repository, &["ls-tree", "-r", head]);
        assert_eq!(record["head_commit"], self.git(repository, &["rev-parse", head]).as_str());
        (record, tree)
    }
}

pub(crate) fn document(run: &Finished) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}
