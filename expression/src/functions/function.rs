//! A function, and the ways in which it is called.

use crate::budget::{Budget, Evaluated};
use crate::values::Value;

/// The code of a function. The first argument of a method is its target.
pub(crate) type Run = for<'j> fn(&mut Budget, &[Value<'j>]) -> Evaluated<'j>;

pub(crate) struct Function {
    /// The name in an expression.
    pub(crate) name: &'static str,
    /// How it is called.
    pub(super) style: Style,
    /// The least and the largest number of arguments, with the target of a method.
    pub(super) arguments: (usize, usize),
    pub(crate) run: Run,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `name(x)`.
    Global,
    /// `x.name()`.
    Method,
    /// Both.
    Either,
}
