//! One try at a case: one request, one response or failure, within its time. What the response says is judged elsewhere.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::time::{Instant, timeout_at};

use crate::body::{self, Body};
use crate::client::AgentClient;
use crate::clock::{Clock, Moment};
use crate::fault::{Fault, Reason};
use crate::process::{self, Ended};
use crate::redact::Redactor;
use crate::transport::Transport;

/// How long a try may take, and how much of a body it reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) timeout: Duration,
    pub(crate) max_body_bytes: usize,
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
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The HTTP status; a program has none.
    pub(crate) status: Option<StatusCode>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// Makes one try. Secrets are taken out of everything that came in.
pub(crate) async fn attempt(
    number: u32,
    transport: &Transport,
    clock: &dyn Clock,
    bounds: Bounds,
    redactor: &Redactor,
    request: &[u8],
) -> Try {
    let started = clock.read();
    let (mut reply, program, fault) = match transport {
        Transport::Http(client) => {
            let (reply, fault) = over_http(client, bounds, request).await;
            (reply, None, fault)
        }
        Transport::Process(command) => {
            let (reply, program, fault) = process::ask(command, request, bounds).await;
            (reply, Some(program), fault)
        }
    };
    if let Some(reply) = &mut reply {
        reply.body.masked = redactor.mask(&mut reply.body.bytes);
    }
    let timed_out = |reason| matches!(reason, Reason::ResponseTimeout | Reason::BodyTimeout);
    let cut = reply.as_ref().and_then(|reply| reply.body.cut.as_ref());
    if fault.as_ref().into_iter().chain(cut).any(|fault| timed_out(fault.reason)) {
        clock.waited(bounds.timeout);
    }
    Try { number, started, ended: clock.read(), reply, program, fault }
}

async fn over_http(client: &AgentClient, bounds: Bounds, request: &[u8]) -> (Option<Reply>, Option<Fault>) {
    let deadline = Instant::now() + bounds.timeout;
    match timeout_at(deadline, client.post(request.to_vec())).await {
        Err(_elapsed) => (None, Some(Fault::new(Reason::ResponseTimeout, "the agent did not answer in time"))),
        Ok(Err(error)) => (None, Some(Fault::of_request(&error))),
        Ok(Ok(mut response)) => {
            let body = body::read(&mut response, bounds.max_body_bytes, deadline).await;
            let status = response.status();
            let fault = of_status(status).or_else(|| body.cut.clone());
            (Some(Reply { status: Some(status), headers: response.headers().clone(), body }), fault)
        }
    }
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
