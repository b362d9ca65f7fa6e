//! Workflows: an agent works on a task in a copy of a repository until its checks pass, and opens a pull request.

pub mod forge;
pub mod model;
pub mod run;
mod secret_variables;
pub mod suite;
pub mod tools;
