//! The kit of the tests of `guard shim`: a shim in front of the test server, its policy, and the events that it leaves.

use std::process::Command;

use counterproof_tests::{McpClient, Sandbox};
use serde_json::Value;

/// The test server.
pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_mcp-test-server");

/// A folder with a policy and the files that shims leave.
pub(crate) struct GuardFolder {
    pub(crate) sandbox: Sandbox,
    variables: Vec<(String, String)>,
    options: Vec<String>,
    server: Vec<String>,
}

impl GuardFolder {
    pub(crate) fn new() -> Self {
        let sandbox = Sandbox::new();
        let state = sandbox.path("state").to_string();
        let home = sandbox.path("home").to_string();
        let folder = Self { sandbox, variables: Vec::new(), options: Vec::new(), server: Vec::new() };
        folder.with_variable("XDG_STATE_HOME", &state).with_variable("HOME", &home)
    }

    /// Adds a policy in YAML.
    pub(crate) fn with_policy(mut self, text: &str) -> Self {
        self.sandbox = self.sandbox.with_file("policy.yaml", text);
        self.options.extend(["--policy".to_owned(), "policy.yaml".to_owned()]);
        self
    }

    /// Adds a rule to a policy in mode `guardrails`.
    pub(crate) fn with_rules(self, rules: &str) -> Self {
        self.with_policy(&format!("policy_id: p\nversion: '1'\nmode: guardrails\nrules:\n{rules}"))
    }

    pub(crate) fn with_option(mut self, name: &str, value: &str) -> Self {
        self.options.extend([name.to_owned(), value.to_owned()]);
        self
    }

    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.sandbox = self.sandbox.with_variable(name, value);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with_file(mut self, name: &str, text: &str) -> Self {
        self.sandbox = self.sandbox.with_file(name, text);
        self
    }

    /// Records a cassette.
    pub(crate) fn recording(&self) -> Self {
        self.with_cassette("--record")
    }

    /// Replays the cassette.
    pub(crate) fn replaying(&self) -> Self {
        self.with_cassette("--replay")
    }

    /// Returns shims of the same folder with one more option.
    fn with_cassette(&self, option: &str) -> Self {
        let sandbox = Sandbox::within(self.sandbox.root());
        let (options, server) = (self.options.clone(), self.server.clone());
        let folder = Self { sandbox, variables: Vec::new(), options, server };
        let with_variables = |folder: Self, (name, value): &(String, String)| folder.with_variable(name, value);
        self.variables.iter().fold(folder, with_variables).with_option(option, "cassette.jsonl")
    }

    /// Passes arguments to the test server.
    pub(crate) fn with_server_arguments(mut self, arguments: &[&str]) -> Self {
        self.server = arguments.iter().map(|&it| it.to_owned()).collect();
        self
    }

    /// Returns the command of a shim in front of the test server.
    pub(crate) fn command(&self) -> Command {
        let server: Vec<String> = [SERVER.to_owned()].into_iter().chain(self.server.clone()).collect();
        self.command_of(&server)
    }

    /// Returns the command of a shim in front of any server.
    pub(crate) fn command_of(&self, server: &[impl AsRef<str>]) -> Command {
        let mut arguments = vec!["guard", "shim", "--server-name", "test", "--events", "events.jsonl"];
        arguments.extend(self.options.iter().map(String::as_str));
        arguments.push("--");
        arguments.extend(server.iter().map(AsRef::as_ref));
        // The test may run where interrupts are ignored, and a shim then ignores them, too.
        self.sandbox.command_in(&["env", "--default-signal"], arguments)
    }

    /// Returns the command of a proxy in front of a server, on a free port.
    pub(crate) fn proxy_command(&self, upstream: &str) -> Command {
        let mut arguments = vec!["guard", "proxy", "--listen", "127.0.0.1:0", "--upstream", upstream];
        arguments.extend(["--server-name", "test", "--events", "events.jsonl"]);
        arguments.extend(self.options.iter().map(String::as_str));
        self.sandbox.command(arguments)
    }

    pub(crate) fn start(&self) -> McpClient {
        McpClient::start(&mut self.command())
    }

    /// The events of all shims so far, in order.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.event_lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn event_lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.sandbox.path("events.jsonl")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The events of one type.
    pub(crate) fn events_of(&self, name: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == name).collect()
    }
}

/// The text of a tool's result.
#[track_caller]
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The names of the events.
pub(crate) fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}
