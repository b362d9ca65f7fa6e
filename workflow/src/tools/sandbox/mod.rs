//! Runs commands of a model without access to what is outside of the workspace, as far as the system offers it.
//!
//! ```text
//! SandboxedCommand: line, folders, ports ─▶ safe-run, environment without secrets ─▶ launcher: Landlock ─▶ sh -c
//!                                                                               ─▶ bubblewrap ────────┘
//! ```
//!
//! | access | in a sandbox |
//! |---|---|
//! | write | the workspace, the private folder, `/dev/null` and terminals |
//! | read | everything except temporary folders, devices, and secrets of the home folder |
//! | network | no TCP (Landlock; newer kernels: no UDP either), none at all (bubblewrap) |
//! | processes | no signals to processes outside, from Linux 6.12 (Landlock), none visible (bubblewrap) |
//! | rights of root | only those on files (Landlock), none (bubblewrap) |
//!
//! A sandbox does not limit memory, processor time and disk space. Landlock does not restrict sockets in the file system
//! before Linux 7.1.

#[cfg(target_os = "linux")]
mod bubblewrap;
mod command;
mod environment;
#[cfg(target_os = "linux")]
mod hidden_paths;
mod kind;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod launcher;

#[cfg(not(target_os = "linux"))]
pub use counterproof_safe_run::enter;

pub use command::SandboxedCommand;
pub use kind::{Sandbox, SandboxChoice, SandboxError, UnknownSandbox};
#[cfg(target_os = "linux")]
pub use launcher::enter;
