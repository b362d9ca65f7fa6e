//! A policy, an engine and calls in few words.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_artifact::Sha256Digest;
use counterproof_artifact::canonical::canonical_hash;
use counterproof_guard::identity::RunIdentity;
use counterproof_guard::mcp::read_sample;
use counterproof_guard::policy::{Args, CallFacts, CallOutcome, Decision, Engine, Policy, RequestFacts, SampleCall};
use counterproof_ledger::event::{Action, AgentClient, Transport, WorkingEnvironment};
use serde_json::{Value, json};

/// Parses a policy. It must be valid.
pub(crate) fn policy(text: &str) -> Policy {
    Policy::parse(Utf8Path::new("policy.yaml"), text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Parses a policy in this mode with these rules, in YAML.
pub(crate) fn rules(mode: &str, rules: &str) -> Policy {
    policy(&format!("policy_id: p\nversion: 1.0.0\nmode: {mode}\nrules:\n{rules}"))
}

/// Returns the findings of an invalid policy, each as position, pointer and message.
pub(crate) fn findings(text: &str) -> Vec<String> {
    let error = Policy::parse(Utf8Path::new("p"), text.as_bytes()).expect_err("the policy is invalid");
    let line = |finding: &counterproof_validation::Finding| {
        let position = finding.position.map(|at| format!("{}:{}", at.line, at.column)).unwrap_or_default();
        format!("{position} {} {}", finding.pointer, finding.message)
    };
    error.findings.iter().map(line).collect()
}

/// Reads the request of a call as the shim does.
pub(crate) fn read_request(call: &SampleCall<'_>) -> Result<RequestFacts, String> {
    read_sample(call).map_err(|problem| problem.to_string())
}

pub(crate) fn identity() -> RunIdentity {
    RunIdentity {
        run_id: "r1".to_owned(),
        agent_id: "reviewer".to_owned(),
        client: AgentClient::Claude,
        env: WorkingEnvironment::Ci,
        principal: None,
        workload: None,
    }
}

/// A run under a policy, with its own clock.
pub(crate) struct Run {
    pub(crate) engine: Engine,
    pub(crate) now: Duration,
    pub(crate) transport: Transport,
}

impl Run {
    pub(crate) fn new(policy: Policy) -> Self {
        Self::with_identity(policy, &identity())
    }

    pub(crate) fn with_identity(policy: Policy, identity: &RunIdentity) -> Self {
        let engine = Engine::new(Arc::new(policy), identity);
        Self { engine, now: Duration::ZERO, transport: Transport::McpStdio }
    }

    /// Moves the clock to a number of milliseconds after the start.
    pub(crate) fn at(&mut self, ms: u64) -> &mut Self {
        self.now = Duration::from_millis(ms);
        self
    }

    pub(crate) fn call(&mut self, server_name: &str, tool_name: &str, args: &Value) -> Decision {
        self.call_with(server_name, tool_name, Args::Inspected(args), &canonical_hash(args))
    }

    /// Calls a tool with arguments that are too large.
    pub(crate) fn large_call(&mut self, server_name: &str, tool_name: &str) -> Decision {
        self.call_with(server_name, tool_name, Args::TooLarge, &Sha256Digest::from_bytes(b"large"))
    }

    fn call_with(&mut self, server_name: &str, tool_name: &str, args: Args<'_>, args_hash: &Sha256Digest) -> Decision {
        let transport = self.transport;
        let call = CallFacts { server_name, tool_name, args, args_hash, bytes_in: 100, transport };
        self.engine.decide(&call, self.now)
    }

    /// Calls a tool without arguments, and returns the action.
    pub(crate) fn action(&mut self, tool_name: &str) -> Action {
        self.call("git", tool_name, &json!({})).record.action
    }

    /// Calls a tool without arguments, and returns the action, the rule and the reason.
    pub(crate) fn reason(&mut self, tool_name: &str) -> (Action, Option<String>, String) {
        let record = self.call("git", tool_name, &json!({})).record;
        (record.action, record.rule_id, record.explain.reason_code)
    }

    /// Reports that a forwarded call failed.
    pub(crate) fn fail(&mut self, tool_name: &str) {
        let outcome = CallOutcome { server_name: "git", tool_name, is_error: true };
        self.engine.record_outcome(&outcome, self.now);
    }
}
