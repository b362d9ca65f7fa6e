//! A string that grows within the budget.

use crate::budget::{Budget, Stop};
use crate::values::Value;

/// Builds a string. Every piece is charged before it is added.
#[derive(Debug, Default)]
pub(super) struct TextBuilder {
    text: String,
}

impl TextBuilder {
    pub(super) fn push(&mut self, budget: &mut Budget, piece: &str) -> Result<(), Stop> {
        budget.create(piece.len())?;
        self.text.push_str(piece);
        Ok(())
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn finish<'j>(self, budget: &mut Budget) -> Result<Value<'j>, Stop> {
        // The shared string is a copy.
        budget.create_text(self.text.len())?;
        Ok(Value::string(self.text))
    }
}
