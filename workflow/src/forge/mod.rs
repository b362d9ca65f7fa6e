//! Where pull requests are opened and checked.
