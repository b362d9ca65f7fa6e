//! Proposes a mapping for an answer: recognises the shapes of common frameworks, and names that many agents share.
//!
//! A proposal is a guess from one answer. The caller applies it to the answer and shows what it finds.

mod calls;
mod mapping;
#[cfg(test)]
mod tests;
mod walk;

pub use mapping::propose;
