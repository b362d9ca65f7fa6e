//! Case ids that are derived from the command.

use counterproof_artifact::{CaseId, CaseIds, NameError, derived_id};

/// Derives an id from the program and a digest of the command. The same command always gets the same id; a further occurrence in
/// the same run gets a number.
pub(super) fn derive_case_id(ids: &mut CaseIds, command: &str) -> Result<CaseId, NameError> {
    let program = command.split(' ').next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    ids.reserve_numbered(&derived_id("cmd", program, command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_command_gets_the_same_id_and_a_repetition_gets_a_number() {
        let derive = |ids: &mut CaseIds, command| derive_case_id(ids, command).unwrap().to_string();
        let (mut ids, mut others) = (CaseIds::default(), CaseIds::default());
        let first = derive(&mut ids, "/usr/bin/make test");
        assert!(first.starts_with("cmd-make-"), "{first}");
        assert_eq!(derive(&mut others, "/usr/bin/make test"), first);
        assert_eq!(derive(&mut ids, "/usr/bin/make test"), format!("{first}-2"));
        assert_ne!(derive(&mut ids, "/usr/bin/make all"), first);
    }
}
