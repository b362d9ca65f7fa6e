//! An agent that is a program: started for one attempt, asked on its standard input, read from its standard output. What the
//! answer says is judged elsewhere, and how a program is started and ended is the business of one of the modules below.
//!
//! Nothing of a program is left when the attempt ends, where the system has process groups.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::pin::pin;

use counterproof_redaction::Redactor;
use counterproof_safe_run::Ending;
use counterproof_store::RunWriter;
use counterproof_store::write::WriteError;
use reqwest::header::HeaderMap;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::attempt::execute::{Bounds, Reply, too_long_an_answer};
use crate::failure::fault::{Fault, Reason};
use crate::http::body::Body;
use crate::response::body_sink::{Extent, Room, Store};
use crate::settings::target::AgentCommand;

#[cfg(unix)]
use super::supervised::{Leash, start};
#[cfg(not(unix))]
use super::unsupervised::{Leash, start};

/// How many pieces of output wait to be taken, each of one read.
const WAITING: usize = 4;

/// How much of standard error is kept, in bytes.
const STDERR_LIMIT: usize = 64 * 1024;

/// What comes from a program.
#[derive(Debug)]
pub(super) enum Came {
    /// A piece of its standard output.
    Stdout(Vec<u8>),
    /// A piece of its standard error.
    Stderr(Vec<u8>),
    /// How it ended, when nothing more comes; an error if it never started.
    Ended(io::Result<Ending>),
}

/// A program while it runs. When this is dropped, the program is killed.
struct Program {
    came: mpsc::Receiver<Came>,
    leash: Leash,
}

/// A program and who watches over it.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) command: AgentCommand,
    /// See [`Settings::supervisor`](crate::Settings::supervisor).
    #[cfg_attr(not(unix), expect(dead_code, reason = "nobody supervises there"))]
    pub(crate) supervisor: Option<PathBuf>,
}

/// How an attempt at a program ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// What it wrote to its standard error, up to a limit.
    pub(crate) stderr: Vec<u8>,
    /// Whether that is all of it.
    pub(crate) stderr_extent: Extent,
    /// `None` where it was never started or did not end by itself.
    pub(crate) ending: Option<Ending>,
}

/// What is kept of what a program writes.
struct Kept<'run> {
    output: Store<'run>,
    ended: Ended,
}

/// Starts the program, writes the request, and reads the answer until the program ends or its time is over. An error is one of
/// the disk.
pub(crate) async fn ask(
    watched: &Watched,
    request: &[u8],
    bounds: Bounds,
    (run, redactor): (&RunWriter, &Redactor),
) -> Result<(Option<Reply>, Ended, Option<Fault>), WriteError> {
    let deadline = Instant::now() + bounds.timeout;
    let (sender, came) = mpsc::channel(WAITING);
    let (mut program, input) = match start(watched, sender) {
        Ok((leash, input)) => (Program { came, leash }, input),
        Err(error) => return Ok((None, Ended::default(), Some(not_started(&error)))),
    };
    // Whether it is an answer is known only when the program has ended, so all of it gets an answer's room.
    let room = Room { body: bounds.limits.body, memory: bounds.limits.answer, snippet: bounds.limits.snippet };
    let mut kept = Kept { output: Store::new(run, redactor, room), ended: Ended::default() };
    let fault = match timeout_at(deadline, kept.talk(&mut program, input, request)).await {
        Ok(Some(Ok(ending))) => {
            kept.ended.ending = Some(ending);
            of_ending(ending)
        }
        Ok(Some(Err(error))) => return Ok((None, Ended::default(), Some(not_started(&error)))),
        Ok(None) => {
            let message = format!("the output is larger than the limit of {} bytes", room.body);
            Some(Fault::new(Reason::BodyTooLarge, message))
        }
        Err(_elapsed) => Some(Fault::new(Reason::ResponseTimeout, "the agent did not answer in time")),
    };
    program.end().await;
    let Kept { output, mut ended } = kept;
    // Output that was cut short has no known length; that of a program which ended by itself is whole.
    let cut = fault.clone().filter(|_| ended.ending.is_none());
    let extent = if cut.is_some() { Extent::Cut } else { Extent::Whole };
    if cut.is_some() {
        ended.stderr_extent = Extent::Cut;
    }
    let total = cut.is_none().then_some(output.taken() as u64);
    let (held, _full) = output.finish(extent)?;
    let body = Body { held, total, cut, extent, ..Body::default() };
    let fault = fault.or_else(|| too_long_an_answer(&body, room));
    Ok((Some(Reply { status: None, headers: HeaderMap::new(), body }), ended, fault))
}

impl Program {
    /// What comes next.
    async fn next(&mut self) -> Came {
        self.came.recv().await.unwrap_or_else(|| Came::Ended(Err(io::ErrorKind::BrokenPipe.into())))
    }

    /// Ends the program where it has not ended, and waits until nothing is left of it. What it still says is lost.
    async fn end(mut self) {
        drop(self.leash);
        while self.came.recv().await.is_some() {}
    }
}

impl Kept<'_> {
    /// Writes the request while it reads what comes, to the end; `None` where more came than is taken.
    async fn talk(
        &mut self,
        program: &mut Program,
        input: impl AsyncWrite + Unpin,
        request: &[u8],
    ) -> Option<io::Result<Ending>> {
        let mut writing = pin!(write(input, request));
        let mut is_written = false;
        loop {
            tokio::select! {
                () = &mut writing, if !is_written => is_written = true,
                came = program.next() => match came {
                    Came::Stdout(piece) => self.output.write_all(&piece).ok()?,
                    Came::Stderr(piece) => self.ended.keep_stderr(&piece),
                    Came::Ended(ending) => return Some(ending),
                },
            }
        }
    }
}

impl Ended {
    fn keep_stderr(&mut self, piece: &[u8]) {
        let room = STDERR_LIMIT - self.stderr.len();
        self.stderr.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            self.stderr_extent = Extent::Cut;
        }
    }
}

/// A program that answers without reading everything closes its end early, and that is its own affair.
async fn write(mut input: impl AsyncWrite + Unpin, request: &[u8]) {
    if input.write_all(request).await.is_ok() {
        let _ = input.write_all(b"\n").await;
    }
}

fn not_started(error: &io::Error) -> Fault {
    Fault::new(Reason::AgentNotStarted, format!("the agent's program could not be started: {error}"))
}

/// An end other than by exit code 0 is a failure, whatever the output says.
fn of_ending(ending: Ending) -> Option<Fault> {
    match ending {
        Ending::Exited(0) => None,
        Ending::Exited(code) => Some(Fault::new(Reason::AgentExit, format!("the agent ended with exit code {code}"))),
        Ending::Killed(signal) => {
            Some(Fault::new(Reason::AgentSignal, format!("the agent was ended by signal {signal}")))
        }
    }
}
