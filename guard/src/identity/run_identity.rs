//! The identity of a run, as in the envelope of its events.

use counterproof_artifact::one_line;
use counterproof_ledger::event::{AgentClient, WorkingEnvironment, Workload};
use uuid::Uuid;

use super::IdentityWarning;
use super::variables::{AGENT_ID, CLIENT, ENV, PRINCIPAL, RUN_ID, WORKLOAD};
use super::workload::parse_workload;

/// Longest id in bytes.
const ID_BYTES: usize = 256;

/// Longest value in a warning, in characters.
const VALUE_CHARS: usize = 40;

/// The agent if no variable names it.
const UNKNOWN: &str = "unknown";

/// The names of clients in `SUB_CLIENT`.
pub const CLIENTS: [(&str, AgentClient); 5] = [
    ("claude", AgentClient::Claude),
    ("codex", AgentClient::Codex),
    ("headless", AgentClient::Headless),
    ("custom", AgentClient::Custom),
    ("unknown", AgentClient::Unknown),
];

/// The names of environments in `SUB_ENV`.
pub const WORKING_ENVIRONMENTS: [(&str, WorkingEnvironment); 4] = [
    ("dev", WorkingEnvironment::Dev),
    ("ci", WorkingEnvironment::Ci),
    ("prod", WorkingEnvironment::Prod),
    ("unknown", WorkingEnvironment::Unknown),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunIdentity {
    pub run_id: String,
    pub agent_id: String,
    /// The kind of program that the agent runs in.
    pub client: AgentClient,
    /// The environment that the agent works in.
    pub env: WorkingEnvironment,
    /// The person or service on whose behalf the agent works.
    pub principal: Option<String>,
    /// The job that the agent runs in.
    pub workload: Option<Workload>,
}

impl RunIdentity {
    /// Reads the identity from the [`VARIABLES`](super::VARIABLES). An unset or empty variable gives the default: a new run id, and
    /// `unknown`. A value that cannot be used gives the default and a warning.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> (Self, Vec<IdentityWarning>) {
        let mut warnings = Vec::new();
        let set = |name| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let mut id = |name| set(name).and_then(|value| valid_id(name, value, &mut warnings));
        let (run_id, agent_id, principal) = (id(RUN_ID), id(AGENT_ID), id(PRINCIPAL));
        let client = set(CLIENT).and_then(|name| named(CLIENT, &name, &CLIENTS, &mut warnings));
        let env = set(ENV).and_then(|name| named(ENV, &name, &WORKING_ENVIRONMENTS, &mut warnings));
        let workload = set(WORKLOAD).and_then(|text| parse_workload(&text, &mut warnings));
        let identity = Self {
            run_id: run_id.unwrap_or_else(|| Uuid::now_v7().to_string()),
            agent_id: agent_id.unwrap_or_else(|| UNKNOWN.to_owned()),
            client: client.unwrap_or_default(),
            env: env.unwrap_or_default(),
            principal,
            workload,
        };
        (identity, warnings)
    }

    /// Sets the client that starts the servers. A variable that names a more specific one than `custom` and `unknown` stays.
    #[must_use]
    pub fn with_client(self, client: Option<AgentClient>) -> Self {
        match (self.client, client) {
            (AgentClient::Custom | AgentClient::Unknown, Some(client)) => Self { client, ..self },
            _ => self,
        }
    }
}

fn valid_id(variable: &'static str, value: String, warnings: &mut Vec<IdentityWarning>) -> Option<String> {
    if value.len() <= ID_BYTES && !value.chars().any(char::is_control) {
        return Some(value);
    }
    warnings.push(IdentityWarning::InvalidId { variable, limit: ID_BYTES });
    None
}

