//! Settings from the environment variables.

use std::ffi::OsString;

use counterproof_redaction::{RedactError, Redactor, SHORTEST};

use crate::LogView;

const LOG_FOLDER: &str = ".agent/FAIL-LOGS";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameStyle {
    /// `safe-run-YYYYMMDD-HHMMSS-<random>.log`
    Contract,
    /// `YYYYMMDDTHHMMSSZ-pid<PID>-FAIL.log`, and `-ABORTED.log` after a signal.
    M0,
}

/// Values of `SAFE_REDACT` that are not variable names: they select only keys of known formats.
const KNOWN_FORMATS_ONLY: [&str; 5] = ["", "1", "true", "yes", "on"];

/// Secrets that cannot be redacted. The messages never contain their values.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecretError {
    #[error("cannot redact the value of `{0}` (named in SAFE_REDACT): it is not valid UTF-8")]
    NotUtf8(String),
    /// A short text occurs everywhere, so replacing it would destroy the record.
    #[error("cannot redact the value of `{0}` (named in SAFE_REDACT) reliably: it is shorter than {least} bytes", least = SHORTEST)]
    TooShort(String),
    #[error(transparent)]
    Redactor(#[from] RedactError),
}

#[derive(Debug)]
pub(super) struct Redaction {
    pub(super) redactor: Redactor,
    /// Variables that `SAFE_REDACT` names and that are not set.
    pub(super) unset: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Settings {
    pub(super) log_folder: OsString,
    pub(super) view: LogView,
    /// The value of `SAFE_RUN_VIEW`, if it is unknown.
    pub(super) unknown_view: Option<String>,
    pub(super) snippet_lines: usize,
    pub(super) name_style: NameStyle,
    /// The folder that gets the events of every command.
    pub(super) record_folder: Option<OsString>,
    /// The comma-separated values of `SAFE_REDACT`; empty if redaction is off.
    redact: Vec<String>,
}

impl Settings {
    /// Reads the variables through `environment`. Invalid values are ignored, so that a wrong setting never costs a record.
    pub(super) fn read(environment: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name| environment(name).and_then(|value| value.into_string().ok());
        // A name that is not valid UTF-8 is reported as unset later. It must not switch redaction off.
        let redact = environment("SAFE_REDACT").map(|value| value.to_string_lossy().into_owned());
        let redact = redact.filter(|value| !["", "0", "false", "no", "off"].contains(&&**value));
        let view = environment("SAFE_RUN_VIEW").map(|value| value.to_string_lossy().into_owned());
        let view = view.filter(|value| !value.is_empty());
        Self {
            log_folder: environment("SAFE_LOG_DIR").filter(|folder| !folder.is_empty()).unwrap_or(LOG_FOLDER.into()),
            view: if view.as_deref() == Some("merged") { LogView::Merged } else { LogView::Ledger },
            // A typing error would save another log than the wanted one.
            unknown_view: view.filter(|value| !["ledger", "merged"].contains(&&**value)),
            snippet_lines: text("SAFE_SNIPPET_LINES").and_then(|lines| lines.trim().parse().ok()).unwrap_or(0),
            name_style: match text("SAFE_LOG_STYLE").as_deref() {
                Some("m0") => NameStyle::M0,
                _ => NameStyle::Contract,
            },
            record_folder: environment("SAFE_RUN_RECORD_DIR").filter(|folder| !folder.is_empty()),
            redact: redact.iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect(),
        }
    }

    pub(super) fn redaction(
        &self,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Option<Result<Redaction, SecretError>> {
        (!self.redact.is_empty()).then(|| self.create_redaction(environment))
    }

    fn create_redaction(&self, environment: impl Fn(&str) -> Option<OsString>) -> Result<Redaction, SecretError> {
        let (mut values, mut unset) = (Vec::new(), Vec::new());
        for name in &self.redact {
            match environment(name).filter(|value| !value.is_empty()).map(OsString::into_string) {
                None if KNOWN_FORMATS_ONLY.contains(&&**name) => {}
                None => unset.push(name.clone()),
                Some(Err(_)) => return Err(SecretError::NotUtf8(name.clone())),
                Some(Ok(value)) if value.len() < SHORTEST => return Err(SecretError::TooShort(name.clone())),
                Some(Ok(value)) => values.push(value),
            }
        }
        Ok(Redaction { redactor: Redactor::new(values.iter().map(String::as_str))?, unset })
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
    fn unset_and_invalid_variables_have_the_default() {
        for variables in [
            vec![],
            vec![("SAFE_LOG_DIR", ""), ("SAFE_RUN_VIEW", "x"), ("SAFE_SNIPPET_LINES", "-1"), ("SAFE_REDACT", "0")],
        ] {
            let settings = settings(&variables);
            assert_eq!(settings.log_folder, LOG_FOLDER);
            assert_eq!((settings.view, settings.snippet_lines), (LogView::Ledger, 0));
            assert_eq!(settings.unknown_view.is_some(), !variables.is_empty());
            assert_eq!(settings.name_style, NameStyle::Contract);
            assert!(settings.redaction(|_| None).is_none());
        }
    }

    #[test]
    fn the_values_of_named_variables_are_redacted() {
        let variables = [("SAFE_REDACT", "1, PASSWORD, OTHER"), ("PASSWORD", "hunter2-hunter2")];
        let redaction = settings(&variables).redaction(lookup(&variables)).unwrap().unwrap();
        assert_eq!(redaction.redactor.text("is hunter2-hunter2", &mut Applied::default()), "is [redacted]");
        assert_eq!(redaction.unset, ["OTHER"]);
    }
}
