//! The limit on the work and the memory of one evaluation, and the reasons why an evaluation stops early.

use std::ops::Range;

use crate::values::Value;

/// Maximum number of steps of one evaluation: at most a few tenths of a second.
pub const MAX_STEPS: u64 = 1_000_000;

/// Bytes that are read in one step.
const BYTES_READ_PER_STEP: u64 = 32;

/// Bytes of computed values that are created in one step. All computed values together then have at most 16 MB.
const BYTES_CREATED_PER_STEP: u64 = 16;

/// Bytes of a computed string, list or object in addition to its content. These sizes are constants, so that an expression
/// stops at the same step on machines with other sizes of pointers.
const HEADER_BYTES: usize = 32;

/// Bytes of an element of a list.
const ELEMENT_BYTES: usize = 32;

/// Bytes of an entry of an object, with its index by key.
const ENTRY_BYTES: usize = 128;

const _: () = assert!(size_of::<Value<'_>>() <= ELEMENT_BYTES, "a list has its elements within the charged bytes");

/// A runtime failure: what failed, and where in the expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvaluationError {
    /// The byte range of the failing part of the expression.
    pub span: Range<usize>,
    /// The failure.
    pub message: String,
}

/// The reason why an evaluation stops early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A failure. The evaluation of the innermost node adds the span.
    Failed { message: String, span: Option<Range<usize>> },
    /// A function does not take values of these types. Its call turns this into a failure with a message.
    WrongTypes,
    /// The budget is exhausted.
    TooLong,
}

impl Stop {
    /// Turns wrong types into a failure with a message. Other reasons stay as they are.
    pub(crate) fn or_describe(self, message: impl FnOnce() -> String) -> Self {
        match self {
            Stop::WrongTypes => Stop::Failed { message: message(), span: None },
            other => other,
        }
    }
}

/// The result of a part of an evaluation.
pub(crate) type Evaluated<'j> = Result<Value<'j>, Stop>;

/// Returns a failure with this message.
pub(crate) fn failed<T>(message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed { message: message.into(), span: None })
}

/// The steps that an evaluation may still take. Reading and creating bytes takes fractions of steps.
#[derive(Debug)]
pub(crate) struct Budget {
    /// In units of which a step has [`BYTES_READ_PER_STEP`].
    units: u64,
}

impl Budget {
    pub(crate) fn with_steps(steps: u64) -> Self {
        Self { units: steps.saturating_mul(BYTES_READ_PER_STEP) }
    }

    /// Returns the steps that are left, without a fraction of one.
    pub(crate) const fn steps(&self) -> u64 {
        self.units / BYTES_READ_PER_STEP
    }

    /// Takes whole steps.
    pub(crate) fn charge(&mut self, steps: u64) -> Result<(), Stop> {
        self.take(steps.saturating_mul(BYTES_READ_PER_STEP))
    }

    /// Takes the steps for reading bytes.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), Stop> {
        self.take(bytes as u64)
    }

    /// Takes the steps for creating bytes of a value. Must be called before the memory is allocated.
    pub(crate) fn create(&mut self, bytes: usize) -> Result<(), Stop> {
        // Memory is charged as steps: one limit bounds both, and a text has one point at which it stops.
        self.take((bytes as u64).saturating_mul(BYTES_READ_PER_STEP / BYTES_CREATED_PER_STEP))
    }

    /// Takes the steps for creating a string of this length.
    pub(crate) fn create_text(&mut self, bytes: usize) -> Result<(), Stop> {
        self.create(bytes.saturating_add(HEADER_BYTES))
    }

    /// Takes the steps for adding an element to a list.
    pub(crate) fn create_element(&mut self) -> Result<(), Stop> {
        self.create(ELEMENT_BYTES)
    }

    /// Takes the steps for creating a list with this many elements.
    pub(crate) fn create_list(&mut self, elements: usize) -> Result<(), Stop> {
        // Saturating: a size that no machine has is larger than every budget.
        self.create(elements.saturating_mul(ELEMENT_BYTES).saturating_add(HEADER_BYTES))
    }

    /// Takes the steps for creating an object with this many entries, which have an index by key.
    pub(crate) fn create_map(&mut self, entries: usize) -> Result<(), Stop> {
        self.create(entries.saturating_mul(ENTRY_BYTES).saturating_add(HEADER_BYTES))
    }

    fn take(&mut self, units: u64) -> Result<(), Stop> {
        if let Some(left) = self.units.checked_sub(units) {
            self.units = left;
            return Ok(());
        }
        // A later, smaller step must not succeed after a larger one was refused.
        self.units = 0;
        Err(Stop::TooLong)
    }
}
