//! What the environment says.

use std::ffi::OsString;

use counterproof_artifact::redact::{RedactError, Redactor};

use crate::log::View;

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
        let redact = text("SAFE_REDACT").filter(|value| !["", "0", "false", "no", "off"].contains(&&**value));
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
    pub(super) fn redactor(
        &self,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Option<Result<Redactor, RedactError>> {
        if self.redact.is_empty() {
            return None;
        }
        let values: Vec<String> = self.redact.iter().filter_map(|name| environment(name)?.into_string().ok()).collect();
        Some(Redactor::new(values.iter().map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::redact::Applied;

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
            assert!(settings.redactor(|_| None).is_none());
        }
    }

    #[test]
    fn named_variables_are_masked_by_their_values() {
        let variables = [("SAFE_REDACT", "PASSWORD, OTHER"), ("PASSWORD", "hunter2-hunter2")];
        let redactor = settings(&variables).redactor(lookup(&variables)).unwrap().unwrap();
        assert_eq!(redactor.text("is hunter2-hunter2", &mut Applied::default()), "is [redacted]");
    }
}
