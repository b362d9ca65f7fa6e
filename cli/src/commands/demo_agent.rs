//! `counterproof demo-agent`: the built-in agent alone, for trying `counterproof run` against it.

use std::net::SocketAddr;
use std::sync::Arc;

use counterproof_artifact::Exit;
use counterproof_demo::Variant;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::command_error::CommandError;
use crate::signals::on_signal;
use crate::streams::Streams;

/// Serve the built-in agent.
///
/// It answers `POST /run-case` and `GET /health` until it is interrupted, which is its normal end. It knows the cases of
/// `counterproof demo`, and nothing else.
///
/// Exit code 0: it was interrupted. 3: it could not listen.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787")]
    listen: SocketAddr,

    /// Which version of the agent: as it should be, or after a careless release
    #[arg(long, value_name = "baseline|new", default_value_t = Variant::Baseline)]
    variant: Variant,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let interrupted = Arc::new(Notify::new());
    let notify = interrupted.clone();
    on_signal(move || notify.notify_one()).map_err(CommandError::io)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CommandError::io)?;
    runtime.block_on(async {
        let listen_error = |error| {
            CommandError::io(format!("failed to listen on {}: {error}", args.listen))
                .hint("`--listen 127.0.0.1:0` takes a free port")
        };
        let listener = TcpListener::bind(args.listen).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        streams.say(format_args!("the {} agent listens on http://{address}", args.variant))?;
        tokio::select! {
            served = counterproof_demo::serve(listener, args.variant) => served.map_err(CommandError::io)?,
            () = interrupted.notified() => {}
        }
        Ok(Exit::Done)
    })
}
