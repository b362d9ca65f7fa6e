//! Which rules can match the names of a call. The result is the same for every call of a tool, so it is cached.

use std::collections::HashMap;
use std::sync::Arc;

use super::counters::ScopeKeys;
use super::model::{Condition, Conditions, Doubt, MAX_NAME_BYTES, Match, NameMatch, Policy};

/// Largest number of pairs of names in the cache. It is emptied when full: an agent that invents names costs only time.
const MAX_CACHED: usize = 1024;

#[derive(Debug)]
pub(super) struct NameFacts {
    pub(super) scopes: ScopeKeys,
    /// The enabled rules whose patterns are not known to fail, in order.
    pub(super) candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) rule: usize,
    pub(super) undecided: Option<UndecidedName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UndecidedName {
    Server,
    Tool,
}

#[derive(Debug, Default)]
pub(super) struct NameCache {
    by_server: HashMap<Box<str>, HashMap<Box<str>, Arc<NameFacts>>>,
    length: usize,
}

impl NameCache {
    pub(super) fn facts(&mut self, policy: &Policy, server_name: &str, tool_name: &str) -> Arc<NameFacts> {
        if let Some(facts) = self.by_server.get(server_name).and_then(|tools| tools.get(tool_name)) {
            return facts.clone();
        }
        let facts = Arc::new(NameFacts::new(policy, server_name, tool_name));
        // Longer names are never matched, and would let an agent fill the memory.
        if server_name.len().max(tool_name.len()) <= MAX_NAME_BYTES {
            if self.length == MAX_CACHED {
                self.by_server.clear();
                self.length = 0;
            }
            self.length += 1;
            self.by_server.entry(server_name.into()).or_default().insert(tool_name.into(), facts.clone());
        }
        facts
    }
}

impl NameFacts {
    fn new(policy: &Policy, server_name: &str, tool_name: &str) -> Self {
        let (servers, tools) = (policy.server_names.matches(server_name), policy.tool_names.matches(tool_name));
        let rules = policy.rules.iter().enumerate().filter(|(_, rule)| rule.is_enabled);
        let candidates = rules.filter_map(|(index, rule)| {
            let (server, tool) = matches(&rule.conditions, &servers, &tools);
            match (server, tool) {
                // A name that fails decides, also if the other one is too long to be matched.
                (NameMatch::No, _) | (_, NameMatch::No) => None,
                (NameMatch::TooLong, _) => Some(Candidate { rule: index, undecided: Some(UndecidedName::Server) }),
                (_, NameMatch::TooLong) => Some(Candidate { rule: index, undecided: Some(UndecidedName::Tool) }),
                (NameMatch::Yes, NameMatch::Yes) => Some(Candidate { rule: index, undecided: None }),
            }
        });
        Self { scopes: ScopeKeys::new(server_name, tool_name), candidates: candidates.collect() }
    }
}

impl UndecidedName {
    pub(super) const fn as_match(self) -> Match<'static> {
        match self {
            UndecidedName::Server => Match::Undecided(Condition::ServerName, Doubt::NameTooLong),
            UndecidedName::Tool => Match::Undecided(Condition::ToolName, Doubt::NameTooLong),
        }
    }
}

fn matches(
    conditions: &Conditions,
    servers: &super::model::MatchedPatterns,
    tools: &super::model::MatchedPatterns,
) -> (NameMatch, NameMatch) {
    (servers.of(conditions.server_name.as_ref()), tools.of(conditions.tool_name.as_ref()))
}

/// Returns the name that rules out a rule that is not a candidate.
pub(super) fn failed_name(
    policy: &Policy,
    conditions: &Conditions,
    server_name: &str,
    tool_name: &str,
) -> Condition<'static> {
    let (servers, tools) = (policy.server_names.matches(server_name), policy.tool_names.matches(tool_name));
    match matches(conditions, &servers, &tools) {
        (NameMatch::No, _) => Condition::ServerName,
        _ => Condition::ToolName,
    }
}
