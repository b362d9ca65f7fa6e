//! One try at a case: one request, one response or failure, within its time. What the response says is judged elsewhere.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::time::{Instant, timeout_at};

use crate::body::{self, Body};
use crate::client::AgentClient;
use crate::clock::{Clock, Moment};
use crate::fault::{Fault, Reason};

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
    /// The response, as far as there was one.
    pub(crate) reply: Option<Reply>,
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
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// Makes one try.
pub(crate) async fn attempt(
    number: u32,
    client: &AgentClient,
    clock: &dyn Clock,
    bounds: Bounds,
    request: Vec<u8>,
) -> Try {
    let started = clock.read();
    let deadline = Instant::now() + bounds.timeout;
    let (reply, fault) = match timeout_at(deadline, client.post(request)).await {
        Err(_elapsed) => (None, Some(Fault::new(Reason::ResponseTimeout, "the agent did not answer in time"))),
        Ok(Err(error)) => (None, Some(Fault::of_request(&error))),
        Ok(Ok(mut response)) => {
            let mut body = body::read(&mut response, bounds.max_body_bytes, deadline).await;
            body.masked = client.redactor.mask(&mut body.bytes);
            let status = response.status();
            let fault = of_status(status).or_else(|| body.cut.clone());
            (Some(Reply { status, headers: response.headers().clone(), body }), fault)
        }
    };
    let timed_out = |reason| matches!(reason, Reason::ResponseTimeout | Reason::BodyTimeout);
    let cut = reply.as_ref().and_then(|reply| reply.body.cut.as_ref());
    if fault.as_ref().into_iter().chain(cut).any(|fault| timed_out(fault.reason)) {
        clock.waited(bounds.timeout);
    }
    Try { number, started, ended: clock.read(), reply, fault }
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
