//! Rejects answers that contain duplicate JSON keys.

use counterproof_validation::locate::{self, DuplicateKey, DuplicateKeys};

use crate::failure::{Fault, Reason, Violation};

/// Rejects a body with duplicate keys. Their meaning is undefined (RFC 8259, section 4).
pub(super) fn reject_duplicate_keys(bytes: &[u8]) -> Result<(), Fault> {
    let DuplicateKeys { listed, omitted } = locate::duplicate_keys(&String::from_utf8_lossy(bytes));
    if listed.is_empty() {
        return Ok(());
    }
    let reason = Reason::DuplicateKey;
    let message = format!("the body contains {} duplicate keys", listed.len() + omitted);
    let violation = |duplicate: DuplicateKey| Violation {
        code: reason.name(),
        pointer: duplicate.pointer,
        message: "duplicate key".to_owned(),
        expected: "unique keys".to_owned(),
    };
    Err(Fault { violations: listed.into_iter().map(violation).collect(), ..Fault::new(reason, message) })
}
