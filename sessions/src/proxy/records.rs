//! Where the proxy's records go. The proxy knows no store.

use std::error::Error;
use std::fmt;

use crate::event::SessionEvent;

/// A store of records, as the proxy needs it. All methods are called on threads that may block.
pub trait Records: Send + Sync {
    /// Adds records, and returns when they are durable.
    fn record(&self, events: Vec<SessionEvent>) -> Result<(), RecordError>;

    /// A model request is about to leave: what the agent did before it is done. The request waits for this.
    fn turn_begins(&self) {}

    /// A request has this secret. It is called before any record of the request, once for each value.
    fn saw_secret(&self, secret: &Secret);

    /// Reports a problem to the user.
    fn warn(&self, message: &str);
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RecordError(#[from] pub Box<dyn Error + Send + Sync>);

/// A value that no output shows: `Debug` is masked, and neither `Display` nor serialisation exists.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    pub(super) const fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text itself. Only code that masks it may call this.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}
