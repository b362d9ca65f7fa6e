//! Messages of the server as they arrive: collected in pieces, read from events, and the requests that they may answer.

use counterproof_ledger::event::CallId;

use crate::mcp::{
    PendingCalls, RequestId, Response, ScannedMessage, Scanner, end_calls, end_scanned_call, read_responses,
};
use crate::session::{MAX_INSPECT_BYTES, Session};

#[derive(Debug, Default)]
pub(super) struct MessageBuffer {
    bytes: Vec<u8>,
    scanner: Option<Box<Scanner>>,
    length: u64,
}

#[derive(Debug)]
pub(super) enum CollectedMessage {
    Whole(Vec<u8>),
    Scanned { found: Box<ScannedMessage>, length: u64 },
}

impl MessageBuffer {
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        if self.scanner.is_none() {
            // Held as a whole up to the limit. What was held is scanned once it is exceeded.
            if self.bytes.len() + piece.len() <= MAX_INSPECT_BYTES {
                self.bytes.extend_from_slice(piece);
                return;
            }
            let mut scanner = Box::<Scanner>::default();
            scanner.push(&std::mem::take(&mut self.bytes));
            self.scanner = Some(scanner);
        }
        if let Some(scanner) = &mut self.scanner {
            scanner.push(piece);
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn take(&mut self) -> CollectedMessage {
        let Self { bytes, scanner, length } = std::mem::take(self);
        match scanner {
            None => CollectedMessage::Whole(bytes),
            Some(scanner) => CollectedMessage::Scanned { found: Box::new(scanner.finish()), length },
        }
    }
}

pub(super) enum ServerMessage<'a> {
    Responses(Vec<Response<'a>>),
    Scanned { found: Box<ScannedMessage>, length: u64 },
}

impl<'a> ServerMessage<'a> {
    pub(super) fn read(message: &'a CollectedMessage) -> Self {
        match message {
            CollectedMessage::Whole(bytes) => {
                let responses = std::str::from_utf8(bytes).map_or_else(|_| Vec::new(), read_responses);
                // A response may be unreadable as a whole and still state its id and its kind.
                if responses.is_empty() {
                    let found = Box::new(ScannedMessage::read(bytes));
                    return Self::Scanned { found, length: bytes.len() as u64 };
                }
                Self::Responses(responses)
            }
            CollectedMessage::Scanned { found, length } => Self::Scanned { found: found.clone(), length: *length },
        }
    }

    /// Records the ends of the calls that the message answers. `take` removes and returns the call of a request.
    pub(super) fn end_calls(&self, session: &Session, take: impl Fn(&RequestId) -> Option<CallId>) {
        match self {
            Self::Responses(responses) => end_calls(session, responses, take),
            Self::Scanned { found, length } => end_scanned_call(session, found, *length, take),
        }
    }
}

/// Within what an id names one request. Clients of one proxy may use the same ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// A session of the protocol, named by `Mcp-Session-Id`. Its responses may come on any of its streams.
    Session(String),
    Exchange(u64),
    /// Requests whose responses come on a stream without a session, as in the revision of 2024-11-05.
    Unnamed,
}

/// The calls that wait for a response.
pub(super) type OpenRequests = PendingCalls<(Scope, RequestId)>;

const FIELD_BYTES: usize = 5;

#[derive(Debug, Default)]
pub(super) struct EventStream {
    part: FieldState,
    /// The start of the current line, while it may be the name of a field.
    name: Vec<u8>,
    data: Option<MessageBuffer>,
    after_cr: bool,
    has_started: bool,
    /// True once an event had an id, by which a client can resume the stream.
    pub(super) has_ids: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum FieldState {
    #[default]
    Name,
    /// The optional space before a value.
    DataStart,
    Data,
    Skipped,
}

impl EventStream {
    /// Reads a piece, and calls `event` with the data of each event that ends in it.
    pub(super) fn push(&mut self, piece: &[u8], mut event: impl FnMut(CollectedMessage)) {
        let mut rest = piece;
        if !std::mem::replace(&mut self.has_started, true) {
            // A byte order mark. A mark that is split between pieces is not removed. Servers do not send one.
            rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
        }
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            match self.part {
                FieldState::Data | FieldState::Skipped => {
                    let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
                    if let (FieldState::Data, Some(data)) = (self.part, &mut self.data) {
                        data.push(&rest[..end]);
                    }
                    rest = &rest[end..];
                    if let Some(&end) = rest.first() {
                        self.end_line(end, &mut event);
                        rest = &rest[1..];
                    }
                }
                FieldState::DataStart => {
                    self.part = FieldState::Data;
                    rest = rest.strip_prefix(b" ").unwrap_or(rest);
                }
                FieldState::Name => {
                    rest = &rest[1..];
                    match first {
                        b'\r' | b'\n' => self.end_line(first, &mut event),
                        b':' => self.start_value(),
                        // No known field has a longer name, so memory does not grow with a line.
                        _ if self.name.len() == FIELD_BYTES => self.part = FieldState::Skipped,
                        _ => self.name.push(first),
                    }
                }
            }
        }
    }

    fn start_value(&mut self) {
        // Only a stream with ids can be resumed.
        self.has_ids |= self.name == b"id";
        self.part = FieldState::Skipped;
        if self.name == b"data" {
            self.start_data();
            self.part = FieldState::DataStart;
        }
    }

    fn start_data(&mut self) {
        match &mut self.data {
            Some(data) => data.push(b"\n"),
            None => self.data = Some(MessageBuffer::default()),
        }
    }

    fn end_line(&mut self, end: u8, event: &mut impl FnMut(CollectedMessage)) {
        self.after_cr = end == b'\r';
        if self.part == FieldState::Name {
            match &*self.name {
                b"" => self.data.take().into_iter().for_each(|mut data| event(data.take())),
                b"data" => self.start_data(),
                _ => {}
            }
        }
        self.name.clear();
        self.part = FieldState::Name;
    }
}
