//! Who acts: the run, the agent and its environment, from the variables `SUB_*`, and this process as a source of events.
//!
//! The variables are set by `guard run`, or by any other program. Values that cannot be used are warnings: a wrong label must not
//! stop the tool calls of an agent.

use std::collections::BTreeMap;

use counterproof_artifact::one_line;
use counterproof_ledger::event::{AgentClient, EventSource, WorkingEnvironment, Workload};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

const ID_BYTES: usize = 256;
const VALUE_CHARS: usize = 40;
const UNKNOWN: &str = "unknown";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunIdentity {
    pub run_id: String,
    pub agent_id: String,
    pub client: AgentClient,
    pub env: WorkingEnvironment,
    pub principal: Option<String>,
    pub workload: Option<Workload>,
}

impl RunIdentity {
    /// Reads the identity from the [`VARIABLES`]. An unset or empty variable gives the default: a new run id, and
    /// `unknown`. A value that cannot be used gives the default and a warning.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> (Self, Vec<IdentityWarning>) {
        let mut warnings = Vec::new();
        let set = |name| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let mut id = |name| set(name).and_then(|value| valid_id(name, value, &mut warnings));
        let (run_id, agent_id, principal) = (id(RUN_ID), id(AGENT_ID), id(PRINCIPAL));
        let client = set(CLIENT)
            .and_then(|name| named(CLIENT, &name, AgentClient::ALL.map(|it| (it.name(), it)), &mut warnings));
        let env = set(ENV)
            .and_then(|name| named(ENV, &name, WorkingEnvironment::ALL.map(|it| (it.name(), it)), &mut warnings));
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
            // The import states which client starts the server. A variable of the run may know it better.
            (AgentClient::Custom | AgentClient::Unknown, Some(client)) => Self { client, ..self },
            _ => self,
        }
    }
}

fn valid_id(variable: &'static str, value: String, warnings: &mut Vec<IdentityWarning>) -> Option<String> {
    if value.len() <= ID_BYTES && !value.chars().any(char::is_control) {
        return Some(value);
    }
    // Not an error: a wrong label must not stop the tool calls of an agent.
    warnings.push(IdentityWarning::InvalidId { variable, limit: ID_BYTES });
    None
}

fn named<T: Copy, const N: usize>(
    variable: &'static str,
    name: &str,
    known: [(&'static str, T); N],
    warnings: &mut Vec<IdentityWarning>,
) -> Option<T> {
    // In any case: people set the variables by hand.
    let found = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    if found.is_none() {
        let (value, known) = (one_line(name, VALUE_CHARS), known.map(|(name, _)| name).join(", "));
        warnings.push(IdentityWarning::UnknownName { variable, value, known });
    }
    found
}

/// Returns the source of the events of this process: the name of the machine, the process id, and a new id of the shim.
pub fn event_source() -> EventSource {
    EventSource {
        host_id: host_name().unwrap_or_else(|| "unknown".to_owned()),
        proc_id: std::process::id().to_string(),
        shim_id: Uuid::now_v7().to_string(),
    }
}

fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    (!name.is_empty()).then_some(name)
}

pub const RUN_ID: &str = "SUB_RUN_ID";
pub(crate) const AGENT_ID: &str = "SUB_AGENT_ID";
pub(crate) const ENV: &str = "SUB_ENV";
pub(crate) const CLIENT: &str = "SUB_CLIENT";
pub(crate) const PRINCIPAL: &str = "SUB_PRINCIPAL";
/// The job that the agent runs in, as a JSON object.
pub const WORKLOAD: &str = "SUB_WORKLOAD";

pub const VARIABLES: [&str; 6] = [RUN_ID, AGENT_ID, ENV, CLIENT, PRINCIPAL, WORKLOAD];

/// Returns a variable of this process. Bytes that are not UTF-8 are replaced. An empty variable counts as not set.
pub fn process_variable(name: &str) -> Option<String> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| value.to_string_lossy().into_owned())
}

