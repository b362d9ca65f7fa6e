//! Operations on values: equality, order and arithmetic.

mod arithmetic;
mod equality;
mod operator;
mod order;

pub(crate) use arithmetic::{arithmetic, negate};
pub(crate) use equality::{MAX_VALUE_DEPTH, equal, is_in};
pub(crate) use operator::Operator;
pub(crate) use order::order;
