//! The ids of the cases of a new run: each is used once, also on file systems that ignore letter case.

use std::collections::BTreeSet;

use crate::{CaseId, NameError, Sha256Digest};

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
    format!("{prefix}-{readable}-{}", &Sha256Digest::from_bytes(text.as_bytes()).short()[..DIGEST_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

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
