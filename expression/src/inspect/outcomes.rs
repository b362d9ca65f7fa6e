//! Sets of possible outcomes of a part of an expression.

use std::ops::BitOr;

/// A set of possible outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcomes(u8);

impl Outcomes {
    pub(super) const EMPTY: Self = Self(0);
    pub(super) const TRUE: Self = Self(1);
    pub(super) const FALSE: Self = Self(2);
    /// A value that is not a boolean.
    pub(super) const VALUE: Self = Self(4);
    /// A failure.
    pub(super) const FAILURE: Self = Self(16);
    pub(super) const BOOLEAN: Self = Self(1 | 2);
    /// A value of an unknown type.
    pub(super) const ANY: Self = Self(1 | 2 | 4);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns `then` if this set has one of the others.
    pub(super) fn when(self, other: Self, then: Self) -> Self {
        if self.has(other) { then } else { Self::EMPTY }
    }

    /// The outcomes of a part that must be a boolean. Values of other types are taken for unknown booleans.
    fn boolean(self) -> Self {
        let found = self.only(Self::BOOLEAN | Self::FAILURE);
        if found.has(Self::BOOLEAN) || !self.has(Self::VALUE) { found } else { found | Self::BOOLEAN }
    }

    pub(super) fn not(self) -> Self {
        let operand = self.boolean();
        operand.when(Self::TRUE, Self::FALSE) | operand.when(Self::FALSE, Self::TRUE) | operand.only(Self::FAILURE)
    }

    /// `&&`: one operand that is false decides, even if the other one fails.
    pub(super) fn and(self, other: Self) -> Self {
        let (left, right) = (self.boolean(), other.boolean());
        let can_fail = left.has(Self::FAILURE) && right.has(Self::TRUE | Self::FAILURE)
            || right.has(Self::FAILURE) && left.has(Self::TRUE);
        let can_be_true = left.has(Self::TRUE) && right.has(Self::TRUE);
        (left | right).only(Self::FALSE)
            | if can_fail { Self::FAILURE } else { Self::EMPTY }
            | if can_be_true { Self::TRUE } else { Self::EMPTY }
    }

    /// `||`: one operand that is true decides, even if the other one fails.
    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    /// Splits the outcomes of a condition into: true, false, failure.
    pub(super) fn branches(self) -> (bool, bool, Self) {
        let found = self.boolean();
        (found.has(Self::TRUE), found.has(Self::FALSE), found.only(Self::FAILURE))
    }
}

impl BitOr for Outcomes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
