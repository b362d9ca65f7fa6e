//! `counterproof completions`: prints the completion script of a shell.

use clap_complete::Shell;
use counterproof_artifact::Exit;

use crate::command_error::CommandError;
use crate::streams::Streams;

/// Print the completion script of a shell.
///
/// bash: save it as `~/.local/share/bash-completion/completions/counterproof`. zsh: save it as `_counterproof` in a folder of
/// `$fpath`. fish: save it as `~/.config/fish/completions/counterproof.fish`. PowerShell: append it to the file `$PROFILE`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_enum, value_name = "SHELL")]
    shell: ShellName,
}

/// The shells whose scripts are tested.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

impl From<ShellName> for Shell {
    fn from(name: ShellName) -> Self {
        match name {
            ShellName::Bash => Shell::Bash,
            ShellName::Zsh => Shell::Zsh,
            ShellName::Fish => Shell::Fish,
            ShellName::Powershell => Shell::PowerShell,
        }
    }
}

pub(crate) fn run(args: &Args, program: &clap::Command, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(Shell::from(args.shell), &mut program.clone(), "counterproof", &mut script);
    streams.print_document(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
