//! Copies of git repositories to work in, and snapshots of them.

#![cfg(unix)]

pub mod git;
