//! The resources of a contract, read from their `spec`.

use std::collections::BTreeMap;

use counterproof_artifact::pointer::child;
use counterproof_validation::nearest;
use serde_json::{Map, Value};

use super::path_pattern::{PathPattern, escape, literal_start};
use crate::contract::{Resource, ResourceType};

pub const DEFAULT_PORT_VARIABLE: &str = "PORT";

/// Longest name or value, in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// Longest pattern of a file lock, in bytes.
const MAX_PATTERN_BYTES: usize = 512;

const MAX_PATTERNS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceRequest {
    /// A free TCP port of a range.
    Port { first: u16, last: u16, variable: String },
    /// Files that no one else may change.
    FileLock {
        /// Patterns relative to the working directory.
        patterns: Vec<String>,
    },
    /// A name that one execution at a time may hold.
    Session { name: String, variable: Option<String> },
    Variable {
        name: String,
        /// The value to set. `None` if it must be set already.
        value: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    /// A JSON Pointer into the list of resources.
    pub pointer: String,
    pub message: String,
    pub remedy: String,
}

impl ResourceRequest {
    /// Reads the resources of a contract. Returns all errors.
    pub fn parse_all(resources: &[Resource]) -> Result<Vec<Self>, Vec<SpecError>> {
        let (mut requests, mut errors) = (Vec::new(), Vec::new());
        let mut exported = BTreeMap::new();
        for (index, resource) in resources.iter().enumerate() {
            let mut spec = Spec::new(&resource.spec, format!("/{index}/spec"));
            let request = spec.request(resource.resource_type);
            // Two resources with one variable: the second would hide the first from the command.
            if let Some((variable, first)) = request
                .as_ref()
                .and_then(Self::exported)
                .and_then(|name| Some((name, exported.insert(name.to_owned(), index)?)))
            {
                let message = format!("the variable `{variable}` is exported by resource {} too", first + 1);
                spec.error("", message, "give one of them another name with `env`");
            }
            errors.extend(spec.errors);
            requests.extend(request);
        }
        if errors.is_empty() { Ok(requests) } else { Err(errors) }
    }

    pub(crate) fn locked_paths(&self) -> Vec<String> {
        match self {
            ResourceRequest::FileLock { patterns } => patterns.iter().map(|text| literal_start(text)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the lock of these files and folders, with everything below them.
    pub fn lock_of(paths: &[String]) -> Self {
        let patterns = paths.iter().map(|path| escape(path.trim_end_matches('/')));
        ResourceRequest::FileLock { patterns: patterns.flat_map(|path| [format!("{path}/**"), path]).collect() }
    }

    fn exported(&self) -> Option<&str> {
        match self {
            ResourceRequest::Port { variable, .. } => Some(variable),
            ResourceRequest::Session { variable, .. } => variable.as_deref(),
            ResourceRequest::Variable { name, value } => value.as_ref().map(|_| name.as_str()),
            ResourceRequest::FileLock { .. } => None,
        }
    }
}

struct Spec<'s> {
    fields: Option<&'s Map<String, Value>>,
    pointer: String,
    errors: Vec<SpecError>,
}

impl<'s> Spec<'s> {
    fn new(spec: &'s Value, pointer: String) -> Self {
        let mut spec = Self { fields: spec.as_object(), pointer, errors: Vec::new() };
        if spec.fields.is_none() {
            spec.error("", "expected an object", "write an object");
        }
        spec
    }

    fn request(&mut self, kind: ResourceType) -> Option<ResourceRequest> {
        self.fields?;
        match kind {
            ResourceType::Port => {
                self.known(&["range", "env"]);
                let range = self.range();
                let variable = self.variable("env").unwrap_or_else(|| DEFAULT_PORT_VARIABLE.to_owned());
                let (first, last) = range?;
                Some(ResourceRequest::Port { first, last, variable })
            }
            ResourceType::FileLock => {
                self.known(&["paths"]);
                Some(ResourceRequest::FileLock { patterns: self.patterns()? })
            }
            ResourceType::Session => {
                self.known(&["name", "env"]);
                let variable = self.variable("env");
                Some(ResourceRequest::Session { name: self.required_text("name")?, variable })
            }
            ResourceType::Env => {
                self.known(&["name", "value"]);
                let value = self.text("value");
                // Checked before the form of the name, so that a missing name gives one error.
                self.required_text("name")?;
                Some(ResourceRequest::Variable { name: self.variable("name")?, value })
            }
        }
    }

    fn error(&mut self, field: &str, message: impl Into<String>, remedy: impl Into<String>) {
        let pointer = if field.is_empty() { self.pointer.clone() } else { child(&self.pointer, field) };
        self.errors.push(SpecError { pointer, message: message.into(), remedy: remedy.into() });
    }

    fn field(&self, name: &str) -> Option<&'s Value> {
        self.fields?.get(name)
    }

    fn known(&mut self, known: &[&str]) {
        // A misspelt field would drop what it asks for.
        for name in self.fields.into_iter().flat_map(Map::keys).filter(|name| !known.contains(&name.as_str())) {
            let near = nearest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            // The name is text of others and can have any length.
            let shown: String = name.chars().take(80).collect();
            let message = format!("the field `{}` is unknown{near}", shown.escape_debug());
            self.error(name, message, format!("write {} only", known.join(" and ")));
        }
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let value = self.field(name)?;
        match value.as_str() {
            Some(text) if text.len() <= MAX_TEXT_BYTES && !text.contains('\0') => return Some(text.to_owned()),
            Some(_) => self.error(name, "the text is too long or contains NUL", "shorten it"),
            None => self.error(name, "expected a string", "put the value in quotes"),
        }
        None
    }

    fn required_text(&mut self, name: &str) -> Option<String> {
        if self.field(name).is_none() {
            self.error("", format!("the field `{name}` is missing"), format!("add `{name}`"));
            return None;
        }
        let text = self.text(name)?;
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            self.error(name, "the name is empty or contains control characters", "write a name");
            return None;
        }
        Some(text)
    }

    fn variable(&mut self, field: &str) -> Option<String> {
        let name = self.text(field)?;
        let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
        if !name.starts_with(is_start) || !name.chars().all(|c| is_start(c) || c.is_ascii_digit()) {
            let message = format!("invalid variable name `{}`", name.escape_debug());
            self.error(field, message, "write ASCII letters, digits and `_`, and no digit at the start");
            return None;
        }
        Some(name)
    }

    fn range(&mut self) -> Option<(u16, u16)> {
        let Some(range) = self.field("range") else {
            self.error("", "the field `range` is missing", "add `range`, such as [3200, 3299]");
            return None;
        };
        let port = |value: &Value| value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        match range.as_array().map(|ports| ports.iter().map(port).collect::<Vec<_>>()).as_deref() {
            Some(&[Some(first), Some(last)]) if first <= last => Some((first, last)),
            _ => {
                let remedy = "write the first and the last port, such as [3200, 3299]";
                self.error("range", "the range is not two ports from 1 to 65535 in ascending order", remedy);
                None
            }
        }
    }

    fn patterns(&mut self) -> Option<Vec<String>> {
        let listed = self.field("paths").and_then(Value::as_array).filter(|paths| !paths.is_empty());
        let Some(listed) = listed else {
            self.error("", "`paths` is missing, empty or not a list", "add `paths`, such as [\"src/memory/*\"]");
            return None;
        };
        // Errors of other fields do not make these patterns invalid.
        let errors = self.errors.len();
        for (index, path) in listed.iter().enumerate() {
            if let Err(message) = path.as_str().map_or_else(|| Err("expected a string".to_owned()), check_pattern) {
                let remedy = "write a pattern relative to the working directory, such as src/**/*.rs";
                let pointer = child(&child(&self.pointer, "paths"), &index.to_string());
                self.errors.push(SpecError { pointer, message, remedy: remedy.to_owned() });
            }
        }
        if listed.len() > MAX_PATTERNS {
            self.error(
                "paths",
                format!("these are {} patterns; at most {MAX_PATTERNS} are allowed", listed.len()),
                "use `*` or `**`",
            );
        }
        let is_valid = self.errors.len() == errors;
        is_valid.then(|| listed.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

fn check_pattern(pattern: &str) -> Result<(), String> {
    if pattern.starts_with('/') {
        return Err("the pattern is absolute".to_owned());
    }
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!("the pattern has {} bytes; at most {MAX_PATTERN_BYTES} are allowed", pattern.len()));
    }
    PathPattern::parse(pattern).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(resources: Value) -> Result<Vec<ResourceRequest>, Vec<String>> {
        let resources: Vec<Resource> = serde_json::from_value(resources).unwrap();
        ResourceRequest::parse_all(&resources)
            .map_err(|errors| errors.into_iter().map(|error| format!("{}: {}", error.pointer, error.message)).collect())
    }

    #[test]
    fn every_form_is_read() {
        let requests = parse(json!([
            {"type": "port", "spec": {"range": [3200, 3299]}},
            {"type": "port", "spec": {"range": [80, 80], "env": "ADMIN_PORT"}},
            {"type": "file_lock", "spec": {"paths": ["src/memory/*", "{a,b}.rs"]}},
            {"type": "session", "spec": {"name": "browser 1", "env": "SESSION"}},
            {"type": "session", "spec": {"name": "db"}},
            {"type": "env", "spec": {"name": "API_KEY"}},
            {"type": "env", "spec": {"name": "MODE", "value": ""}}
        ]));
        let port = |first, last, name: &str| ResourceRequest::Port { first, last, variable: name.to_owned() };
        assert_eq!(
            requests.unwrap(),
            [
                port(3200, 3299, "PORT"),
                port(80, 80, "ADMIN_PORT"),
                ResourceRequest::FileLock { patterns: vec!["src/memory/*".to_owned(), "{a,b}.rs".to_owned()] },
                ResourceRequest::Session { name: "browser 1".to_owned(), variable: Some("SESSION".to_owned()) },
                ResourceRequest::Session { name: "db".to_owned(), variable: None },
                ResourceRequest::Variable { name: "API_KEY".to_owned(), value: None },
                ResourceRequest::Variable { name: "MODE".to_owned(), value: Some(String::new()) },
            ]
        );
    }

    #[test]
    fn each_error_names_its_place() {
        for (kind, spec, expected) in [
            ("port", json!({}), "/0/spec: the field `range` is missing"),
            (
                "port",
                json!({"range": [2, 1]}),
                "/0/spec/range: the range is not two ports from 1 to 65535 in ascending order",
            ),
            (
                "port",
                json!({"range": [0, 1]}),
                "/0/spec/range: the range is not two ports from 1 to 65535 in ascending order",
            ),
            ("port", json!({"range": [1, 2], "env": "A-B"}), "/0/spec/env: invalid variable name `A-B`"),
            (
                "port",
                json!({"range": [1, 2], "evn": "A"}),
                "/0/spec/evn: the field `evn` is unknown; did you mean `env`?",
            ),
            ("port", json!([]), "/0/spec: expected an object"),
            ("file_lock", json!({"paths": []}), "/0/spec: `paths` is missing, empty or not a list"),
            (
                "file_lock",
                json!({"paths": ["a", "../b"]}),
                "/0/spec/paths/1: the pattern has the name `..`; write the path without it",
            ),
            ("file_lock", json!({"paths": ["/a"]}), "/0/spec/paths/0: the pattern is absolute"),
            ("file_lock", json!({"paths": [1]}), "/0/spec/paths/0: expected a string"),
            ("session", json!({"name": " "}), "/0/spec/name: the name is empty or contains control characters"),
            ("env", json!({"value": "x"}), "/0/spec: the field `name` is missing"),
            ("env", json!({"name": "1A"}), "/0/spec/name: invalid variable name `1A`"),
            ("env", json!({"name": "A", "value": 1}), "/0/spec/value: expected a string"),
        ] {
            assert_eq!(parse(json!([{"type": kind, "spec": spec}])), Err(vec![expected.to_owned()]));
        }
        let twice =
            parse(json!([{"type": "port", "spec": {"range": [1, 2]}}, {"type": "port", "spec": {"range": [1, 2]}}]));
        assert_eq!(twice, Err(vec!["/1/spec: the variable `PORT` is exported by resource 1 too".to_owned()]));
        let many: Vec<_> = (0..65).map(|index| format!("f{index}")).collect();
        let many = parse(json!([{"type": "file_lock", "spec": {"paths": many}}]));
        assert_eq!(many, Err(vec!["/0/spec/paths: these are 65 patterns; at most 64 are allowed".to_owned()]));
    }
}
