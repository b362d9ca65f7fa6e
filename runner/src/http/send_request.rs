//! One HTTP exchange with the agent: send the request, read the response within the limits, and classify the status.

use counterproof_store::write::WriteError;
use reqwest::StatusCode;
use tokio::time::{Instant, timeout_at};

use super::client::{AgentClient, Connection};
use super::connect_error::request_fault;
use super::read_body::BodyReader;
use crate::failure::{Fault, Reason};
use crate::received::{AgentResponse, BodyDestination, Exchange, SinkLimits, is_file_shortage};
use crate::settings::AttemptLimits;

/// How much of a failure's body is held in memory before it is streamed to disk, in bytes.
const FAILURE_MEMORY: usize = 64 * 1024;

impl AgentClient {
    /// Sends one request over the given connection and receives its response. Errors come from the disk.
    pub(crate) async fn exchange(
        &self,
        request: &[u8],
        connection: Connection,
        limits: AttemptLimits,
        destination: BodyDestination<'_>,
    ) -> Result<Exchange, WriteError> {
        let start = Instant::now();
        let mut response = match timeout_at(start + limits.first_byte, self.post(request, connection)).await {
            Err(_elapsed) => {
                let fault = Fault::new(Reason::ResponseTimeout, "the agent did not answer in time");
                return Ok(Exchange::failed(fault));
            }
            Ok(Err(error)) if is_file_shortage(&error) => return Ok(Exchange::without_files()),
            Ok(Err(error)) => return Ok(Exchange::failed(request_fault(&error, self.has_proxy()))),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        let sink_limits = sink_limits(limits, status);
        let deadline = start + limits.timeout;
        let reader = BodyReader { destination, limits: sink_limits, deadline, idle: limits.idle };
        let body = reader.read(&mut response).await?;
        // The status decides first: a failure status fails the attempt, no matter how its body arrived.
        let fault = proxy_status_fault(status, self.has_proxy())
            .or_else(|| status_fault(status))
            .or_else(|| body.fault.clone())
            .or_else(|| body.answer_size_fault(sink_limits));
        let headers = response.headers().clone();
        let response = AgentResponse { status: Some(status), headers, body };
        Ok(Exchange { response: Some(response), fault, ..Exchange::default() })
    }
}

/// Only a possible answer is held in memory completely, because it is parsed there.
fn sink_limits(limits: AttemptLimits, status: StatusCode) -> SinkLimits {
    let memory = if status.is_success() { limits.bytes.answer } else { FAILURE_MEMORY };
    SinkLimits { total: limits.bytes.body, memory, snippet: limits.bytes.snippet }
}

/// Returns the fault of a status that only a proxy sends.
fn proxy_status_fault(status: StatusCode, has_proxy: bool) -> Option<Fault> {
    (has_proxy && status == StatusCode::PROXY_AUTHENTICATION_REQUIRED)
        .then(|| Fault::new(Reason::ClientError, "the proxy answered with status 407: it requires credentials"))
}

/// Returns the fault of a status other than 2xx, which does not depend on the body.
fn status_fault(status: StatusCode) -> Option<Fault> {
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
