//! The sandboxes, and which of them a system offers.

use std::str::FromStr;

use counterproof_safe_run::StartError;
use serde::{Deserialize, Serialize};

/// What the user asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxChoice {
    /// Landlock, else bubblewrap, else none.
    #[default]
    Auto,
    /// This one, or an error.
    Only(Sandbox),
}

/// The sandbox of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    Landlock,
    Bwrap,
    None,
}

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the sandbox `{}` is not available on this system", .0.name())]
    Unavailable(Sandbox),
    #[error("cannot set up the sandbox: {0}")]
    Setup(String),
    #[error(transparent)]
    Start(#[from] StartError),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown sandbox `{0}`; use `auto`, `landlock`, `bwrap` or `none`")]
pub struct UnknownSandbox(String);

impl FromStr for SandboxChoice {
    type Err = UnknownSandbox;

    fn from_str(text: &str) -> Result<Self, UnknownSandbox> {
        let all = [Sandbox::Landlock, Sandbox::Bwrap, Sandbox::None];
        match all.into_iter().find(|sandbox| sandbox.name() == text) {
            Some(sandbox) => Ok(Self::Only(sandbox)),
            None if text == "auto" => Ok(Self::Auto),
            None => Err(UnknownSandbox(text.to_owned())),
        }
    }
}

impl Sandbox {
    /// Finds the sandbox of this system. Call it once for a run.
    pub fn detect(choice: SandboxChoice) -> Result<Self, SandboxError> {
        match choice {
            SandboxChoice::Only(sandbox) if sandbox.is_available() => Ok(sandbox),
            SandboxChoice::Only(sandbox) => Err(SandboxError::Unavailable(sandbox)),
            SandboxChoice::Auto => {
                let sandboxes = [Self::Landlock, Self::Bwrap];
                Ok(sandboxes.into_iter().find(|sandbox| sandbox.is_available()).unwrap_or(Self::None))
            }
        }
    }

    /// Returns the value of `result.sandbox`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
            Self::None => "none",
        }
    }

    /// Describes what the sandbox restricts.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Landlock => "Landlock: commands write only in the workspace and have no TCP",
            Self::Bwrap => "bubblewrap: commands write only in the workspace and have no network",
            Self::None => "none: commands have all rights of this program",
        }
    }

    #[cfg(target_os = "linux")]
    fn is_available(self) -> bool {
        match self {
            Self::Landlock => super::landlock::is_available(),
            Self::Bwrap => super::bubblewrap::is_available(),
            Self::None => true,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn is_available(self) -> bool {
        self == Self::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_is_chosen_by_its_name() {
        for sandbox in [Sandbox::Landlock, Sandbox::Bwrap, Sandbox::None] {
            assert_eq!(sandbox.name().parse(), Ok(SandboxChoice::Only(sandbox)));
        }
        assert_eq!("auto".parse(), Ok(SandboxChoice::Auto));
        assert_eq!("Landlock".parse::<SandboxChoice>(), Err(UnknownSandbox("Landlock".to_owned())));
    }

    #[test]
    fn no_sandbox_is_always_available() {
        assert_eq!(Sandbox::detect(SandboxChoice::Only(Sandbox::None)).unwrap(), Sandbox::None);
        assert!(Sandbox::detect(SandboxChoice::Auto).is_ok());
    }
}
