//! Test commands of repositories: how they are found, run and read.
