//! Exit codes of the program. A test compares `docs/exit-codes.md` with this list.

use std::process::ExitCode;

/// An exit code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success; the gate, if any, passed.
    Done,
    /// Findings: the gate failed, an artifact is invalid, or an agent violates the contract.
    Findings,
    /// The command line or the configuration is wrong.
    Usage,
    /// Input or output could not be read or written.
    Io,
    /// Interrupted; finished work is on disk.
    Interrupted,
    /// The exit code of a command that this program ran. Any number is possible, also those of the codes above.
    Forwarded(u8),
}

impl Exit {
    /// All codes of the program itself, in ascending order.
    pub const ALL: [Exit; 5] = [Exit::Done, Exit::Findings, Exit::Usage, Exit::Io, Exit::Interrupted];

    /// The number that the process exits with.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::Io => 3,
            Exit::Interrupted => 4,
            Exit::Forwarded(code) => code,
        }
    }

    /// The meaning, as in `docs/exit-codes.md`.
    pub const fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "done, gate passed",
            Exit::Findings => "findings: the gate failed, an artifact is invalid, a contract is not met",
            Exit::Usage => "usage or configuration",
            Exit::Io => "input or output could not be read or written",
            Exit::Interrupted => "interrupted; what was finished is on disk",
            Exit::Forwarded(_) => "the exit code of the command that was started",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_list_the_same_codes_with_the_same_meaning() {
        let docs = include_str!("../../docs/exit-codes.md");
        let table: Vec<_> = docs.lines().take_while(|line| !line.contains("for each command")).collect();
        let rows = table.iter().filter(|line| line.starts_with("| ") && !line.contains("meaning"));
        let expected = Exit::ALL.map(|exit| format!("| {} | {} |", exit.code(), exit.meaning()));
        assert_eq!(rows.map(|row| (*row).to_owned()).collect::<Vec<_>>(), expected);
    }
}
