//! Bindings: which server receives which secret in which environment variable, and where they are stated.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::pointer::child;
use counterproof_ledger::event::SecretSource;
use counterproof_store::read_file;
use counterproof_validation::{Code, DocumentText, Finding, RuleFinding};
use serde_json::{Map, Value};

use super::{SecretRef, VariableName};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    pub inject_as: VariableName,
    pub secret_ref: SecretRef,
    pub source: SecretSource,
    /// Whether the value is masked in the output of the guard.
    pub redact: bool,
    /// Whether the server is started without the secret.
    pub optional: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bindings {
    pub servers: BTreeMap<String, Vec<Binding>>,
    /// The bindings of every server. A binding of the server itself for the same variable has precedence.
    pub every_server: Vec<Binding>,
}

impl Bindings {
    /// Parses bindings. `origin` names the text in findings, which never quote a part of it: it may contain a value by mistake.
    pub fn parse(origin: &Utf8Path, bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        let mut bindings = Self::default();
        let text = DocumentText { file: origin, bytes, first_line: 1 };
        let mut checked = text.check(|value| read_bindings(value, &mut bindings));
        // A person may have put the value in place of its name.
        checked.findings.iter_mut().for_each(|finding| finding.excerpt = None);
        if checked.findings.is_empty() { Ok(bindings) } else { Err(checked.findings) }
    }

    pub fn of_server<'a>(&'a self, server: &str) -> impl Iterator<Item = &'a Binding> {
        let own = self.servers.get(server).map_or(&[][..], Vec::as_slice);
        let is_replaced = |binding: &&Binding| own.iter().any(|own| own.inject_as == binding.inject_as);
        own.iter().chain(self.every_server.iter().filter(move |binding| !is_replaced(binding)))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Binding> {
        self.servers.values().flatten().chain(&self.every_server)
    }
}

const FIELDS: [&str; 5] = ["inject_as", "secret_ref", "source", "redact", "optional"];

pub(super) fn read_bindings(document: &Value, bindings: &mut Bindings) -> Vec<RuleFinding> {
    let mut reader = Reader { bindings, findings: Vec::new() };
    match document {
        Value::Object(fields) if is_server(fields) => reader.server(fields, ""),
        Value::Object(servers) => {
            for (name, list) in servers {
                reader.list(name, list, &child("", name));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let pointer = format!("/{index}");
                match item {
                    Value::Object(fields) if is_server(fields) => reader.server(fields, &pointer),
                    binding => reader.binding(None, binding, &pointer),
                }
            }
        }
        _ => reader.wrong_type("", "bindings are an object or a list", "an object or a list of bindings"),
    }
    reader.findings
}

/// True for `{"server_name": …, "secret_bindings": […]}`. In a map of servers, the values are lists.
fn is_server(fields: &Map<String, Value>) -> bool {
    fields.contains_key("secret_bindings") || fields.get("server_name").is_some_and(|name| !name.is_array())
}

struct Reader<'a> {
    bindings: &'a mut Bindings,
    findings: Vec<RuleFinding>,
}

