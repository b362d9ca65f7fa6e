//! The text of a configuration file: where each value stands, and errors that point to it.

use std::io;
use std::ops::Range;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use counterproof_validation::{Position, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::command_error::CommandError;
use crate::document_errors::render_excerpt;

/// The configuration file that is read from the working folder by default.
const DEFAULT_PATH: &str = "counterproof.toml";

/// A configuration file with the positions of its values.
#[derive(Debug, Default)]
pub(crate) struct ConfigFile {
    /// The path as it was named; empty without a file.
    pub(crate) path: Utf8PathBuf,
    pub(crate) text: String,
    /// The values of all tables, in the order of the file.
    pub(crate) leaves: Vec<Leaf>,
}

/// One value of the file: a scalar, or a list of scalars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// The dotted key, such as `side.new.base_url`.
    pub(crate) key: String,
    /// The value as an option would have it; a list has several.
    pub(crate) values: Vec<String>,
    pub(crate) is_switch: bool,
    /// Whether all values are texts.
    pub(crate) is_text: bool,
    pub(crate) span: Range<usize>,
    pub(crate) line: usize,
}

impl ConfigFile {
    /// Reads the named file, or the default file if it exists.
    pub(crate) fn read(named: Option<&Utf8Path>) -> Result<Self, CommandError> {
        let path = named.map_or_else(|| Utf8PathBuf::from(DEFAULT_PATH), Utf8Path::to_owned);
        // Only a file that a person names may be a pipe.
        let read = if named.is_some() { read_file::read_text_argument } else { read_file::read_text };
        let text = match read(&path, read_file::MAX_SMALL_BYTES) {
            Ok(text) => text,
            // The default file is optional. A file that is named must exist.
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(CommandError::io(format!("failed to read `{path}`: {error}"))),
        };
        Self::parse(path.clone(), text.clone()).map_err(|error| error.into_command_error(&path, &text))
    }

    pub(crate) fn parse(path: Utf8PathBuf, text: String) -> Result<Self, InvalidConfig> {
        let mut leaves = Vec::new();
        {
            let table = DeTable::parse(&text)
                .map_err(|error| InvalidConfig { message: error.message().to_owned(), span: error.span() })?;
            collect(&text, table.get_ref(), "", &mut leaves);
        }
        leaves.sort_by_key(|leaf| leaf.span.start);
        Ok(Self { path, text, leaves })
    }

    /// Returns the leaf with this dotted key.
    pub(crate) fn leaf(&self, key: &str) -> Option<&Leaf> {
        self.leaves.iter().find(|leaf| leaf.key == key)
    }

    /// The folder of the file, to which its relative paths and commands refer.
    pub(crate) fn folder(&self) -> &Utf8Path {
        self.path.parent().filter(|folder| !folder.as_str().is_empty()).unwrap_or(Utf8Path::new("."))
    }
}

fn collect(text: &str, table: &DeTable<'_>, prefix: &str, leaves: &mut Vec<Leaf>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.get_ref().to_string() } else { format!("{prefix}.{}", name.get_ref()) };
        collect_value(text, value, key, leaves);
    }
}

fn collect_value(text: &str, value: &Spanned<DeValue<'_>>, key: String, leaves: &mut Vec<Leaf>) {
    let is_text = |value: &DeValue<'_>| matches!(value, DeValue::String(_));
    let (mut all_texts, is_switch) = (is_text(value.get_ref()), matches!(value.get_ref(), DeValue::Boolean(_)));
    let values = match value.get_ref() {
        DeValue::Table(table) => return collect(text, table, &key, leaves),
        DeValue::Array(items) if items.iter().any(|item| scalar(item.get_ref()).is_none()) => {
            for (index, item) in items.iter().enumerate() {
                collect_value(text, item, format!("{key}[{index}]"), leaves);
            }
            return;
        }
        DeValue::Array(items) => {
            all_texts = items.iter().all(|item| is_text(item.get_ref()));
            items.iter().filter_map(|item| scalar(item.get_ref())).collect()
        }
        other => scalar(other).into_iter().collect(),
    };
    let span = value.span();
    let line = position(text, span.start).line;
    leaves.push(Leaf { key, values, is_switch, is_text: all_texts, span, line });
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Datetime(time) => Some(time.to_string()),
        DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// Returns the position of a byte, with the column in characters, as editors count.
fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or_default();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Position { line: before.matches('\n').count() + 1, column }
}

/// A problem in a configuration file.
#[derive(Debug)]
pub(crate) struct InvalidConfig {
    pub(crate) message: String,
    /// The byte range of the error, if known.
    pub(crate) span: Option<Range<usize>>,
}

impl InvalidConfig {
    /// Creates an error of the TOML library, with the key that it is about and the nearest known one.
    pub(crate) fn from_toml(error: &toml::de::Error, file: &ConfigFile) -> Self {
        let mut message = in_words(error.message());
        if let Some(span) = error.span() {
            let written = file.text.get(span.clone()).unwrap_or_default();
            // The library lists the known keys in backticks, after the unknown one.
            let known: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
            if message.starts_with("unknown field")
                && let Some(near) = nearest(written, &known)
            {
                message = format!("unknown key `{written}`; did you mean `{near}`?");
            } else if let Some(leaf) = file.leaves.iter().find(|leaf| leaf.span.contains(&span.start)) {
                message = format!("`{}`: {message}", leaf.key);
            }
        }
        Self { message, span: error.span() }
    }

    /// Returns the position of the error, if known.
    pub(crate) fn position(&self, text: &str) -> Option<Position> {
        self.span.as_ref().map(|span| position(text, span.start))
    }

    /// Formats the error with file, line, column and a source excerpt.
    pub(crate) fn describe(self, path: &Utf8Path, text: &str) -> String {
        let Some(span) = self.span else { return format!("{path}: {}", self.message) };
        let at = position(text, span.start);
        let Position { line, column } = at;
        let excerpt = render_excerpt(text, span, at);
        format!("{path}:{line}:{column}: {}\n{excerpt}", self.message)
    }

    pub(crate) fn into_command_error(self, path: &Utf8Path, text: &str) -> CommandError {
        CommandError::usage(self.describe(path, text)).hint("see docs/configuration.md for all settings")
    }
}

/// Replaces the names that the TOML library has for types, and adds the remedy of a missing key.
fn in_words(message: &str) -> String {
    if let Some(key) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return format!("the key `{key}` is missing; expected a line `{key} = …`");
    }
    if message.ends_with("is not a share from 0 to 1") {
        return format!("{message}; expected one such as 0.02 or \"2 %\"");
    }
    let message = message.replace("wanted string or table", "expected a text");
    let Some((before, expected)) = message.split_once(", expected ") else { return message };
    let expected = match expected {
        "a sequence" => "a list, such as [\"a\", \"b\"]",
        "a map" => "a table",
        "a nonzero u32" => "a whole number of at least 1",
        "a UTF-8 path string" => "a path in quotes",
        "a boolean" => "`true` or `false`",
        name if name.starts_with("struct ") => "a table",
        other => other,
    };
    format!("{before}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_key_and_its_line() {
        let text = "[run]\ntimeout = \"5s\"\nstrict = true\n[side.new]\nheaders = { A = \"env:B\" }\n[[tools]]\nname = \"t\"\n";
        let file = ConfigFile::parse("c.toml".into(), text.to_owned()).unwrap();
        let found: Vec<_> = file.leaves.iter().map(|leaf| (leaf.key.as_str(), leaf.line)).collect();
        assert_eq!(found, [("run.timeout", 2), ("run.strict", 3), ("side.new.headers.A", 5), ("tools[0].name", 7)]);
    }
}
