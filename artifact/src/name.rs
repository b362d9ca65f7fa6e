//! Ids of runs and cases, unique within a run, that are safe file names on Linux, macOS and Windows. Other ids (of calls, of actions) are plain strings.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Sha256Digest;

/// Longest id in bytes: leaves room for every suffix below the common limit of 255 bytes for a file name.
const MAX_BYTES: usize = 128;

/// Characters other than ASCII letters and digits that are safe in file systems, shells and URL paths.
const PUNCTUATION: &str = "._-+=@,~()[]";

/// First characters that make an id an option of a command or a formula of a spreadsheet. Ids that exist may start with them.
const FORMULA_OR_OPTION: [char; 4] = ['-', '=', '+', '@'];

/// Device names that Windows reserves, with any extension and in any case.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Stems of the other documents in a run folder.
const TAKEN: [&str; 2] = ["run", "evaluation"];

/// An invalid case id or run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The id is empty.
    #[error("the id is empty")]
    Empty,
    /// Too long for a file name with suffixes.
    #[error("the id is {0} bytes long; at most {MAX_BYTES} fit into a file name on every system")]
    TooLong(usize),
    /// A character outside the portable set.
    #[error(
        "the id holds {found:?} at byte {index}; only ASCII letters, digits and {PUNCTUATION} are safe in a file name on every system"
    )]
    Character {
        /// The offending character.
        found: char,
        /// Its byte offset.
        index: usize,
    },
    /// A dot at either end: hidden on Unix, dropped on Windows.
    #[error("the id starts or ends with a dot, which some systems hide or drop")]
    EdgeDot,
    /// A new id starts with a character that shells take for an option, or spreadsheets for a formula.
    #[error(
        "the id starts with `{0}`: a shell would read its file name as an option, or a spreadsheet the id as a formula; \
         start it with a letter, a digit or `_`"
    )]
    Start(char),
    /// A Windows device, such as `con` or `lpt1.txt`.
    #[error("`{0}` is a reserved device name on Windows")]
    Device(String),
    /// `run` and `evaluation` would overwrite other documents of the run folder.
    #[error("`{0}.json` is another document of the run folder")]
    Taken(String),
}

fn check(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > MAX_BYTES {
        return Err(NameError::TooLong(text.len()));
    }
    // Before the dots and the devices: these are only looked for in portable ASCII.
    let portable = |c: char| c.is_ascii_alphanumeric() || PUNCTUATION.contains(c);
    if let Some((index, found)) = text.char_indices().find(|&(_, c)| !portable(c)) {
        return Err(NameError::Character { found, index });
    }
    if text.starts_with('.') || text.ends_with('.') {
        return Err(NameError::EdgeDot);
    }
    let lower = text.to_ascii_lowercase();
    // Windows reserves a device name with every extension: `con.json` opens the console.
    let stem = lower.split('.').next().unwrap_or_default();
    let numbered_device = |prefix: &str| {
        stem.strip_prefix(prefix).is_some_and(|rest| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit())
    };
    if DEVICES.contains(&stem) || numbered_device("com") || numbered_device("lpt") {
        return Err(NameError::Device(text.to_owned()));
    }
    Ok(())
}

/// The stricter rule for an id that is chosen now. It does not hold for reading, so files of earlier versions stay readable.
fn check_new(text: &str) -> Result<(), NameError> {
    text.chars()
        .next()
        .filter(|first| FORMULA_OR_OPTION.contains(first))
        .map_or(Ok(()), |first| Err(NameError::Start(first)))
}

/// [`check`] for ids that name a file in a run folder.
fn check_case(text: &str) -> Result<(), NameError> {
    check(text)?;
    // In any case of letters, since `Run.json` is `run.json` on macOS and Windows.
    if TAKEN.contains(&text.to_ascii_lowercase().as_str()) {
        return Err(NameError::Taken(text.to_owned()));
    }
    Ok(())
}