/// Returns the value with a name, in any case.
fn named<T: Copy>(
    variable: &'static str,
    name: &str,
    known: &[(&'static str, T)],
    warnings: &mut Vec<IdentityWarning>,
) -> Option<T> {
    let found = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    if found.is_none() {
        let known = known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        warnings.push(IdentityWarning::UnknownName { variable, value: one_line(name, VALUE_CHARS), known });
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> (RunIdentity, Vec<String>) {
        let lookup = |name: &str| variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned());
        let (identity, warnings) = RunIdentity::from_environment(lookup);
        (identity, warnings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn unset_and_empty_variables_give_a_new_run_of_an_unknown_agent() {
        let (one, warnings) = read(&[]);
        assert_eq!(warnings, [""; 0]);
        assert!(Uuid::parse_str(&one.run_id).is_ok());
        let (other, _) = read(&[("SUB_RUN_ID", ""), ("SUB_AGENT_ID", " "), ("SUB_WORKLOAD", "")]);
        assert_ne!(one.run_id, other.run_id);
        assert_eq!(RunIdentity { run_id: one.run_id.clone(), ..other }, one);
        assert_eq!(one.agent_id, "unknown");
        assert_eq!((one.client, one.env), (AgentClient::Unknown, WorkingEnvironment::Unknown));
        assert_eq!((one.principal, one.workload), (None, None));
    }

    #[test]
    fn all_variables_are_read() {
        let workload = r#"{"user":"ada","repo":"r","branch":"main","namespace":"prod","service_account":"sa","pod":"p",
            "repo_path":"/src","ci_provider":"gh","job_id":"7","labels":{"team":"pay"}}"#;
        let (identity, warnings) = read(&[
            ("SUB_RUN_ID", "run-1"),
            ("SUB_AGENT_ID", "coder"),
            ("SUB_CLIENT", "Claude"),
            ("SUB_ENV", "ci"),
            ("SUB_PRINCIPAL", "ada@example.com"),
            ("SUB_WORKLOAD", workload),
        ]);
        assert_eq!(warnings, [""; 0]);
        assert_eq!((identity.run_id.as_str(), identity.agent_id.as_str()), ("run-1", "coder"));
        assert_eq!((identity.client, identity.env), (AgentClient::Claude, WorkingEnvironment::Ci));
        assert_eq!(identity.principal.as_deref(), Some("ada@example.com"));
        assert_eq!(identity.workload, Some(serde_json::from_str(workload).unwrap()));
    }

    #[test]
    fn the_client_of_a_configuration_counts_unless_a_variable_names_a_kind() {
        for (variable, client, expected) in [
            ("", Some(AgentClient::Claude), AgentClient::Claude),
            ("custom", Some(AgentClient::Claude), AgentClient::Claude),
            ("unknown", Some(AgentClient::Custom), AgentClient::Custom),
            ("headless", Some(AgentClient::Claude), AgentClient::Headless),
            ("custom", None, AgentClient::Custom),
        ] {
            let (identity, _) = read(&[("SUB_CLIENT", variable)]);
            assert_eq!(identity.with_client(client).client, expected, "{variable}");
        }
    }

    #[test]
    fn values_that_cannot_be_used_are_warnings() {
        let (identity, warnings) = read(&[
            ("SUB_RUN_ID", "a\nb"),
            ("SUB_AGENT_ID", &"a".repeat(257)),
            ("SUB_CLIENT", "emacs"),
            ("SUB_ENV", "staging"),
            ("SUB_WORKLOAD", "{\"user\": }"),
        ]);
        assert!(Uuid::parse_str(&identity.run_id).is_ok());
        assert_eq!((identity.agent_id.as_str(), identity.workload), ("unknown", None));
        insta::assert_snapshot!(warnings.join("\n"), @"
        `SUB_RUN_ID` is ignored: an id has at most 256 bytes and no control characters
        `SUB_AGENT_ID` is ignored: an id has at most 256 bytes and no control characters
        `SUB_CLIENT` has the unknown value `emacs`; known values: claude, codex, headless, custom, unknown
        `SUB_ENV` has the unknown value `staging`; known values: dev, ci, prod, unknown
        `SUB_WORKLOAD` is ignored: not valid JSON at column 10
        ");
    }

    #[test]
    fn one_wrong_field_of_a_workload_does_not_discard_the_others() {
        let text = r#"{"namespace":"prod","user":["a"],"job_id":7,"pod":null,"labels":{"a":1,"b":{}},"newer":[1]}"#;
        let (identity, warnings) = read(&[("SUB_WORKLOAD", text)]);
        let expected = Workload {
            namespace: Some("prod".to_owned()),
            job_id: Some("7".to_owned()),
            labels: BTreeMap::from([("a".to_owned(), "1".to_owned())]),
            ..Workload::default()
        };
        assert_eq!(identity.workload, Some(expected));
        insta::assert_snapshot!(warnings.join("\n"), @"
        field `user` of `SUB_WORKLOAD` is ignored: it must be a text
        field `labels.b` of `SUB_WORKLOAD` is ignored: it must be a text
        ");
        assert_eq!(read(&[("SUB_WORKLOAD", "[]")]).1, ["`SUB_WORKLOAD` is ignored: it must be a JSON object"]);
    }
}
