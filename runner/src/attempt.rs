//! One attempt at a case: one request over a transport, and one exchange as the outcome.

use std::time::Duration;

use counterproof_store::write::WriteError;

use crate::agent::{Protocol, ProtocolAdapter};
use crate::body_sink::BodyDestination;
use crate::environment::{Clock, Moment};
use crate::exchange::Exchange;
use crate::failure::Reason;
use crate::http::{AgentClient, ClientError, Connection};
use crate::policy::Signal;
use crate::process::{AgentProgram, PersistentProgram};
use crate::secret::Secret;
use crate::settings::{AttemptLimits, Lifetime, Settings, Target};

/// How long to wait until files may be available again.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(50);

/// How long an attempt may wait for files.
const SHORTAGE_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct FinishedAttempt {
    /// The number of the attempt, counted from 1.
    pub(crate) number: u32,
    pub(crate) started: Moment,
    /// When the last byte was read.
    pub(crate) ended: Moment,
    pub(crate) exchange: Exchange,
}

/// What every attempt of a run shares.
pub(crate) struct AttemptContext<'run> {
    pub(crate) transport: &'run Transport,
    pub(crate) limits: AttemptLimits,
    pub(crate) destination: BodyDestination<'run>,
    pub(crate) clock: &'run dyn Clock,
}

impl AttemptContext<'_> {
    /// Makes attempt number `number` of the case. Errors come from the disk.
    pub(crate) async fn attempt(
        &self,
        number: u32,
        connection: Connection,
        request: &[u8],
    ) -> Result<FinishedAttempt, WriteError> {
        let Self { limits, clock, .. } = *self;
        let mut started = clock.read();
        let mut exchange = self.exchange(connection, request).await?;
        // Other cases are in flight and return their files when they end. A run that stays without files ends with an error.
        let mut shortage = Duration::ZERO;
        while exchange.lacks_files {
            if shortage > SHORTAGE_LIMIT {
                return Err(self.shortage_error());
            }
            tokio::time::sleep(SHORTAGE_PAUSE).await;
            shortage += SHORTAGE_PAUSE;
            started = clock.read();
            exchange = self.exchange(connection, request).await?;
        }
        // A stepping clock does not notice the time that a time-out took.
        if let Some(span) = timed_out_after(&exchange, limits) {
            clock.waited(span);
        }
        Ok(FinishedAttempt { number, started, ended: clock.read(), exchange })
    }

    async fn exchange(&self, connection: Connection, request: &[u8]) -> Result<Exchange, WriteError> {
        let Self { limits, destination, .. } = *self;
        match self.transport {
            Transport::Http(client) => client.exchange(request, connection, limits, destination).await,
            Transport::Program(program) => program.exchange(request, limits, destination).await,
            Transport::Persistent(program) => program.exchange(request, limits, destination).await,
        }
    }

    /// Without files, the run folder cannot be written either.
    fn shortage_error(&self) -> WriteError {
        let source = std::io::Error::other("too many open files, in this process or in the system");
        WriteError { path: self.destination.run.folder().to_owned(), source }
    }
}

impl FinishedAttempt {
    pub(crate) fn latency(&self) -> Duration {
        self.ended.elapsed.saturating_sub(self.started.elapsed)
    }

    /// Returns what the attempt indicates about the load of the agent.
    pub(crate) fn signal(&self) -> Signal {
        let fault = self.exchange.fault.as_ref();
        match &self.exchange.response {
            Some(response) if matches!(response.status.map(|status| status.as_u16()), Some(429 | 503)) => {
                Signal::Overloaded
            }
            // Any other response counts, failures included: its latency shows the load just as well.
            Some(_) => Signal::Responded(self.latency()),
            None if fault.is_some_and(|fault| fault.reason == Reason::ResponseTimeout) => Signal::Overloaded,
            None => Signal::NotReached,
        }
    }
}

fn timed_out_after(exchange: &Exchange, limits: AttemptLimits) -> Option<Duration> {
    let body_fault = exchange.response.as_ref().and_then(|response| response.body.fault.as_ref());
    exchange.fault.iter().chain(body_fault).find_map(|fault| match fault.reason {
        Reason::ResponseTimeout => Some(limits.first_byte),
        Reason::IdleTimeout => Some(limits.idle),
        Reason::BodyTimeout => Some(limits.timeout),
        _ => None,
    })
}

/// The transport of requests.
pub(crate) enum Transport {
    Http(Box<AgentClient>),
    /// A program that is started for each attempt.
    Program(AgentProgram),
    /// A program that answers many requests.
    Persistent(PersistentProgram),
}

impl Transport {
    /// Returns the texts that the transport sends in addition to the settings and that no output may contain.
    pub(crate) fn secrets(&self) -> &[Secret] {
        match self {
            Transport::Http(client) => client.secrets(),
            // Its arguments are in the settings, where `known_secrets` finds them.
            Transport::Program(_) | Transport::Persistent(_) => &[],
        }
    }

    /// Creates the transport of the protocol to the settings' target.
    pub(crate) fn new(settings: &Settings, protocol: &dyn ProtocolAdapter) -> Result<Self, ClientError> {
        Ok(match &settings.target {
            Target::Http(base) => Transport::Http(Box::new(AgentClient::new(settings, base, protocol)?)),
            Target::Command(command) => {
                let (command, supervisor) = (command.clone(), settings.supervisor.clone());
                // A program that reads text gets nothing but the text.
                let request_end: &[u8] = if settings.protocol == Protocol::Text { b"" } else { b"\n" };
                let program = AgentProgram { command, request_end, supervisor };
                match program.command.lifetime() {
                    Lifetime::Attempt => Transport::Program(program),
                    Lifetime::Run => Transport::Persistent(PersistentProgram::new(program)),
                }
            }
        })
    }
}
