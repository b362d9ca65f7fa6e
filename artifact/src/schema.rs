//! The schemas, compiled.
