//! One attempt: its random numbers, its folder, and what a fault is.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::{fmt, io};

use counterproof_tests::Sandbox;
use fastrand::Rng;

/// A kind of attack.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: fn(&mut Attempt) -> Outcome,
}

/// The end of an attempt.
pub(crate) type Outcome = Result<(), Fault>;

/// Why an attempt did not end well.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The program did something wrong.
    Found(String),
    /// The attack is not possible on this machine.
    Skipped(String),
}

impl Fault {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::Found(what.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(what) | Self::Skipped(what) => f.write_str(what),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::new(format!("the attack failed: {error}"))
    }
}

/// An attempt. The same seed, kind and number make the same random choices.
pub(crate) struct Attempt {
    pub(crate) random: Rng,
    pub(crate) sandbox: Sandbox,
    number: u64,
}

impl Attempt {
    pub(crate) fn new(seed: u64, kind: &str, number: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        (seed, kind, number).hash(&mut hasher);
        Self { random: Rng::with_seed(hasher.finish()), sandbox: Sandbox::new(), number }
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Keeps the folder for a person to look at, and returns its path.
    pub(crate) fn keep(self) -> camino::Utf8PathBuf {
        self.sandbox.keep()
    }
}

/// Returns a fault unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::attempt::Fault::new(format!($($what)+)));
        }
    };
}
pub(crate) use ensure;