macro_rules! file_name_id {
    ($(#[$doc:meta])* $name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Checks an id that is chosen for new files: it must not look like an option or a formula.
            pub fn check_new(&self) -> Result<(), NameError> {
                check_new(&self.0)
            }

            /// Ids with equal keys name the same file on a case-insensitive file system.
            pub fn collision_key(&self) -> String {
                self.0.to_ascii_lowercase()
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                $check(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                $check(&text)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

file_name_id! {
    /// The id of a case. With the suffix `.json` it is the name of its artifact.
    CaseId, check_case
}

file_name_id! {
    /// The id of a run, and the name of its folder.
    RunId, check
}

/// The longest readable part of a derived id, in characters.
const READABLE_CHARS: usize = 40;

/// Length of the digest in a derived id, in digits.
const DIGEST_DIGITS: usize = 8;

/// The case ids that are in use.
#[derive(Debug, Clone, Default)]
pub struct CaseIds(BTreeSet<String>);

impl CaseIds {
    /// Reserves an id. Returns false if it is in use.
    pub fn reserve(&mut self, id: &CaseId) -> bool {
        self.0.insert(id.collision_key())
    }

    /// Reserves `stem`, or `stem` with the first free number.
    pub fn reserve_numbered(&mut self, stem: &str) -> Result<CaseId, NameError> {
        let numbered = (2_u64..).map(|number| format!("{stem}-{number}"));
        let mut names = std::iter::once(stem.to_owned()).chain(numbered);
        // The numbers do not end, so that the default is never used.
        let free = names.find(|name| self.0.insert(name.to_ascii_lowercase())).unwrap_or_default();
        free.parse()
    }
}

/// Derives an id from a text that may contain any characters: a prefix, the safe characters of `readable`, and a part of the digest
/// of `text`. Equal texts get equal ids.
///
/// ```
/// use counterproof_artifact::derived_id;
///
/// assert_eq!(derived_id("cmd", "make", "/usr/bin/make test"), "cmd-make-61bf818e");
/// ```
pub fn derived_id(prefix: &str, readable: &str, text: &str) -> String {
    let is_safe = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
    let readable: String = readable.chars().filter(is_safe).take(READABLE_CHARS).collect();
    // The digest distinguishes texts with the same readable part.
    format!("{prefix}-{readable}-{}", &Sha256Digest::from_bytes(text.as_bytes()).short()[..DIGEST_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_ids_are_accepted() {
        for id in
            ["a", "refund_001", "suite.case-2", "test[param,1]", "console", "com", "lpt10", "run2", &"x".repeat(128)]
        {
            assert!(id.parse::<CaseId>().is_ok(), "{id}");
        }
    }

    #[test]
    fn ids_that_are_invalid_file_names_on_some_system_are_rejected() {
        let cases = [
            ("", NameError::Empty),
            ("a/b", NameError::Character { found: '/', index: 1 }),
            ("a\\b", NameError::Character { found: '\\', index: 1 }),
            ("a b", NameError::Character { found: ' ', index: 1 }),
            ("<script>", NameError::Character { found: '<', index: 0 }),
            ("退款", NameError::Character { found: '退', index: 0 }),
            ("a\0", NameError::Character { found: '\0', index: 1 }),
            ("..", NameError::EdgeDot),
            (".hidden", NameError::EdgeDot),
            ("a.", NameError::EdgeDot),
            ("NUL", NameError::Device("NUL".into())),
            ("com1.tar.gz", NameError::Device("com1.tar.gz".into())),
            ("Run", NameError::Taken("Run".into())),
            ("evaluation", NameError::Taken("evaluation".into())),
        ];
        for (id, expected) in cases {
            assert_eq!(id.parse::<CaseId>(), Err(expected), "{id:?}");
        }
        assert_eq!("x".repeat(129).parse::<CaseId>(), Err(NameError::TooLong(129)));
    }

    #[test]
    fn a_new_id_is_no_option_and_no_formula_and_an_existing_one_stays_readable() {
        for (id, first) in [("-rf", '-'), ("=1+1", '='), ("+1", '+'), ("@sum", '@')] {
            assert_eq!(id.parse::<CaseId>().unwrap().check_new(), Err(NameError::Start(first)));
            assert_eq!(id.parse::<RunId>().unwrap().check_new(), Err(NameError::Start(first)));
        }
        for id in ["a-b=c+d@e", "_a", "~a", "(a)", "1"] {
            assert_eq!(id.parse::<CaseId>().unwrap().check_new(), Ok(()), "{id}");
        }
    }

    #[test]
    fn a_run_id_may_equal_the_stem_of_a_document() {
        assert!("run".parse::<RunId>().is_ok() && "evaluation".parse::<RunId>().is_ok());
        assert_eq!("con".parse::<RunId>(), Err(NameError::Device("con".into())));
    }

    #[test]
    fn ids_that_differ_only_in_case_share_a_key() {
        let (upper, lower): (CaseId, CaseId) = ("Refund".parse().unwrap(), "refund".parse().unwrap());
        assert_ne!(upper, lower);
        assert_eq!(upper.collision_key(), lower.collision_key());
    }

    #[test]
    fn an_id_that_differs_only_in_case_is_in_use() {
        let mut ids = CaseIds::default();
        let [lower, upper] = ["build", "BUILD"].map(|id| id.parse::<CaseId>().unwrap());
        assert!(ids.reserve(&lower) && !ids.reserve(&upper));
    }

    #[test]
    fn a_repetition_gets_a_number() {
        let mut ids = CaseIds::default();
        assert!(ids.reserve(&"make-2".parse().unwrap()));
        let names = [(); 3].map(|()| ids.reserve_numbered("make").unwrap().to_string());
        assert_eq!(names, ["make", "make-3", "make-4"]);
    }

    #[test]
    fn a_derived_id_is_a_valid_id_whatever_the_text() {
        let long = "x".repeat(1000);
        for text in ["", "..", "退款", "a b/c", "con", "-rf", long.as_str()] {
            let id: CaseId = derived_id("case", text, text).parse().unwrap();
            assert_eq!(id.check_new(), Ok(()), "{text}");
        }
        assert_ne!(derived_id("case", "退", "退"), derived_id("case", "款", "款"));
    }
}
