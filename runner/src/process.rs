//! An agent that is a program: started for one attempt, asked on its standard input, read from its standard output. What the
//! answer says is judged elsewhere.
//!
//! The program leads a process group of its own. Whatever is left of the group when the attempt ends is killed.

use std::io::Write as _;
use std::process::{ExitStatus, Stdio};

use counterproof_artifact::redact::Redactor;
use counterproof_artifact::store::RunWriter;
use counterproof_artifact::write::WriteError;
use reqwest::header::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout_at};

use crate::attempt::{Bounds, Reply, too_long_an_answer};
use crate::body::Body;
use crate::fault::{Fault, Reason};
use crate::store::{Extent, Room, Store};
use crate::target::AgentCommand;

/// How much of standard error is kept, in bytes.
const STDERR_LIMIT: usize = 64 * 1024;

/// How an attempt at a program ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// What it wrote to its standard error, up to a limit.
    pub(crate) stderr: Vec<u8>,
    /// Whether that is all of it.
    pub(crate) stderr_extent: Extent,
    /// `None` where it was never started or did not end by itself.
    pub(crate) status: Option<ExitStatus>,
}

/// Starts the program, writes the request, and reads the answer until the program ends or its time is over. An error is one of
/// the disk.
pub(crate) async fn ask(
    command: &AgentCommand,
    request: &[u8],
    bounds: Bounds,
    (run, redactor): (&RunWriter, &Redactor),
) -> Result<(Option<Reply>, Ended, Option<Fault>), WriteError> {
    let deadline = Instant::now() + bounds.timeout;
    let mut child = match start(command) {
        Ok(child) => child,
        Err(error) => {
            let message = format!("the agent's program could not be started: {}", error.kind());
            return Ok((None, Ended::default(), Some(Fault::new(Reason::AgentNotStarted, message))));
        }
    };
    let group = Group::of(&child);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // Whether it is an answer is known only when the program has ended, so all of it gets an answer's room.
    let room = Room { body: bounds.limits.body, memory: bounds.limits.answer, snippet: bounds.limits.snippet };
    let (mut output, mut ended, mut over) = (Store::new(run, redactor, room), Ended::default(), false);
    let talk = async {
        let write = async {
            if let Some(mut stdin) = stdin {
                // A program that answers without reading everything closes its end early, and that is its own affair.
                let _ = stdin.write_all(request).await;
                let _ = stdin.write_all(b"\n").await;
            }
        };
        let read = read_all(stdout, |piece| {
            if !over && output.write_all(piece).is_err() {
                over = true;
                group.kill();
            }
        });
        let listen = read_all(stderr, |piece| {
            let room = STDERR_LIMIT - ended.stderr.len();
            ended.stderr.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.len() > room {
                ended.stderr_extent = Extent::Cut;
            }
        });
        let end = async {
            let status = child.wait().await;
            // What the program left running may hold its output open for ever.
            group.kill();
            status
        };
        tokio::join!(write, read, listen, end).3
    };
    let fault = match timeout_at(deadline, talk).await {
        _ if over => {
            let message = format!("the output is larger than the limit of {} bytes", room.body);
            Some(Fault::new(Reason::BodyTooLarge, message))
        }
        Err(_elapsed) => Some(Fault::new(Reason::ResponseTimeout, "the agent did not answer in time")),
        Ok(Err(_)) => Some(Fault::new(Reason::AgentExit, "how the agent's program ended could not be told")),
        Ok(Ok(status)) => {
            ended.status = Some(status);
            of_status(status)
        }
    };
    // Output that was cut short has no known length; that of a program which ended by itself is whole.
    let cut = fault.clone().filter(|_| ended.status.is_none());
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

fn start(command: &AgentCommand) -> std::io::Result<Child> {
    let mut process = Command::new(command.program());
    process.args(command.arguments());
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    process.process_group(0);
    process.spawn()
}

/// An end other than by exit code 0 is a failure, whatever the output says.
fn of_status(status: ExitStatus) -> Option<Fault> {
    if status.success() {
        return None;
    }
    Some(match (status.code(), signal(status)) {
        (Some(code), _) => Fault::new(Reason::AgentExit, format!("the agent ended with exit code {code}")),
        (None, Some(signal)) => Fault::new(Reason::AgentSignal, format!("the agent was ended by signal {signal}")),
        (None, None) => Fault::new(Reason::AgentExit, "the agent ended without an exit code"),
    })
}

/// The signal that ended a program.
#[cfg(unix)]
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// Only Unix knows signals.
#[cfg(not(unix))]
pub(crate) fn signal(_status: ExitStatus) -> Option<i32> {
    None
}

/// Reads a pipe to its end, whatever is kept of it: so the program is not held up.
async fn read_all(pipe: Option<impl AsyncRead + Unpin>, mut keep: impl FnMut(&[u8])) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        keep(&buffer[..read]);
    }
}

/// The process group of a program. What is left of it when this is dropped is killed.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        Self { leader }
    }

    fn kill(&self) {
        if let Some(leader) = self.leader {
            // This fails where nobody is left, which is as well.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

/// Elsewhere the program itself is killed when its handle is dropped, and what it has started is left alone.
#[cfg(not(unix))]
impl Group {
    fn of(_child: &Child) -> Self {
        Self {}
    }

    fn kill(&self) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
