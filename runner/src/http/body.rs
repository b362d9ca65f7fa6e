//! Response bodies: read up to a limit and up to a time, decoded and stored on the way. What they mean is not asked here.

use std::time::Duration;

use counterproof_redaction::Redactor;
use counterproof_store::RunWriter;
use counterproof_store::write::WriteError;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use tokio::time::{Instant, timeout_at};

use crate::failure::fault::{Fault, Reason};
use crate::http::decode::{self, Decoder};
use crate::response::body_sink::{Extent, Full, Held, Room, Store};

/// What was read of a body.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// The bytes, decoded where that was possible.
    pub(crate) held: Held,
    /// How many bytes there would have been, where that is known.
    pub(crate) total: Option<u64>,
    /// Why there is less here than there was, or why it is of no use.
    pub(crate) cut: Option<Fault>,
    /// Whether less is here than there was.
    pub(crate) extent: Extent,
    /// What a reader of the saved body should know.
    pub(crate) note: Option<&'static str>,
}

/// How a body is read.
pub(crate) struct Reading<'run> {
    pub(crate) run: &'run RunWriter,
    pub(crate) redactor: &'run Redactor,
    pub(crate) room: Room,
    /// When the attempt's time is over.
    pub(crate) deadline: Instant,
    /// Longest silence between two pieces.
    pub(crate) idle: Duration,
}

/// Reads the body of a response. An error is one of the disk; all that the agent does wrong is in the body's `cut`.
pub(crate) async fn read(response: &mut Response, reading: &Reading<'_>) -> Result<Body, WriteError> {
    let announced = header(response.headers(), CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
    let encoding = header(response.headers(), CONTENT_ENCODING.as_str()).unwrap_or_default().to_ascii_lowercase();
    let encoding = encoding.trim();
    let store = Store::new(reading.run, reading.redactor, reading.room);
    let first = match next(response, reading).await {
        Ok(Some(first)) => first,
        Ok(None) => return Ok(Body { total: Some(0), ..Body::default() }),
        Err(fault) => return Ok(Body { total: announced, cut: Some(fault), extent: Extent::Cut, ..Body::default() }),
    };
    let mut body = fill(response, first, encoding, store, reading).await?;
    if body.extent == Extent::Cut && encoding.is_empty() {
        body.total = announced;
    }
    Ok(body)
}

async fn fill(
    response: &mut Response,
    first: Vec<u8>,
    encoding: &str,
    mut store: Store<'_>,
    reading: &Reading<'_>,
) -> Result<Body, WriteError> {
    let mut cut = None;
    let mut undecodable;
    {
        let mut decoder = Decoder::new(encoding, first.first().copied().unwrap_or_default(), &mut store);
        let mut piece = first;
        loop {
            undecodable = decoder.push(&piece).err();
            if undecodable.is_some() || decoder.is_full() {
                break;
            }
            match next(response, reading).await {
                Ok(Some(next)) => piece = next,
                Ok(None) => break undecodable = decoder.finish().err(),
                Err(fault) => {
                    // Half of an encoded body is no fault of its own: it was cut.
                    undecodable = decoder.finish().err().filter(|undecodable| undecodable.raw.is_some());
                    break cut = Some(fault);
                }
            }
        }
    }
    let raw = undecodable.as_mut().and_then(|undecodable| undecodable.raw.take());
    let is_raw = raw.is_some();
    if let Some(raw) = raw {
        // Plain text under a wrong label is the usual case, and worth seeing whole.
        (store, cut) = as_it_came(response, raw, cut, reading).await;
    }
    let taken = store.taken() as u64;
    let is_cut = cut.is_some() || store.is_full() || (undecodable.is_some() && !is_raw);
    let extent = if is_cut { Extent::Cut } else { Extent::Whole };
    let (held, full) = store.finish(extent)?;
    let fault = match full {
        Some(full) if undecodable.is_none() => Some(over(&full, reading.room.body)),
        _ if undecodable.is_some() && cut.is_none() => {
            Some(Fault::new(Reason::UndecodableBody, "the body is not in the encoding that it claims"))
        }
        _ if !decode::is_known(encoding) && cut.is_none() => {
            Some(Fault::new(Reason::UnknownEncoding, "the body is in an encoding that the runner did not ask for"))
        }
        _ => cut,
    };
    let note = match encoding {
        "" | "identity" => None,
        _ if is_raw => Some("saved as it came, still encoded"),
        _ if !decode::is_known(encoding) => {
            Some("saved as it came, still encoded; what is in it could not be searched for secrets")
        }
        _ => Some("saved after decoding"),
    };
    Ok(Body { held, total: (!is_cut).then_some(taken), cut: fault, extent, note })
}

/// Reads the rest of a body that could not be decoded, and keeps all of it as it came.
async fn as_it_came<'run>(
    response: &mut Response,
    raw: Vec<u8>,
    cut: Option<Fault>,
    reading: &Reading<'run>,
) -> (Store<'run>, Option<Fault>) {
    let mut store = Store::new(reading.run, reading.redactor, reading.room);
    let mut cut = cut;
    {
        let mut plain = Decoder::new("", 0, &mut store);
        let mut piece = raw;
        while plain.push(&piece).is_ok() && !plain.is_full() && cut.is_none() {
            match next(response, reading).await {
                Ok(Some(next)) => piece = next,
                Ok(None) => break,
                Err(fault) => cut = Some(fault),
            }
        }
    }
    (store, cut)
}

/// The next piece of a body; `None` at its end.
async fn next(response: &mut Response, reading: &Reading<'_>) -> Result<Option<Vec<u8>>, Fault> {
    let silent = Instant::now() + reading.idle;
    match timeout_at(reading.deadline.min(silent), response.chunk()).await {
        Ok(Ok(piece)) => Ok(piece.map(Into::into)),
        Ok(Err(error)) => Err(Fault::of_body(&error)),
        Err(_) if silent < reading.deadline => {
            Err(Fault::new(Reason::IdleTimeout, "the agent fell silent within the body"))
        }
        Err(_) => Err(Fault::new(Reason::BodyTimeout, "the body did not end in time")),
    }
}

fn over(full: &Full, limit: usize) -> Fault {
    match full {
        Full::Ratio => {
            Fault::new(Reason::DecompressionBomb, "the body grows more than a hundredfold while it is decoded")
        }
        // An error of the disk never gets here: it ends the run.
        Full::Limit | Full::Disk(_) => {
            Fault::new(Reason::BodyTooLarge, format!("the body is larger than the limit of {limit} bytes"))
        }
    }
}

/// A header as text.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
