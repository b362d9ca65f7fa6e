//! Errors of pages.