impl Reader<'_> {
    fn server(&mut self, fields: &Map<String, Value>, pointer: &str) {
        for name in fields.keys().filter(|name| !["server_name", "secret_bindings"].contains(&name.as_str())) {
            self.unknown(name, pointer, "`server_name` and `secret_bindings`");
        }
        let name = match fields.get("server_name") {
            Some(Value::String(name)) => Some(name),
            Some(_) => {
                self.wrong_type(child(pointer, "server_name"), "`server_name` is not a text", "the name of a server");
                None
            }
            None => {
                self.missing("server_name", pointer);
                None
            }
        };
        match (name, fields.get("secret_bindings")) {
            (Some(name), Some(list)) => self.list(name, list, &child(pointer, "secret_bindings")),
            (_, None) => self.missing("secret_bindings", pointer),
            (None, _) => {}
        }
    }

    fn list(&mut self, server: &str, list: &Value, pointer: &str) {
        let Value::Array(items) = list else {
            return self.wrong_type(pointer, "the bindings of a server are a list", "a list of bindings");
        };
        for (index, item) in items.iter().enumerate() {
            self.binding(Some(server), item, &format!("{pointer}/{index}"));
        }
    }

    fn binding(&mut self, server: Option<&str>, value: &Value, pointer: &str) {
        let Value::Object(fields) = value else {
            return self.wrong_type(pointer, "a binding is an object", "an object with `inject_as` and `secret_ref`");
        };
        for name in fields.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
            self.unknown(name, pointer, "`inject_as`, `secret_ref`, `source`, `redact` and `optional`");
        }
        let inject_as = self.name(fields, "inject_as", pointer);
        let secret_ref = self.name(fields, "secret_ref", pointer);
        let source = self.source(fields, pointer);
        let redact = self.flag(fields, "redact", true, pointer);
        let optional = self.flag(fields, "optional", false, pointer);
        // All findings of a binding first, so that one run reports them all.
        let (Some(inject_as), Some(secret_ref)) = (inject_as, secret_ref) else { return };
        let binding = Binding { inject_as, secret_ref, source, redact, optional };
        let list = match server {
            Some(server) => self.bindings.servers.entry(server.to_owned()).or_default(),
            None => &mut self.bindings.every_server,
        };
        if list.iter().any(|other| other.inject_as == binding.inject_as) {
            let message = format!("two bindings of one server set the variable `{}`", binding.inject_as);
            let expected = "one binding for each variable of a server";
            self.findings.push(RuleFinding::new(Code::WrongValue, child(pointer, "inject_as"), message, expected));
        } else {
            list.push(binding);
        }
    }

    fn name<T>(&mut self, fields: &Map<String, Value>, name: &str, pointer: &str) -> Option<T>
    where
        T: std::str::FromStr<Err: std::fmt::Display>,
    {
        let Some(value) = fields.get(name) else {
            self.missing(name, pointer);
            return None;
        };
        let pointer = child(pointer, name);
        let Value::String(text) = value else {
            self.wrong_type(pointer, &format!("`{name}` is not a text"), "a name");
            return None;
        };
        let parsed = text.parse::<T>();
        if let Err(error) = &parsed {
            self.findings.push(RuleFinding::new(Code::WrongValue, pointer, error.to_string(), "a name"));
        }
        parsed.ok()
    }

    fn source(&mut self, fields: &Map<String, Value>, pointer: &str) -> SecretSource {
        match fields.get("source").map(Value::as_str) {
            None | Some(Some("env")) => SecretSource::Env,
            Some(Some("keychain")) => SecretSource::Keychain,
            Some(Some("file")) => SecretSource::File,
            Some(_) => {
                let expected = "`env`, `keychain` or `file`";
                let (code, pointer) = (Code::WrongValue, child(pointer, "source"));
                self.findings.push(RuleFinding::new(code, pointer, "the source is unknown", expected));
                SecretSource::Env
            }
        }
    }

    fn flag(&mut self, fields: &Map<String, Value>, name: &str, default: bool, pointer: &str) -> bool {
        match fields.get(name) {
            None => default,
            Some(Value::Bool(value)) => *value,
            Some(_) => {
                let message = format!("`{name}` is neither true nor false");
                self.wrong_type(child(pointer, name), &message, "true or false");
                default
            }
        }
    }

    fn missing(&mut self, name: &str, pointer: &str) {
        let message = format!("the field `{name}` is missing");
        self.findings.push(RuleFinding::new(Code::MissingField, pointer, message, format!("the field `{name}`")));
    }

    fn unknown(&mut self, name: &str, pointer: &str, known: &str) {
        let message = format!("the field `{}` is unknown", counterproof_artifact::one_line(name, 40));
        let pointer = child(pointer, name);
        self.findings.push(RuleFinding::new(Code::UnexpectedField, pointer, message, format!("only {known}")));
    }

    fn wrong_type(&mut self, pointer: impl Into<String>, message: &str, expected: &str) {
        self.findings.push(RuleFinding::new(Code::WrongType, pointer, message, expected));
    }
}

