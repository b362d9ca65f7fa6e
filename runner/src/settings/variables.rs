//! Environment variables that a configuration sets for the programs of an agent.

use std::collections::BTreeMap;
use std::env::VarError;
use std::ffi::OsString;

use super::known_secrets::MIN_IMPLIED_BYTES;
use crate::secret::Secret;

/// The placeholder of the port on which an agent listens.
pub(crate) const PORT: &str = "{port}";

/// Environment variables by name. `Debug` masks the values, and they are masked in everything that is saved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variables(BTreeMap<String, Secret>);

/// An invalid variable. The messages never contain the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// The name is empty, or has `=` or a NUL byte.
    #[error("invalid name of an environment variable: `{0}`")]
    Name(String),
    /// The value has a NUL byte.
    #[error("the value of the variable `{0}` contains a NUL byte")]
    Value(String),
    /// The environment variable that the value refers to is not set.
    #[error("`{name}` reads the environment variable `{variable}`, which is not set")]
    Unset {
        /// The configured variable.
        name: String,
        /// The variable that it reads.
        variable: String,
    },
    /// The environment variable that the value refers to is not text.
    #[error("`{name}` reads the environment variable `{variable}`, whose value is not valid UTF-8")]
    NotUtf8 {
        /// The configured variable.
        name: String,
        /// The variable that it reads.
        variable: String,
    },
}

impl Variables {
    /// Reads configured variables. A value `env:OTHER` is looked up with `environment`.
    pub fn resolve<'a>(
        entries: impl IntoIterator<Item = (&'a str, &'a str)>,
        environment: impl Fn(&str) -> Result<String, VarError>,
    ) -> Result<Self, VariableError> {
        let entries = entries.into_iter().map(|(name, value)| resolve(name, value, &environment));
        entries.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the values that no output may contain.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        // A value with the port is an address. Masking it would hide the most useful line of a server's output.
        let values = self.0.values().map(Secret::expose);
        values.filter(|value| value.len() >= MIN_IMPLIED_BYTES && !value.contains(PORT))
    }

    /// Replaces `{port}` in the values.
    pub(crate) fn at_port(&self, port: u16) -> Self {
        let replaced = |value: &Secret| Secret::from(at_port(value.expose(), port));
        Self(self.0.iter().map(|(name, value)| (name.clone(), replaced(value))).collect())
    }

    /// Adds the variable that makes Python print each line at once. Without it, a program that prints to a pipe keeps its lines
    /// in a buffer, and the runner would wait for them.
    #[must_use]
    pub(crate) fn unbuffered(mut self) -> Self {
        self.0.entry("PYTHONUNBUFFERED".to_owned()).or_insert_with(|| Secret::from("1".to_owned()));
        self
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.expose()))
    }

    /// Returns the variables as the options of a supervised command.
    pub(crate) fn to_options(&self) -> BTreeMap<OsString, Option<OsString>> {
        self.iter().map(|(name, value)| (name.into(), Some(value.into()))).collect()
    }
}

/// Replaces `{port}` in a text.
pub(crate) fn at_port(text: &str, port: u16) -> String {
    text.replace(PORT, &port.to_string())
}

fn resolve(
    name: &str,
    value: &str,
    environment: impl Fn(&str) -> Result<String, VarError>,
) -> Result<(String, Secret), VariableError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(VariableError::Name(name.to_owned()));
    }
    let name = name.to_owned();
    let value = match value.strip_prefix("env:") {
        None => value.to_owned(),
        Some(variable) => environment(variable).map_err(|error| {
            let (name, variable) = (name.clone(), variable.to_owned());
            match error {
                VarError::NotPresent => VariableError::Unset { name, variable },
                VarError::NotUnicode(_) => VariableError::NotUtf8 { name, variable },
            }
        })?,
    };
    if value.contains('\0') { Err(VariableError::Value(name)) } else { Ok((name, Secret::from(value))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(entries: &[(&str, &str)]) -> Result<Variables, VariableError> {
        Variables::resolve(entries.iter().copied(), |name| match name {
            "KEY" => Ok("s3cret-value".to_owned()),
            _ => Err(VarError::NotPresent),
        })
    }

    #[test]
    fn a_value_comes_from_the_configuration_or_from_the_environment() {
        let set = variables(&[("MODE", "fast"), ("TOKEN", "env:KEY"), ("URL", "http://h:{port}/x")]).unwrap();
        assert!(!format!("{set:?}").contains("s3cret"));
        assert_eq!(set.secrets().collect::<Vec<_>>(), ["s3cret-value"]);
        let at_port = set.at_port(81).unbuffered();
        let expected =
            [("MODE", "fast"), ("PYTHONUNBUFFERED", "1"), ("TOKEN", "s3cret-value"), ("URL", "http://h:81/x")];
        assert_eq!(at_port.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn invalid_variables_are_named_without_their_value() {
        for (name, value) in [("", "s3cret"), ("A=B", "s3cret"), ("A", "s3cret\0"), ("A", "env:MISSING")] {
            let error = variables(&[(name, value)]).unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
