//! Case ids: given by the user, or derived from the command.

use std::collections::BTreeSet;

use counterproof_artifact::{CaseId, Sha256Digest};

use super::ExportError;

/// The longest part of a program's name in a case id, in characters.
const PROGRAM_CHARS: usize = 40;

/// The case ids that are in use, as their collision keys.
#[derive(Debug, Default)]
pub(super) struct CaseIds(BTreeSet<String>);

impl CaseIds {
    /// Reserves an id that the user chose.
    pub(super) fn reserve(&mut self, id: &CaseId) -> Result<CaseId, ExportError> {
        if self.0.insert(id.collision_key()) { Ok(id.clone()) } else { Err(ExportError::DuplicateCaseId(id.clone())) }
    }

    /// Derives an id from the program and a digest of the command. The same command always gets the same id; a further
    /// occurrence in the same run gets a number.
    pub(super) fn derive(&mut self, command: &str) -> Result<CaseId, ExportError> {
        let program = command.split(' ').next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
        let is_allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
        let program: String = program.chars().filter(is_allowed).take(PROGRAM_CHARS).collect();
        let stem = format!("cmd-{program}-{}", &Sha256Digest::from_bytes(command.as_bytes()).short()[..8]);
        let numbered = (2_u64..).map(|number| format!("{stem}-{number}"));
        let mut names = std::iter::once(stem.clone()).chain(numbered);
        let free = names.find(|name| self.0.insert(name.to_ascii_lowercase())).unwrap_or_default();
        Ok(free.parse::<CaseId>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_command_gets_the_same_id_and_a_repetition_gets_a_number() {
        let derive = |ids: &mut CaseIds, command| ids.derive(command).unwrap().to_string();
        let (mut ids, mut others) = (CaseIds::default(), CaseIds::default());
        let first = derive(&mut ids, "/usr/bin/make test");
        assert!(first.starts_with("cmd-make-"), "{first}");
        assert_eq!(derive(&mut others, "/usr/bin/make test"), first);
        assert_eq!(derive(&mut ids, "/usr/bin/make test"), format!("{first}-2"));
        assert_ne!(derive(&mut ids, "/usr/bin/make all"), first);
    }

    #[test]
    fn an_id_that_differs_only_in_case_is_a_duplicate() {
        let mut ids = CaseIds::default();
        let [lower, upper] = ["build", "BUILD"].map(|id| id.parse::<CaseId>().unwrap());
        assert_eq!(ids.reserve(&lower).unwrap(), lower);
        assert!(matches!(ids.reserve(&upper), Err(ExportError::DuplicateCaseId(id)) if id == upper));
    }
}
