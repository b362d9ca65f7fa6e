//! The messages of the supervisor about the command.

/// A message from the supervisor, or from the launcher to the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The command runs; the value is its process id, which is also its process group.
    Started(i32),
    /// The command could not be started; the value is the error number of the operating system.
    NotStarted(i32),
    /// A signal stopped the command.
    Stopped(i32),
    /// The command exited with a code.
    Exited(i32),
    /// A signal killed the command.
    Killed(i32),
    /// Number of processes that the command left behind and that were killed.
    LeftBehind(i32),
}

impl Status {
    /// Encodes the message: a tag and the value, little-endian.
    pub(super) fn to_frame(self) -> [u8; 5] {
        let (tag, value) = match self {
            Status::Started(value) => (b'p', value),
            Status::NotStarted(value) => (b'x', value),
            Status::Stopped(value) => (b't', value),
            Status::Exited(value) => (b'e', value),
            Status::Killed(value) => (b'k', value),
            Status::LeftBehind(value) => (b'l', value),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    /// Decodes a frame; `None` for an unknown tag.
    pub(super) fn from_frame([tag, value @ ..]: [u8; 5]) -> Option<Self> {
        let value = i32::from_le_bytes(value);
        Some(match tag {
            b'p' => Status::Started(value),
            b'x' => Status::NotStarted(value),
            b't' => Status::Stopped(value),
            b'e' => Status::Exited(value),
            b'k' => Status::Killed(value),
            b'l' => Status::LeftBehind(value),
            _ => return None,
        })
    }
}