pub(super) const BINDINGS: &str = "SUB_SECRET_BINDINGS";
pub(super) const BINDINGS_FILE: &str = "SUB_SECRET_BINDINGS_FILE";

#[derive(Debug, thiserror::Error)]
pub enum BindingsError {
    #[error("cannot read the secret bindings `{path}`")]
    Read { path: Utf8PathBuf, source: io::Error },
    #[error("invalid secret bindings in `{origin}`: {}", first(.findings))]
    Invalid { origin: Utf8PathBuf, findings: Vec<Finding> },
}

fn first(findings: &[Finding]) -> String {
    let Some(finding) = findings.first() else { return String::new() };
    let place = finding.position.map(|at| format!("line {}, column {}: ", at.line, at.column)).unwrap_or_default();
    let more = match findings.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    format!("{place}{}{more}", finding.message)
}

/// Loads bindings from `file`, or from `SUB_SECRET_BINDINGS`, or from the file that `SUB_SECRET_BINDINGS_FILE` names: the first that
/// is set. Without any there are no bindings.
pub fn load_bindings(
    file: Option<&Utf8Path>,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Bindings, BindingsError> {
    let set = |name| lookup(name).filter(|value: &String| !value.trim().is_empty());
    if file.is_none()
        && let Some(text) = set(BINDINGS)
    {
        return parse(Utf8Path::new(BINDINGS), text.as_bytes());
    }
    let Some(path) = file.map(Utf8Path::to_owned).or_else(|| set(BINDINGS_FILE).map(Utf8PathBuf::from)) else {
        return Ok(Bindings::default());
    };
    let bytes = read_file::read_argument(&path, read_file::MAX_SMALL_BYTES);
    let bytes = bytes.map_err(|source| BindingsError::Read { path: path.clone(), source })?;
    parse(&path, &bytes)
}

fn parse(origin: &Utf8Path, bytes: &[u8]) -> Result<Bindings, BindingsError> {
    Bindings::parse(origin, bytes).map_err(|findings| BindingsError::Invalid { origin: origin.to_owned(), findings })
}

#[cfg(test)]
mod tests {
    use counterproof_validation::Position;

    use super::*;

    fn parse(text: &str) -> Result<Bindings, Vec<String>> {
        let described = |finding: &Finding| {
            let position = finding.position.unwrap_or(Position { line: 0, column: 0 });
            assert_eq!(finding.excerpt, None);
            format!("{}:{} {}", position.line, position.column, finding.message)
        };
        Bindings::parse(Utf8Path::new("secrets.json"), text.as_bytes())
            .map_err(|findings| findings.iter().map(described).collect())
    }

    fn names(bindings: &Bindings, server: &str) -> Vec<String> {
        bindings.of_server(server).map(|it| format!("{}={}", it.inject_as, it.secret_ref)).collect()
    }

    #[test]
    fn all_four_shapes_are_read() {
        let binding = r#"{"inject_as": "TOKEN", "secret_ref": "github"}"#;
        for (text, others) in [
            (format!(r#"{{"server_name": "git", "secret_bindings": [{binding}]}}"#), 0),
            (format!(r#"[{{"server_name": "git", "secret_bindings": [{binding}]}}]"#), 0),
            (format!(r#"{{"git": [{binding}]}}"#), 0),
            (format!("[{binding}]"), 1),
        ] {
            let bindings = parse(&text).unwrap();
            assert_eq!(names(&bindings, "git"), ["TOKEN=github"], "{text}");
            assert_eq!(names(&bindings, "other").len(), others, "{text}");
            let read = bindings.of_server("git").next().unwrap();
            assert_eq!((read.source, read.redact, read.optional), (SecretSource::Env, true, false));
        }
        assert_eq!(parse("[]").unwrap(), Bindings::default());
        assert_eq!(parse("{}").unwrap(), Bindings::default());
    }

    #[test]
    fn a_binding_of_the_server_replaces_one_of_every_server() {
        let text = r#"[{"inject_as": "A", "secret_ref": "all"}, {"inject_as": "B", "secret_ref": "all"},
            {"server_name": "git", "secret_bindings": [{"inject_as": "A", "secret_ref": "own"}]}]"#;
        let bindings = parse(text).unwrap();
        assert_eq!(names(&bindings, "git"), ["A=own", "B=all"]);
        assert_eq!(names(&bindings, "web"), ["A=all", "B=all"]);
    }

    #[test]
    fn errors_point_into_the_text_and_never_quote_a_value() {
        for (text, expected) in [
            ("7", "1:1 bindings are an object or a list"),
            (r#"{"git": {"TOKEN": "hunter2"}}"#, "1:9 the bindings of a server are a list"),
            (r#"{"server_name": 7, "secret_bindings": []}"#, "1:17 `server_name` is not a text"),
            (r#"{"secret_bindings": []}"#, "1:1 the field `server_name` is missing"),
            (r#"["hunter2"]"#, "1:2 a binding is an object"),
            (r#"[{"inject_as": "A"}]"#, "1:2 the field `secret_ref` is missing"),
            (
                r#"[{"inject_as": "A B", "secret_ref": "a"}]"#,
                "1:16 the name of a variable has ASCII letters, digits and `_`, and does not start with a digit",
            ),
            (r#"[{"inject_as": "A", "secret_ref": "a", "source": "vault"}]"#, "1:50 the source is unknown"),
            (r#"[{"inject_as": "A", "secret_ref": "a", "redact": "no"}]"#, "1:50 `redact` is neither true nor false"),
            (r#"[{"inject_as": "A", "secret_ref": "a", "value": "hunter2"}]"#, "1:49 the field `value` is unknown"),
            (
                "[{\"inject_as\": \"A\", \"secret_ref\": \"a\"},\n {\"inject_as\": \"A\", \"secret_ref\": \"b\"}]",
                "2:16 two bindings of one server set the variable `A`",
            ),
            (r#"{"a": [], "a": []}"#, "1:11 the key `a` appears twice in its object"),
        ] {
            let found = parse(text).unwrap_err();
            assert_eq!(found, [expected], "{text}");
        }
    }
}

#[cfg(test)]
mod load_bindings_tests {
    use counterproof_store::write::{Durability, write};

    use super::*;

    fn one(name: &str) -> String {
        format!(r#"[{{"inject_as": "{name}", "secret_ref": "r"}}]"#)
    }

    fn names(bindings: &Bindings) -> Vec<&str> {
        bindings.all().map(|binding| binding.inject_as.as_str()).collect()
    }

    #[test]
    fn the_option_precedes_the_variable_with_json_and_that_precedes_the_variable_with_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let (option, variable) = (folder.join("option.json"), folder.join("variable.json"));
        write(&option, one("FROM_OPTION").as_bytes(), Durability::Cached).unwrap();
        write(&variable, one("FROM_FILE").as_bytes(), Durability::Cached).unwrap();
        let both = |name: &str| match name {
            "SUB_SECRET_BINDINGS" => Some(one("FROM_JSON")),
            "SUB_SECRET_BINDINGS_FILE" => Some(variable.to_string()),
            _ => None,
        };
        assert_eq!(names(&load_bindings(Some(&option), both).unwrap()), ["FROM_OPTION"]);
        assert_eq!(names(&load_bindings(None, both).unwrap()), ["FROM_JSON"]);
        let path = |name: &str| both(name).filter(|_| name != "SUB_SECRET_BINDINGS");
        assert_eq!(names(&load_bindings(None, path).unwrap()), ["FROM_FILE"]);
        assert!(names(&load_bindings(None, |_| None).unwrap()).is_empty());
    }

    #[test]
    fn errors_name_the_file_or_the_variable() {
        let error = load_bindings(Some(Utf8Path::new("/missing/file")), |_| None).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the secret bindings `/missing/file`");
        let error = load_bindings(None, |_| Some("[1,\n 2]".to_owned())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid secret bindings in `SUB_SECRET_BINDINGS`: line 1, column 2: a binding is an object (and 1 more)"
        );
    }
}
