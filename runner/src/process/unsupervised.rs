//! A program where there are no process groups: it is killed when its time is over, and what it has started is left alone.

use std::io;
use std::process::Stdio;

use counterproof_safe_run::Ending;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::agent_process::{Came, Watched};

/// The task that holds the program, which is killed with it.
pub(super) struct Leash(JoinHandle<()>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts a program that is killed when its leash is dropped, and gives the way to its standard input. What comes from it goes
/// to `sender`.
pub(super) fn start(watched: &Watched, sender: mpsc::Sender<Came>) -> io::Result<(Leash, ChildStdin)> {
    let mut command = Command::new(watched.command.program());
    command.args(watched.command.arguments());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let watch = tokio::spawn(async move {
        let out = pass_on(stdout, &sender, Came::Stdout);
        let err = pass_on(stderr, &sender, Came::Stderr);
        let ended = tokio::join!(out, err, child.wait()).2;
        let code = |status: std::process::ExitStatus| Ending::Exited(status.code().unwrap_or(-1));
        let _ = sender.send(Came::Ended(ended.map(code))).await;
    });
    Ok((Leash(watch), input))
}

async fn pass_on(pipe: Option<impl AsyncRead + Unpin>, sender: &mpsc::Sender<Came>, piece: fn(Vec<u8>) -> Came) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        let _ = sender.send(piece(buffer[..read].to_vec())).await;
    }
}
