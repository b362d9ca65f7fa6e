//! `counterproof demo-agent`: serves the built-in agent, to try `counterproof run`.

use std::net::SocketAddr;
use std::sync::Arc;

use counterproof_artifact::Exit;
use counterproof_demo::Variant;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::command_error::CommandError;
use crate::signals::on_signal;
use crate::streams::Streams;

/// Serve the built-in demo agent.
///
/// The agent answers `POST /run-case` and `GET /health` until it is interrupted. It supports only the cases of
/// `counterproof demo`.
///
/// Exit code 0: interrupted, which is the normal end. 3: the address is not available.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787")]
    listen: SocketAddr,

    /// Version of the agent: `baseline` works correctly, `new` has planted faults
    #[arg(long, value_name = "baseline|new", default_value_t = Variant::Baseline)]
    variant: Variant,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let interrupted = Arc::new(Notify::new());
    let notify = interrupted.clone();
    on_signal(move || notify.notify_one()).map_err(CommandError::io)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::io)?;
    runtime.block_on(async {
        let listen_error = |error| {
            CommandError::io(format!("cannot listen on {}: {error}", args.listen))
                .hint("select a free port with `--listen 127.0.0.1:0`")
        };
        let listener = TcpListener::bind(args.listen).await.map_err(listen_error)?;
        // The port that the system chose, if the given one is 0.
        let address = listener.local_addr().map_err(listen_error)?;
        streams.print_line(format_args!("the {} agent listens on http://{address}", args.variant))?;
        tokio::select! {
            served = counterproof_demo::serve(listener, args.variant) => served.map_err(CommandError::io)?,
            () = interrupted.notified() => {}
        }
        Ok(Exit::Done)
    })
}
