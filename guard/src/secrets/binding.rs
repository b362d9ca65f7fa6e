//! Bindings: which server receives which secret in which environment variable.

use std::collections::BTreeMap;

use camino::Utf8Path;
use counterproof_ledger::event::SecretSource;
use counterproof_validation::{DocumentText, Finding};

use super::binding_rules::read_bindings;
use super::{SecretRef, VariableName};

/// One secret of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The environment variable of the server.
    pub inject_as: VariableName,
    /// The name of the secret.
    pub secret_ref: SecretRef,
    /// Where the secret is looked up.
    pub source: SecretSource,
    /// Whether the value is masked in the output of the guard.
    pub redact: bool,
    /// Whether the server is started without the secret.
    pub optional: bool,
}

/// The bindings of all servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bindings {
    /// The bindings of single servers, by the name of the server.
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
        checked.findings.iter_mut().for_each(|finding| finding.excerpt = None);
        if checked.findings.is_empty() { Ok(bindings) } else { Err(checked.findings) }
    }

    /// The bindings of one server, in the order of the text.
    pub fn of_server<'a>(&'a self, server: &str) -> impl Iterator<Item = &'a Binding> {
        let own = self.servers.get(server).map_or(&[][..], Vec::as_slice);
        let is_replaced = |binding: &&Binding| own.iter().any(|own| own.inject_as == binding.inject_as);
        own.iter().chain(self.every_server.iter().filter(move |binding| !is_replaced(binding)))
    }

    /// All bindings of all servers.
    pub(super) fn all(&self) -> impl Iterator<Item = &Binding> {
        self.servers.values().flatten().chain(&self.every_server)
    }
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
