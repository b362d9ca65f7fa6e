//! Where bindings come from: a file that an option names, or two variables.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use counterproof_validation::Finding;

use super::Bindings;

/// The variable with bindings as JSON.
pub(super) const BINDINGS: &str = "SUB_SECRET_BINDINGS";

/// The variable with the path of a file of bindings.
pub(super) const BINDINGS_FILE: &str = "SUB_SECRET_BINDINGS_FILE";

/// Bindings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BindingsError {
    /// The file cannot be read.
    #[error("cannot read the secret bindings `{path}`")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    #[error("invalid secret bindings in `{origin}`: {}", first(.findings))]
    Invalid {
        /// The file, or the variable.
        origin: Utf8PathBuf,
        /// All findings, without excerpts.
        findings: Vec<Finding>,
    },
}

/// Describes the first finding, with its position.
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
