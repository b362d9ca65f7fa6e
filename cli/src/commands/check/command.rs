//! The entry of `check`: one check, or several with `--watch`.

use counterproof_artifact::Exit;
use counterproof_runner::Interrupt;

use super::args::{Args, Format};
use super::output;
use super::steps::check;
use super::watch::{self, Reload, Stop};
use crate::command_error::CommandError;
use crate::layers::Layers;
use crate::signals::on_signal;
use crate::streams::Streams;
use crate::working_copies::reject_bucket;

/// Makes a check, or several with `--watch`. `reload` reads the command line and the configuration again.
pub(crate) fn run(
    args: Box<Args>,
    layers: Layers,
    reload: Reload<'_>,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    if args.watch && args.format == Format::Json {
        let error =
            CommandError::usage("`--watch` prints a verdict for every change, and `--format json` is one document");
        return output::print_json(Err(error.hint("remove `--watch` or `--format json`")), streams);
    }
    reject_bucket(&args.out, "`--out` of `check`")?;
    let interrupt = Interrupt::default();
    let stop = interrupt.clone();
    if args.watch {
        let stop = Stop::default();
        let signal = stop.clone();
        on_signal(move || signal.trigger()).map_err(CommandError::io)?;
        return watch::run(args, layers, reload, &stop, streams);
    }
    on_signal(move || stop.trigger()).map_err(CommandError::io)?;
    let checked = if args.quiet {
        let err = std::mem::replace(&mut streams.err, Box::new(std::io::sink()));
        let checked = check(&args, &layers, &interrupt, None, streams);
        streams.err = err;
        checked
    } else {
        check(&args, &layers, &interrupt, None, streams)
    };
    if args.format == Format::Json {
        return output::print_json(checked, streams);
    }
    let Some(checked) = checked? else { return Ok(Exit::Interrupted) };
    output::print(&args, &checked, streams)?;
    Ok(checked.exit)
}
