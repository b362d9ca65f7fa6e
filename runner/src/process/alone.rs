//! A program where there are no process groups: it is killed when its time is over, and what it has started is left alone.

use std::io;
use std::process::Stdio;

use counterproof_safe_run::Ending;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Came, Watched};

/// How many pieces of output wait to be taken, each of one read.
const WAITING: usize = 4;

/// A program while it runs. When this is dropped, the program is killed.
#[derive(Debug)]
pub(super) struct Program {
    came: mpsc::Receiver<Came>,
    /// Holds the program, which is killed with it.
    watch: JoinHandle<()>,
}

impl Program {
    /// Starts a program, and gives the way to its standard input.
    pub(super) fn start(watched: &Watched) -> io::Result<(Self, ChildStdin)> {
        let mut command = Command::new(watched.command.program());
        command.args(watched.command.arguments());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (sender, came) = mpsc::channel(WAITING);
        let watch = tokio::spawn(async move {
            let out = pass_on(stdout, &sender, Came::Stdout);
            let err = pass_on(stderr, &sender, Came::Stderr);
            let ended = tokio::join!(out, err, child.wait()).2;
            let code = |status: std::process::ExitStatus| Ending::Exited(status.code().unwrap_or(-1));
            let _ = sender.send(Came::Ended(ended.map(code))).await;
        });
        Ok((Self { came, watch }, input))
    }

    /// What comes next.
    pub(super) async fn next(&mut self) -> Came {
        let gone = || Came::Ended(Err(io::ErrorKind::BrokenPipe.into()));
        self.came.recv().await.unwrap_or_else(gone)
    }

    /// Ends the program where it has not ended. What it still says is lost.
    pub(super) async fn end(mut self) {
        self.watch.abort();
        while self.came.recv().await.is_some() {}
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

async fn pass_on(pipe: Option<impl AsyncRead + Unpin>, sender: &mpsc::Sender<Came>, piece: fn(Vec<u8>) -> Came) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        let _ = sender.send(piece(buffer[..read].to_vec())).await;
    }
}
