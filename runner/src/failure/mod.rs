//! What can go wrong with an attempt: reasons, and faults with their details.

pub(crate) mod fault;
