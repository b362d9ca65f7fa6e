//! The shapes of bindings: one server, a list of servers, a map of servers, and a list of bindings.

use counterproof_artifact::pointer::child;
use counterproof_ledger::event::SecretSource;
use counterproof_validation::{Code, RuleFinding};
use serde_json::{Map, Value};

use super::{Binding, Bindings};

/// The fields of a binding.
const FIELDS: [&str; 5] = ["inject_as", "secret_ref", "source", "redact", "optional"];

/// Reads bindings of any shape. Returns what is wrong with them.
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

    /// Adds a binding of a server, or of every server.
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
