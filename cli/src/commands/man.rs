//! `counterproof man`: writes the manual pages, one for each command.

use camino::{Utf8Path, Utf8PathBuf};
use clap_mangen::Man;
use counterproof_artifact::Exit;
use counterproof_store::write::{self, Durability};

use crate::command_error::CommandError;
use crate::streams::Streams;

/// Write the manual pages, one for each command, into a folder.
///
/// A page is called `counterproof-COMMAND.1`. Save the pages in `~/.local/share/man/man1` to read them with `man
/// counterproof-run`. Other files in the folder stay.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the pages; it is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: Utf8PathBuf,
}

pub(crate) fn run(args: &Args, program: &clap::Command, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut command = program.clone().disable_help_subcommand(true);
    // Fills in the full names and the options that all commands share.
    command.build();
    write::create_folder(&args.folder).map_err(CommandError::io)?;
    let pages = write_pages(&command, &args.folder)?;
    streams.print_line(format_args!("{pages} pages in {}", args.folder))?;
    Ok(Exit::Done)
}

/// Writes the page of a command and those of its subcommands. Returns their number.
fn write_pages(command: &clap::Command, folder: &Utf8Path) -> Result<usize, CommandError> {
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text).map_err(CommandError::io)?;
    let path = folder.join(page.get_filename());
    write::write(&path, &text, Durability::Cached).map_err(CommandError::io)?;
    let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    visible.map(|command| write_pages(command, folder)).try_fold(1, |pages, below| Ok(pages + below?))
}
