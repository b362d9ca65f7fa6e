//! The processes that recorded a run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::run_status::{FAILED, RecordedStatus};
use crate::event::{AGENT_SOURCE, SOURCE_KIND};

/// Bytes of the hash of a policy in a text. They are enough to tell policies apart.
const HASH_BYTES: usize = 12;

/// The processes that recorded a run, by their ids.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordedSources(BTreeMap<String, RecordedSource>);

/// A process that recorded a part of a run.
#[derive(Debug, Clone, Default)]
struct RecordedSource {
    is_agent: bool,
    program: Option<String>,
    server_name: Option<String>,
    mode: Option<String>,
    policy: BTreeMap<&'static str, String>,
    status: Option<String>,
    /// How the process of an agent ended.
    exit: Value,
}

impl RecordedSource {
    fn status(&self, without_end: &RecordedStatus) -> RecordedStatus {
        self.status.as_deref().map_or_else(|| without_end.clone(), RecordedStatus::new)
    }

    /// Returns the policy with its mode, in a few words: `shop version 2 (guardrails, hash 1f3870be274f)`.
    fn policy_text(&self) -> Option<String> {
        let field = |name| self.policy.get(name).map(String::as_str).filter(|text| !text.is_empty());
        let version = field("policy_version").map(|version| format!(" version {version}")).unwrap_or_default();
        let hash = field("policy_hash").map(|hash| format!("hash {}", &hash[..hash.floor_char_boundary(HASH_BYTES)]));
        let details: Vec<_> = self.mode.clone().into_iter().chain(hash).collect();
        Some(format!("{}{version} ({})", field("policy_id")?, details.join(", ")))
    }

    /// Returns how the process of a failed agent ended, in a few words.
    fn exit_text(&self) -> Option<String> {
        let code = self.exit["code"].as_i64().map(|code| format!("exit code {code}"));
        let signal = || self.exit["signal"].as_i64().map(|signal| format!("signal {signal}"));
        code.or_else(signal).or_else(|| self.exit["not_started"].as_str().map(str::to_owned))
    }
}

impl RecordedSources {
    /// Adds what the start or the end of a process states.
    pub(super) fn add(&mut self, shim_id: &str, event: &Value) {
        let source = self.0.entry(shim_id.to_owned()).or_default();
        let run = &event["run"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match event["type"].as_str() {
            Some("run_start") => {
                source.is_agent = run["meta"][SOURCE_KIND] == AGENT_SOURCE;
                source.program = text(&run["meta"]["program"]);
                source.server_name = text(&run["meta"]["server_name"]);
                source.mode = text(&run["mode"]);
                let fields = ["policy_id", "policy_version", "policy_hash"];
                let fields = fields.into_iter().filter_map(|field| Some((field, text(&run["policy"][field])?)));
                source.policy = fields.collect();
            }
            Some("run_end") => {
                source.status = text(&run["status"]).or(source.status.take());
                source.exit = run["exit"].clone();
            }
            _ => {}
        }
    }

    /// Returns true if a process recorded the calls of a server, as shims and proxies do.
    pub(super) fn has_guard(&self) -> bool {
        self.0.values().any(|source| !source.is_agent)
    }

    /// Returns the policies by which calls were decided.
    pub(super) fn policies(&self) -> BTreeSet<String> {
        self.0.values().filter(|source| !source.is_agent).filter_map(RecordedSource::policy_text).collect()
    }

    /// Returns the servers that did not succeed, each with the worst status of its processes. `without_end` is the status of a
    /// process without an end.
    pub(super) fn failed_servers(&self, without_end: &RecordedStatus) -> Map<String, Value> {
        let mut failed: BTreeMap<&str, RecordedStatus> = BTreeMap::new();
        for source in self.0.values() {
            let Some(server) = source.server_name.as_deref() else { continue };
            let status = source.status(without_end);
            if status.is_success() {
                continue;
            }
            let worst = failed.get(server).cloned().max(Some(status));
            failed.extend(worst.map(|worst| (server, worst)));
        }
        failed.into_iter().map(|(server, status)| (server.to_owned(), json!(status.as_str()))).collect()
    }

    /// Returns how the agent ended, if it did not succeed: its exit code, the signal that killed it, or else its status. If the run
    /// has several agents, this is the one with the worst status.
    pub(super) fn failed_agent(&self, without_end: &RecordedStatus) -> Option<String> {
        let agents = self.0.values().filter(|source| source.is_agent);
        let (status, agent) =
            agents.map(|agent| (agent.status(without_end), agent)).max_by(|one, other| one.0.cmp(&other.0))?;
        let stated = || agent.exit_text().filter(|_| status.as_str() == FAILED);
        (!status.is_success()).then(|| stated().unwrap_or_else(|| status.as_str().to_owned()))
    }

    /// Returns the facts about the processes, for readers of the artifact.
    pub(super) fn facts(&self) -> Value {
        let facts = self.0.iter().map(|(shim_id, source)| {
            json!({
                "shim_id": shim_id,
                "kind": if source.is_agent { AGENT_SOURCE } else { "server" },
                "program": source.program,
                "server_name": source.server_name,
                "mode": source.mode,
                "policy": source.policy,
                "status": source.status,
                "exit": source.exit,
            })
        });
        facts.collect()
    }
}
