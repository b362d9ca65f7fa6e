//! The two sides of a comparison.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A side of a comparison: the known-good version, or the one under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The version that is known to be good.
    Baseline,
    /// The version under test.
    New,
}

impl Side {
    /// Both sides, in display order.
    pub const BOTH: [Side; 2] = [Side::Baseline, Side::New];

    /// The word used in files and folder names.
    pub const fn as_str(self) -> &'static str {
        match self {
            Side::Baseline => "baseline",
            Side::New => "new",
        }
    }

    /// The side it is compared with.
    #[must_use]
    pub const fn other(self) -> Side {
        match self {
            Side::Baseline => Side::New,
            Side::New => Side::Baseline,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An unknown side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a side: expected `baseline` or `new`")]
pub struct UnknownSide(String);

impl FromStr for Side {
    type Err = UnknownSide;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Exactly as written in files: a folder `New` is another folder than `new` on Linux.
        Side::BOTH.into_iter().find(|side| side.as_str() == text).ok_or_else(|| UnknownSide(text.to_owned()))
    }
}

/// One value for the baseline and one for the new version.
///
/// ```
/// use counterproof_artifact::{Side, Sides};
///
/// let ids = Sides { baseline: "run-1", new: "run-2" };
/// assert_eq!(ids.map(str::len), Sides { baseline: 5, new: 5 });
/// assert_eq!(*ids.get(Side::New), "run-2");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Sides<T> {
    /// The value of the known-good version.
    pub baseline: T,
    /// The value of the version under test.
    pub new: T,
}

impl<T> Sides<T> {
    /// Pairs the value of the baseline with that of the new version, in this order.
    pub const fn new(baseline: T, new: T) -> Self {
        Self { baseline, new }
    }

    /// Calls `value` for the baseline, then for the new version.
    pub fn from_fn(mut value: impl FnMut(Side) -> T) -> Self {
        Self { baseline: value(Side::Baseline), new: value(Side::New) }
    }

    /// Calls `value` for the baseline, then for the new version; stops at the first error.
    pub fn try_from_fn<E>(mut value: impl FnMut(Side) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self { baseline: value(Side::Baseline)?, new: value(Side::New)? })
    }

    /// Returns the value of a side.
    pub const fn get(&self, side: Side) -> &T {
        match side {
            Side::Baseline => &self.baseline,
            Side::New => &self.new,
        }
    }

    /// Returns the value of a side for changing it.
    pub const fn get_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Baseline => &mut self.baseline,
            Side::New => &mut self.new,
        }
    }

    /// Borrows both values.
    pub const fn as_ref(&self) -> Sides<&T> {
        Sides { baseline: &self.baseline, new: &self.new }
    }

    /// Borrows both values for changing them.
    pub const fn as_mut(&mut self) -> Sides<&mut T> {
        Sides { baseline: &mut self.baseline, new: &mut self.new }
    }

    /// Converts both values, the baseline's first.
    pub fn map<U>(self, mut convert: impl FnMut(T) -> U) -> Sides<U> {
        Sides { baseline: convert(self.baseline), new: convert(self.new) }
    }

    /// Joins the values of the same side.
    pub fn zip<U>(self, other: Sides<U>) -> Sides<(T, U)> {
        Sides { baseline: (self.baseline, other.baseline), new: (self.new, other.new) }
    }

    /// Returns the values in the order of [`Side::BOTH`].
    pub fn into_array(self) -> [T; 2] {
        [self.baseline, self.new]
    }

    /// Iterates over both sides with their values, the baseline first.
    pub fn iter(&self) -> impl Iterator<Item = (Side, &T)> {
        [(Side::Baseline, &self.baseline), (Side::New, &self.new)].into_iter()
    }

    /// Exchanges the two values.
    #[must_use]
    pub fn swapped(self) -> Self {
        Self { baseline: self.new, new: self.baseline }
    }
}

impl<T> Sides<Option<T>> {
    /// Returns both values where neither is `None`.
    pub fn both(self) -> Option<Sides<T>> {
        Some(Sides { baseline: self.baseline?, new: self.new? })
    }
}

impl<T> From<[T; 2]> for Sides<T> {
    /// Takes the values in the order of [`Side::BOTH`].
    fn from([baseline, new]: [T; 2]) -> Self {
        Self { baseline, new }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_created_and_read_by_side() {
        let mut names = Sides::from_fn(|side| side.as_str().to_owned());
        assert_eq!(names.iter().map(|(side, _)| side).collect::<Vec<_>>(), Side::BOTH);
        assert!(names.iter().all(|(side, name)| side.as_str() == name && names.get(side) == name));
        names.get_mut(Side::New).push('!');
        assert_eq!(names.as_ref().map(String::as_str), Sides::new("baseline", "new!"));
        assert_eq!(names.swapped(), ["new!".to_owned(), "baseline".to_owned()].into());
    }

    #[test]
    fn the_first_error_is_returned() {
        let result: Result<Sides<()>, Side> = Sides::try_from_fn(Err);
        assert_eq!(result, Err(Side::Baseline));
        assert_eq!(Sides::try_from_fn(Ok::<Side, ()>), Ok(Sides::from(Side::BOTH)));
    }

    #[test]
    fn values_of_the_same_side_are_joined() {
        let joined = Sides::new(1, 2).zip(Sides::new('a', 'b'));
        assert_eq!(joined.into_array(), [(1, 'a'), (2, 'b')]);
        assert_eq!(Sides::new(Some(1), None).both(), None);
        assert_eq!(Sides::new(Some(1), Some(2)).both(), Some(Sides::new(1, 2)));
    }

    #[test]
    fn json_has_a_field_for_each_side() {
        let text = serde_json::to_string(&Sides::new(1, 2)).unwrap();
        assert_eq!(text, r#"{"baseline":1,"new":2}"#);
        assert_eq!(serde_json::from_str::<Sides<i32>>(&text).unwrap(), Sides::new(1, 2));
    }
}
