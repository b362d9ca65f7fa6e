//! Pointers into the artifact of a side, for reasons.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::SidePointer;

/// A pointer into the artifact of a side.
pub(super) fn pointer(side: Side, pointer: impl Into<String>) -> SidePointer {
    SidePointer { side, pointer: pointer.into() }
}

/// The pointers of a reason about one place.
pub(super) fn at(side: Side, place: impl Into<String>) -> Vec<SidePointer> {
    vec![pointer(side, place)]
}
