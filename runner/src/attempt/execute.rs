//! One try at a case: one request, one response or failure, within its time-outs. What the response says is judged elsewhere.

use std::time::Duration;

use counterproof_redaction::Redactor;
use counterproof_store::RunWriter;
use counterproof_store::write::WriteError;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::time::{Instant, timeout_at};

use crate::attempt::transport::Transport;
use crate::failure::fault::{Fault, Reason};
use crate::http::body::{self, Body, Reading};
use crate::http::client::AgentClient;
use crate::policy::concurrency::Signal;
use crate::process::agent_process::{self, Ended};
use crate::response::body_sink::{Held, Room};
use crate::settings::run_settings::ByteLimits;
use crate::system::clock::{Clock, Moment};

/// What is kept of a failure's body before it goes to disk, in bytes.
const FAILURE_MEMORY: usize = 64 * 1024;

/// How long a try may take, and how much of a body it reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// From the first packet to the last byte.
    pub(crate) timeout: Duration,
    /// From the first packet to the head of the response; never more than `timeout`.
    pub(crate) first_byte: Duration,
    /// Longest silence within the body.
    pub(crate) idle: Duration,
    pub(crate) limits: ByteLimits,
}

/// A try that came to its end.
#[derive(Debug)]
pub(crate) struct Try {
    /// Counted from 1.
    pub(crate) number: u32,
    pub(crate) started: Moment,
    /// Up to the last byte that was read.
    pub(crate) ended: Moment,
    /// The response, as far as there was one: of a program, what it wrote to its standard output.
    pub(crate) reply: Option<Reply>,
    /// How the program ended, where the agent is one.
    pub(crate) program: Option<Ended>,
    /// What went wrong, as far as the transport and the status tell.
    pub(crate) fault: Option<Fault>,
}

impl Try {
    pub(crate) fn latency(&self) -> Duration {
        self.ended.elapsed.saturating_sub(self.started.elapsed)
    }

    /// What the try says of the agent's load.
    pub(crate) fn signal(&self) -> Signal {
        let timed_out = matches!(&self.fault, Some(fault) if fault.reason == Reason::ResponseTimeout);
        match &self.reply {
            Some(reply) if matches!(reply.status.map(|status| status.as_u16()), Some(429 | 503)) => Signal::Overloaded,
            Some(_) => Signal::Responded(self.latency()),
            None if timed_out => Signal::Overloaded,
            None => Signal::Nothing,
        }
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The HTTP status; a program has none.
    pub(crate) status: Option<StatusCode>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// Makes one try; what is kept of a body goes to `run`. An error is one of the disk.
pub(crate) async fn attempt(
    number: u32,
    transport: &Transport,
    clock: &dyn Clock,
    bounds: Bounds,
    (run, redactor): (&RunWriter, &Redactor),
    request: &[u8],
) -> Result<Try, WriteError> {
    let started = clock.read();
    let (reply, program, fault) = match transport {
        Transport::Http(client) => {
            let (reply, fault) = over_http(client, bounds, (run, redactor), request).await?;
            (reply, None, fault)
        }
        Transport::Process(watched) => {
            let (reply, program, fault) = agent_process::ask(watched, request, bounds, (run, redactor)).await?;
            (reply, Some(program), fault)
        }
    };
    let cut = reply.as_ref().and_then(|reply| reply.body.cut.as_ref());
    let waited = fault.iter().chain(cut).find_map(|fault| match fault.reason {
        Reason::ResponseTimeout => Some(bounds.first_byte),
        Reason::IdleTimeout => Some(bounds.idle),
        Reason::BodyTimeout => Some(bounds.timeout),
        _ => None,
    });
    if let Some(span) = waited {
        clock.waited(span);
    }
    Ok(Try { number, started, ended: clock.read(), reply, program, fault })
}

async fn over_http(
    client: &AgentClient,
    bounds: Bounds,
    (run, redactor): (&RunWriter, &Redactor),
    request: &[u8],
) -> Result<(Option<Reply>, Option<Fault>), WriteError> {
    let start = Instant::now();
    Ok(match timeout_at(start + bounds.first_byte, client.post(request.to_vec())).await {
        Err(_elapsed) => (None, Some(Fault::new(Reason::ResponseTimeout, "the agent did not answer in time"))),
        Ok(Err(error)) => (None, Some(Fault::of_request(&error))),
        Ok(Ok(mut response)) => {
            let status = response.status();
            let room = bounds.room(status);
            let reading = Reading { run, redactor, room, deadline: start + bounds.timeout, idle: bounds.idle };
            let body = body::read(&mut response, &reading).await?;
            let fault = of_status(status).or_else(|| body.cut.clone()).or_else(|| too_long_an_answer(&body, room));
            (Some(Reply { status: Some(status), headers: response.headers().clone(), body }), fault)
        }
    })
}

impl Bounds {
    /// What may be an answer stays in memory, where it is parsed; nothing else needs to.
    fn room(&self, status: StatusCode) -> Room {
        let memory = if status.is_success() { self.limits.answer } else { FAILURE_MEMORY };
        Room { body: self.limits.body, memory, snippet: self.limits.snippet }
    }
}

/// The fault of an answer that did not fit into memory.
pub(crate) fn too_long_an_answer(body: &Body, room: Room) -> Option<Fault> {
    let message = || format!("the body is larger than the limit of {} bytes for answers", room.memory);
    matches!(body.held, Held::Disk { .. }).then(|| Fault::new(Reason::BodyTooLarge, message()))
}

/// A status other than 2xx is a failure, whatever the body says.
fn of_status(status: StatusCode) -> Option<Fault> {
    let reason = match status.as_u16() {
        200..=299 => return None,
        300..=399 => Reason::Redirect,
        429 => Reason::RateLimited,
        400..=499 => Reason::ClientError,
        500..=599 => Reason::ServerError,
        _ => Reason::UnexpectedStatus,
    };
    Some(Fault::new(reason, format!("the agent answered with status {}", status.as_u16())))
}