/// A value that cannot be used. The identity has the default instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityWarning {
    #[error("`{variable}` has the unknown value `{value}`; known values: {known}")]
    UnknownName { variable: &'static str, value: String, known: String },
    #[error("`{variable}` is ignored: an id has at most {limit} bytes and no control characters")]
    InvalidId { variable: &'static str, limit: usize },
    #[error("`{variable}` is ignored: not valid JSON at column {column}")]
    InvalidJson { variable: &'static str, column: usize },
    #[error("`{variable}` is ignored: it must be a JSON object")]
    NotAnObject { variable: &'static str },
    #[error("field `{field}` of `{variable}` is ignored: it must be {expected}")]
    InvalidField { variable: &'static str, field: String, expected: &'static str },
}

const FIELD_CHARS: usize = 80;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot add the label `{label}` to `{WORKLOAD}`: it must be a JSON object whose field `labels` is an object")]
pub struct InvalidWorkload {
    label: String,
}

pub fn workload_with_label(workload: Option<&str>, label: &str, value: &str) -> Result<String, InvalidWorkload> {
    // Other fields and labels stay, also those that this version does not know.
    let labelled = || {
        let mut workload: Value = serde_json::from_str(workload.unwrap_or("{}")).ok()?;
        let labels = workload.as_object_mut()?.entry("labels").or_insert(Value::Null);
        if labels.is_null() {
            *labels = Value::Object(Map::new());
        }
        labels.as_object_mut()?.insert(label.to_owned(), Value::from(value));
        Some(workload.to_string())
    };
    labelled().ok_or_else(|| InvalidWorkload { label: label.to_owned() })
}

fn parse_workload(text: &str, warnings: &mut Vec<IdentityWarning>) -> Option<Workload> {
    // One wrong field does not discard the others, because policies select by them.
    let fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => {
            warnings.push(IdentityWarning::NotAnObject { variable: WORKLOAD });
            return None;
        }
        Err(error) => {
            warnings.push(IdentityWarning::InvalidJson { variable: WORKLOAD, column: error.column() });
            return None;
        }
    };
    let mut workload = Workload::default();
    for (name, value) in fields {
        let place = match name.as_str() {
            "user" => &mut workload.user,
            "repo_path" => &mut workload.repo_path,
            "ci_provider" => &mut workload.ci_provider,
            "job_id" => &mut workload.job_id,
            "repo" => &mut workload.repo,
            "branch" => &mut workload.branch,
            "namespace" => &mut workload.namespace,
            "service_account" => &mut workload.service_account,
            "pod" => &mut workload.pod,
            "labels" => {
                workload.labels = labels(value, warnings);
                continue;
            }
            // A newer program may set fields that this version does not know.
            _ => continue,
        };
        match scalar_text(value) {
            Ok(text) => *place = text,
            Err(expected) => warnings.push(invalid_field(&name, expected)),
        }
    }
    Some(workload)
}

fn labels(value: Value, warnings: &mut Vec<IdentityWarning>) -> BTreeMap<String, String> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return BTreeMap::new(),
        _ => {
            warnings.push(invalid_field("labels", "an object of texts"));
            return BTreeMap::new();
        }
    };
    let mut labels = BTreeMap::new();
    for (name, value) in fields {
        match scalar_text(value) {
            Ok(Some(text)) => drop(labels.insert(name, text)),
            Ok(None) => {}
            Err(expected) => warnings.push(invalid_field(&format!("labels.{name}"), expected)),
        }
    }
    labels
}

/// Returns the text of a scalar. Programs often write ids, such as those of jobs, as numbers.
fn scalar_text(value: Value) -> Result<Option<String>, &'static str> {
    match value {
        Value::String(text) => Ok(Some(text)),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Bool(value) => Ok(Some(value.to_string())),
        Value::Null => Ok(None),
        Value::Array(_) | Value::Object(_) => Err("a text"),
    }
}

fn invalid_field(field: &str, expected: &'static str) -> IdentityWarning {
    IdentityWarning::InvalidField { variable: WORKLOAD, field: one_line(field, FIELD_CHARS), expected }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

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

    #[test]
    fn two_sources_of_one_process_differ_in_their_shim_ids_only() {
        let (one, other) = (event_source(), event_source());
        assert_ne!(one.shim_id, other.shim_id);
        assert_eq!((&one.host_id, &one.proc_id), (&other.host_id, &other.proc_id));
        assert_eq!(one.proc_id, std::process::id().to_string());
        assert!(!one.host_id.is_empty());
    }

    #[test]
    fn a_label_is_added_to_a_workload_and_the_rest_stays() {
        let labelled = |workload: Option<&str>| {
            let text = workload_with_label(workload, "case_id", "refund").ok()?;
            Some(serde_json::from_str::<Value>(&text).unwrap())
        };
        assert_eq!(labelled(None), Some(json!({"labels": {"case_id": "refund"}})));
        let known = r#"{"repo": "shop", "future": [1], "labels": {"team": "a", "case_id": "old"}}"#;
        let expected = json!({"repo": "shop", "future": [1], "labels": {"team": "a", "case_id": "refund"}});
        assert_eq!(labelled(Some(known)), Some(expected));
        assert_eq!(labelled(Some(r#"{"labels": null}"#)), Some(json!({"labels": {"case_id": "refund"}})));
        for invalid in ["", "[]", "{", r#"{"labels": 7}"#] {
            assert_eq!(labelled(Some(invalid)), None, "{invalid}");
        }
    }
}
