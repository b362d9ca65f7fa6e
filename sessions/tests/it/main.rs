//! Tests of sessions as a whole.

mod import_kit;
mod real_files;
