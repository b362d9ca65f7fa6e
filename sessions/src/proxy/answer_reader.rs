//! A copy of an answer, read as it passes: decoded, joined, and at its end turned into a response.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::content_coding::{DecodeError, Decoder};
use crate::event::{Api, EventError, LlmResponse};
use crate::protocol::{AnswerStream, error_message, response_from_body};

/// Of a larger answer, only the first bytes are recorded. It is passed on whole.
pub const MAX_RECORDED_ANSWER: usize = 64 << 20;

/// The kind of error of a record that is not whole.
pub(super) const RECORDING: &str = "recording";

pub(super) struct AnswerReader {
    api: Api,
    status: StatusCode,
    decoder: Decoder,
    content: Content,
    /// Why the rest of the answer is not read.
    problem: Option<DecodeError>,
}

enum Content {
    Events(Box<AnswerStream>),
    Document(Vec<u8>),
}

impl Content {
    fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Events(stream) => stream.push(bytes),
            Self::Document(document) => document.extend_from_slice(bytes),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerEnd {
    Complete,
    /// The answer ended early, for this reason.
    Cut(String),
}

impl AnswerReader {
    pub(super) fn new(api: Api, status: StatusCode, headers: &HeaderMap) -> Self {
        let content_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes().to_ascii_lowercase());
        let is_stream = content_type.is_some_and(|it| it.trim_ascii_start().starts_with(b"text/event-stream"));
        let content = if is_stream && status.is_success() {
            Content::Events(Box::new(AnswerStream::new(api)))
        } else {
            Content::Document(Vec::new())
        };
        Self { api, status, decoder: Decoder::new(headers, MAX_RECORDED_ANSWER), content, problem: None }
    }

    /// Returns how many bytes must follow a piece before it leaves, so that the end of the answer waits for the record.
    pub(super) const fn held_bytes(&self) -> usize {
        match (&self.content, self.decoder.waits_for_end()) {
            (Content::Events(_), false) => 0,
            // The event that ends the answer is not seen. What may follow it is the end of a compressed frame.
            (Content::Events(_), true) => 64,
            // The last piece is known only after it.
            (Content::Document(_), _) => 1,
        }
    }

    /// Reads a piece. Returns true if the answer of a stream ends in it.
    pub(super) fn push(&mut self, piece: &[u8]) -> bool {
        let Self { decoder, content, problem, .. } = self;
        if problem.is_none() {
            *problem = decoder.push(piece, |bytes| content.push(bytes)).err();
        }
        match content {
            Content::Events(stream) => stream.has_ended(),
            Content::Document(_) => false,
        }
    }

    /// Returns the response and the error of the record.
    pub(super) fn finish(mut self, end: AnswerEnd) -> (Option<LlmResponse>, Option<EventError>) {
        let content = &mut self.content;
        let rest = self.decoder.finish(|bytes| content.push(bytes));
        self.problem = self.problem.or(rest.err());
        let (unread, status) = (self.unread(), self.status);
        let (response, error) = match self.content {
            Content::Events(stream) => {
                let streamed = stream.finish(end != AnswerEnd::Complete);
                let error = match (streamed.is_complete, streamed.error, end) {
                    (true, message, _) => message.map(|message| http_error(status, message)),
                    (false, Some(message), _) | (false, None, AnswerEnd::Cut(message)) => Some(cut(message)),
                    // The end is not known if the answer was not read to its end.
                    (false, None, AnswerEnd::Complete) if unread.is_some() => None,
                    (false, None, AnswerEnd::Complete) => {
                        Some(cut("the stream ended without the event that ends an answer".to_owned()))
                    }
                };
                let is_empty_answer = streamed.response.is_none() && unread.is_some();
                (if is_empty_answer { Some(LlmResponse::default()) } else { streamed.response }, error)
            }
            Content::Document(document) => read_document(self.api, status, &document, end, unread.is_some()),
        };
        (response, error.or(unread))
    }

    /// Why the record does not have the whole answer.
    fn unread(&self) -> Option<EventError> {
        let message = match (self.decoder.unknown(), self.problem) {
            (Some(coding), _) => {
                format!("the answer is compressed with `{coding}`, which is not read: its content is not recorded")
            }
            (None, Some(DecodeError::TooLarge)) => {
                format!("the answer is larger than {} MiB, and the rest is not recorded", MAX_RECORDED_ANSWER >> 20)
            }
            (None, Some(DecodeError::Damaged)) => {
                "the compressed answer is damaged, and the rest is not recorded".to_owned()
            }
            (None, None) => return None,
        };
        Some(EventError { kind: RECORDING.to_owned(), status: None, message })
    }
}

fn read_document(
    api: Api,
    status: StatusCode,
    document: &[u8],
    end: AnswerEnd,
    is_unread: bool,
) -> (Option<LlmResponse>, Option<EventError>) {
    let parsed: Option<Value> = serde_json::from_slice(document).ok();
    let is_json = parsed.is_some();
    // A body of another form is kept as a text.
    let body = parsed.unwrap_or_else(|| match document {
        [] => Value::Null,
        document => Value::String(String::from_utf8_lossy(document).into_owned()),
    });
    let has_answer = is_unread || !document.is_empty() || end == AnswerEnd::Complete;
    let mut response = has_answer.then(|| response_from_body(api, body));
    if !status.is_success() {
        let message = error_message(document);
        let reason = || status.canonical_reason().unwrap_or("an error without a message").to_owned();
        return (response, Some(http_error(status, message.unwrap_or_else(reason))));
    }
    let error = match end {
        AnswerEnd::Cut(message) => {
            if let Some(response) = &mut response {
                response.finish_reason = None;
            }
            Some(cut(message))
        }
        AnswerEnd::Complete if is_json || is_unread => None,
        AnswerEnd::Complete => Some(http_error(status, "the answer is not JSON".to_owned())),
    };
    (response, error)
}

fn http_error(status: StatusCode, message: String) -> EventError {
    EventError { kind: "http".to_owned(), status: Some(status.as_u16()), message }
}

fn cut(message: String) -> EventError {
    EventError { kind: "cut".to_owned(), status: None, message }
}
