//! A program on systems without process groups: it is killed at its time limit, but its child processes are not.

use std::io;
use std::process::Stdio;

use counterproof_safe_run::Ending;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::run_program::{AgentProgram, ProcessEvent};

/// The pipe to the standard input of a program.
pub(crate) type ProgramInput = ChildStdin;

/// Kills the program when it is dropped: aborting the task drops the child process.
pub(super) struct KillGuard(JoinHandle<()>);

impl Drop for KillGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts the program, and sends its events to `sender`. Returns the guard that kills it, and the pipe to its standard input.
pub(super) fn start(
    program: &AgentProgram,
    sender: mpsc::Sender<ProcessEvent>,
) -> io::Result<(KillGuard, ProgramInput)> {
    let mut command = Command::new(program.command.program());
    command.args(program.command.arguments());
    command.envs(program.command.variables().iter());
    if let Some(folder) = program.command.folder() {
        command.current_dir(folder);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let task = tokio::spawn(async move {
        // All at once: a program does not end while one of its pipes is full.
        let out = forward(stdout, &sender, ProcessEvent::Stdout);
        let err = forward(stderr, &sender, ProcessEvent::Stderr);
        let ended = tokio::join!(out, err, child.wait()).2;
        // A system without signals always has an exit code.
        let code = |status: std::process::ExitStatus| Ending::Exited(status.code().unwrap_or(-1));
        let _ = sender.send(ProcessEvent::Ended(ended.map(code))).await;
    });
    Ok((KillGuard(task), input))
}

async fn forward(
    pipe: Option<impl AsyncRead + Unpin>,
    sender: &mpsc::Sender<ProcessEvent>,
    piece: fn(Vec<u8>) -> ProcessEvent,
) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    // An error ends the output as its end does: the exit code decides what the output is worth.
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        let _ = sender.send(piece(buffer[..read].to_vec())).await;
    }
}
