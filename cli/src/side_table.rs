//! `[side.baseline]` and `[side.new]` of the configuration: how to reach, start and ask the agent of each side.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use counterproof_artifact::Side;
use counterproof_runner::{AgentCommand, HttpMapping, Protocol, Ready, Secret, UrlTemplate};
use serde::{Deserialize, Deserializer};

use crate::value_parsers::duration;

/// The agents of both sides.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SideTables {
    pub(crate) baseline: SideTable,
    pub(crate) new: SideTable,
}

/// The agent of one side.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SideTable {
    /// The URL of a server. `{port}` is the port that was chosen for `start`.
    #[serde(deserialize_with = "valid::<_, UrlTemplate>")]
    pub(crate) base_url: Option<Secret>,
    /// A program that answers one case.
    #[serde(deserialize_with = "valid::<_, AgentCommand>")]
    pub(crate) command: Option<Secret>,
    /// A command that starts the server.
    #[serde(deserialize_with = "valid::<_, AgentCommand>")]
    pub(crate) start: Option<Secret>,
    /// A URL, a time, or a text of the output of the server that shows that it is ready.
    #[serde(deserialize_with = "optional_ready")]
    pub(crate) ready: Option<Ready>,
    #[serde(deserialize_with = "optional_duration")]
    pub(crate) ready_timeout: Option<Duration>,
    /// A commit whose worktree `setup`, `start` and `command` run in.
    #[serde(rename = "ref")]
    pub(crate) commit: Option<String>,
    /// A command that runs before `start` and `command`.
    #[serde(deserialize_with = "valid::<_, AgentCommand>")]
    pub(crate) setup: Option<Secret>,
    /// Variables for `setup`, `start` and `command`. A value `env:OTHER` is read from the environment.
    pub(crate) env: BTreeMap<String, Secret>,
    /// Headers of every request, as for `--header`.
    pub(crate) headers: BTreeMap<String, Secret>,
    pub(crate) protocol: Option<Protocol>,
    /// The requests and answers of an endpoint of any shape. It implies the protocol `http`.
    pub(crate) http: Option<HttpMapping>,
    pub(crate) model: Option<String>,
    /// The maximum number of requests until the model calls no more tools.
    pub(crate) max_turns: Option<NonZeroU32>,
    /// Whether the answers of a model are requested as streams.
    pub(crate) stream: Option<bool>,
    /// Whether `command` answers many cases, one line each.
    pub(crate) persistent: Option<bool>,
}

/// All keys of a side, in the order of `config show`.
pub(crate) const KEYS: [&str; 15] = [
    "base_url",
    "command",
    "persistent",
    "start",
    "ready",
    "ready_timeout",
    "ref",
    "setup",
    "env",
    "headers",
    "protocol",
    "http",
    "model",
    "max_turns",
    "stream",
];

/// The keys that decide which agent answers. They are inherited together: a baseline with an address of its own must not
/// be started with the command of new.
const TARGET: [&str; 8] = ["base_url", "command", "start", "ready", "ready_timeout", "setup", "ref", "persistent"];

impl SideTables {
    /// Returns the table of a side. Keys that the baseline lacks are those of new.
    pub(crate) fn get(&self, side: Side) -> SideTable {
        let (own, new) = (self.baseline.clone(), self.new.clone());
        let protocol = |table: &SideTable| table.protocol.or(table.http.is_some().then_some(Protocol::Http));
        if side == Side::New {
            return SideTable { protocol: protocol(&new), ..new };
        }
        let protocol = protocol(&own).or_else(|| protocol(&new));
        let target = if own.names_another_target() {
            SideTable::default()
        } else if own.start.is_some() {
            // The server that the baseline starts answers for it.
            let base_url = new.base_url.clone().filter(|url| url.expose().contains("{port}"));
            SideTable { base_url, command: None, persistent: None, ..new.clone() }
        } else {
            new.clone()
        };
        SideTable {
            base_url: own.base_url.or(target.base_url),
            command: own.command.or(target.command),
            start: own.start.or(target.start),
            ready: own.ready.or(target.ready),
            ready_timeout: own.ready_timeout.or(target.ready_timeout),
            commit: own.commit.or(target.commit),
            setup: own.setup.or(target.setup),
            env: if own.env.is_empty() { new.env } else { own.env },
            headers: if own.headers.is_empty() { new.headers } else { own.headers },
            protocol,
            http: own.http.or(new.http),
            model: own.model.or(new.model),
            max_turns: own.max_turns.or(new.max_turns),
            stream: own.stream.or(new.stream),
            persistent: own.persistent.or(target.persistent),
        }
    }

    /// Returns whether the baseline takes this key of its table from new, if it lacks the key.
    pub(crate) fn baseline_inherits(&self, key: &str) -> bool {
        let is_replaced = match key {
            "command" | "persistent" => self.baseline.start.is_some(),
            "base_url" => self.baseline.start.is_some() && self.get(Side::Baseline).base_url.is_none(),
            _ => false,
        };
        !TARGET.contains(&key) || !(is_replaced || self.baseline.names_another_target())
    }

    /// Returns whether the table of the baseline leads to another agent than the one of new.
    pub(crate) fn has_baseline(&self) -> bool {
        let own = &self.baseline;
        own.names_another_target()
            || own.commit.is_some()
            || own.start.is_some()
            || own.model.is_some()
            || own.protocol.is_some()
            || own.http.is_some()
            || !own.env.is_empty()
            || !own.headers.is_empty()
    }
}

impl SideTable {
    /// Returns whether the table has an address or a program that `start` of the other side cannot lead to.
    fn names_another_target(&self) -> bool {
        let is_fixed = |url: &Secret| !url.expose().contains("{port}");
        self.command.is_some() || self.base_url.as_ref().is_some_and(is_fixed)
    }
}

/// Reads a text that `T` can read, and keeps the text, which may contain a secret.
fn valid<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse::<T>().map_err(serde::de::Error::custom)?;
    Ok(Some(Secret::from(text)))
}

fn optional_ready<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Ready>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

fn optional_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    duration(&text).map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(text: &str) -> SideTable {
        toml::from_str::<SideTables>(text).unwrap().get(Side::Baseline)
    }

    #[test]
    fn the_baseline_has_the_keys_that_it_lacks_from_new() {
        let new = "[new]\nstart = \"s\"\nready = \"2s\"\nmodel = \"m\"\n[baseline]\n";
        let started = baseline(&format!("{new}ref = \"main\""));
        assert_eq!((started.start.unwrap().expose(), started.commit.as_deref()), ("s", Some("main")));
        assert_eq!(baseline(&format!("{new}model = \"n\"")).model.as_deref(), Some("n"));
    }

    #[test]
    fn a_baseline_with_its_own_start_is_not_asked_through_the_command_of_new() {
        let started = baseline("[new]\ncommand = \"c\"\npersistent = true\n[baseline]\nstart = \"old\"");
        assert!(started.command.is_none() && started.persistent.is_none() && started.start.is_some());
        let started = baseline("[new]\nbase_url = \"http://remote\"\n[baseline]\nstart = \"old\"");
        assert!(started.base_url.is_none());
    }

    #[test]
    fn a_baseline_with_an_address_is_not_started() {
        let new = "[new]\nstart = \"s\"\nbase_url = \"http://localhost:{port}/v1\"\n[baseline]\n";
        let fixed = baseline(&format!("{new}base_url = \"http://old:1\""));
        assert!(fixed.start.is_none());
        assert!(baseline(new).start.is_some());
    }
}
