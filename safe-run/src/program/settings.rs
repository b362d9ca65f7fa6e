//! What the environment says.

use std::ffi::OsString;

use counterproof_redaction::{RedactError, Redactor, SHORTEST};

use crate::View;

/// Where records go if nothing is said.
const LOG_FOLDER: &str = ".agent/FAIL-LOGS";

/// How a record is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameStyle {
    /// `safe-run-YYYYMMDD-HHMMSS-<random>.log`
    Contract,
    /// `YYYYMMDDTHHMMSSZ-pid<PID>-FAIL.log`, and `-ABORTED.log` after a signal.
    M0,
}

/// Words of `SAFE_REDACT` that are no names: keys of known shapes alone.
const SHAPES_ALONE: [&str; 5] = ["", "1", "true", "yes", "on"];

/// Secrets that cannot be masked. Their values are in no message.
#[derive(Debug, thiserror::Error)]
pub(super) enum MaskError {
    /// Nothing but text is looked for.
    #[error("the value of `{0}`, which SAFE_REDACT names, is no UTF-8 text and cannot be masked")]
    NotText(String),
    /// What is so short stands in every text.
    #[error("the value of `{0}`, which SAFE_REDACT names, has fewer than {least} bytes and cannot be masked", least = SHORTEST)]
    Short(String),
    /// All of them together are too much.
    #[error(transparent)]
    Redactor(#[from] RedactError),
}

/// What masks secrets.
#[derive(Debug)]
pub(super) struct Masks {
    pub(super) redactor: Redactor,
    /// The variables that are named and have no value.
    pub(super) unset: Vec<String>,
}

/// What the environment says.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) log_folder: OsString,
    pub(super) view: View,
    pub(super) snippet_lines: usize,
    pub(super) name_style: NameStyle,
    /// The words of `SAFE_REDACT`; empty where nothing is to be masked.
    redact: Vec<String>,
}

impl Settings {
    /// Reads the variables with `environment`. Values that are none count as not set: a wrong setting is no reason to lose
    /// a command's record.
    pub(super) fn read(environment: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name| environment(name).and_then(|value| value.into_string().ok());
        // A name that is no text is the name of nothing, which is told, and no reason to mask nothing at all.
        let redact = environment("SAFE_REDACT").map(|value| value.to_string_lossy().into_owned());
        let redact = redact.filter(|value| !["", "0", "false", "no", "off"].contains(&&**value));
        Self {
            log_folder: environment("SAFE_LOG_DIR").filter(|folder| !folder.is_empty()).unwrap_or(LOG_FOLDER.into()),
            view: if text("SAFE_RUN_VIEW").as_deref() == Some("merged") { View::Merged } else { View::Ledger },
            snippet_lines: text("SAFE_SNIPPET_LINES").and_then(|lines| lines.trim().parse().ok()).unwrap_or(0),
            name_style: match text("SAFE_LOG_STYLE").as_deref() {
                Some("m0") => NameStyle::M0,
                _ => NameStyle::Contract,
            },
            redact: redact.iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect(),
        }
    }

    /// What masks secrets, where they are to be masked.
    pub(super) fn masks(&self, environment: impl Fn(&str) -> Option<OsString>) -> Option<Result<Masks, MaskError>> {
        (!self.redact.is_empty()).then(|| self.masks_of(environment))
    }

    fn masks_of(&self, environment: impl Fn(&str) -> Option<OsString>) -> Result<Masks, MaskError> {
        let (mut values, mut unset) = (Vec::new(), Vec::new());
        for name in &self.redact {
            match environment(name).filter(|value| !value.is_empty()).map(OsString::into_string) {
                None if SHAPES_ALONE.contains(&&**name) => {}
                None => unset.push(name.clone()),
                Some(Err(_)) => return Err(MaskError::NotText(name.clone())),
                Some(Ok(value)) if value.len() < SHORTEST => return Err(MaskError::Short(name.clone())),
                Some(Ok(value)) => values.push(value),
            }
        }
        Ok(Masks { redactor: Redactor::new(values.iter().map(String::as_str))?, unset })
    }
}

#[cfg(test)]
mod tests {
    use counterproof_redaction::Applied;

    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        Settings::read(lookup(variables))
    }

    fn lookup(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        move |wanted| variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.into())
    }

    #[test]
    fn what_is_not_set_or_means_nothing_is_the_default() {
        for variables in [
            vec![],
            vec![("SAFE_LOG_DIR", ""), ("SAFE_RUN_VIEW", "x"), ("SAFE_SNIPPET_LINES", "-1"), ("SAFE_REDACT", "0")],
        ] {
            let settings = settings(&variables);
            assert_eq!(settings.log_folder, LOG_FOLDER);
            assert_eq!((settings.view, settings.snippet_lines), (View::Ledger, 0));
            assert_eq!(settings.name_style, NameStyle::Contract);
            assert!(settings.masks(|_| None).is_none());
        }
    }

    #[test]
    fn named_variables_are_masked_by_their_values() {
        let variables = [("SAFE_REDACT", "1, PASSWORD, OTHER"), ("PASSWORD", "hunter2-hunter2")];
        let masks = settings(&variables).masks(lookup(&variables)).unwrap().unwrap();
        assert_eq!(masks.redactor.text("is hunter2-hunter2", &mut Applied::default()), "is [redacted]");
        assert_eq!(masks.unset, ["OTHER"]);
    }
}
