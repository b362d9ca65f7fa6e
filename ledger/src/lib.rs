//! The ledger of tool-call events: the event format, the store, and the export to run folders.
//!
//! [`event`] defines the events that the guard emits, one JSON object per line. This crate does not decide about calls;
//! `counterproof-guard` does.

pub mod event;
