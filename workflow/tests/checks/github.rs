//! GitHub
