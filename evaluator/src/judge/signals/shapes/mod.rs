//! Shapes of contact and account data in texts: e-mail addresses, phone numbers, IBANs, payment cards and URLs.
//!
//! Each finder reads a text once and looks at a bounded number of bytes around each candidate, so its work is linear in the
//! length of the text, whatever the text contains.

mod account;
mod address;
mod contact;

pub(super) use address::is_within_domain;
pub(super) use contact::{Contact, ContactKind, contacts, digit_keys, iban_like_keys, whole_value};
