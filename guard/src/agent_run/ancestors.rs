//! The variables of the run that a process belongs to, read from the processes above it.
//!
//! A client may start its servers with a few variables of its own choice, as the Python SDK of MCP does. The agent above it still has
//! those of the run. A server whose parent has ended belongs to the supervisor of the run, which has them too.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use camino::Utf8Path;
use counterproof_store::read_file::{self, MAX_SMALL_BYTES};

use super::settings::{TERMINATION, VARIABLES};

/// Most processes between a server and its agent.
const MOST_ANCESTORS: usize = 64;

/// Returns the variables of the run that this process lacks; empty if it has those of a run, or if no process above it does.
pub fn missing_run_variables() -> Vec<(OsString, OsString)> {
    // A pipe that does not exist is that of another run, or of none.
    let is_set = |name: &str| {
        let is_usable = |value: &OsString| !value.is_empty() && (name != TERMINATION || Path::new(value).exists());
        std::env::var_os(name).is_some_and(|value| is_usable(&value))
    };
    let mut found = variables_above(Utf8Path::new("/proc"), std::os::unix::process::parent_id());
    let run = |variables: &[(OsString, OsString)]| {
        variables.iter().find(|(name, _)| name == TERMINATION).map(|(_, value)| value.clone())
    };
    if is_set(TERMINATION) && run(&found) != std::env::var_os(TERMINATION) {
        // A run of its own, such as one that an outer program has set.
        return Vec::new();
    }
    // An empty variable of a run that this process belongs to is missing too: without its policy, a server would be unguarded.
    found.retain(|(name, _)| !name.to_str().is_some_and(is_set));
    found
}

/// The variables of the nearest process of a run, from this one upwards. A process of another user cannot be read, and is passed over.
fn variables_above(processes: &Utf8Path, mut process: u32) -> Vec<(OsString, OsString)> {
    for _ in 0..MOST_ANCESTORS {
        let folder = processes.join(process.to_string());
        let environment = read_file::read(&folder.join("environ"), MAX_SMALL_BYTES).unwrap_or_default();
        let variables = run_variables(&environment);
        // The pipe is there as long as the run.
        let is_of_run = variables.iter().any(|(name, value)| name == TERMINATION && Path::new(value).exists());
        if is_of_run {
            return variables;
        }
        match parent(&folder) {
            Some(parent) if parent > 1 => process = parent,
            _ => break,
        }
    }
    Vec::new()
}

/// The variables of a run in the environment of a process: `NAME=value` with a NUL byte after each.
fn run_variables(environment: &[u8]) -> Vec<(OsString, OsString)> {
    let pairs = environment.split(|byte| *byte == 0).filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        Some((OsStr::from_bytes(&pair[..at]), OsStr::from_bytes(&pair[at + 1..])))
    });
    let is_of_run =
        |(name, value): &(&OsStr, &OsStr)| !value.is_empty() && VARIABLES.iter().any(|known| *name == *known);
    pairs.filter(is_of_run).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The parent of a process: the second field after its name, which is in brackets and can contain brackets and spaces.
fn parent(folder: &Utf8Path) -> Option<u32> {
    let stat = read_file::read(&folder.join("stat"), MAX_SMALL_BYTES).ok()?;
    let rest = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
    std::str::from_utf8(rest).ok()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder like `/proc` with these processes: number, parent, environment.
    fn processes(all: &[(u32, u32, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (process, parent, environment) in all {
            let folder = folder.path().join(process.to_string());
            fs::create_dir(&folder).unwrap();
            let write = |name: &str, text: String| {
                #[expect(clippy::disallowed_methods, reason = "a file of a test need not survive a crash")]
                fs::write(folder.join(name), text).unwrap();
            };
            write("stat", format!("{process} (a) (b c) S {parent} 1 1"));
            write("environ", environment.replace(' ', "\0"));
        }
        folder
    }

    #[test]
    fn the_nearest_process_of_a_run_has_the_variables() {
        let pipe = tempfile::NamedTempFile::new().unwrap();
        let pipe = pipe.path().to_str().unwrap();
        let inner = format!("PATH=/bin SUB_RUN_ID=inner COUNTERPROOF_TERMINATION={pipe} SUB_ENV=");
        let outer = format!("SUB_RUN_ID=outer COUNTERPROOF_TERMINATION={pipe}");
        let ended = "SUB_RUN_ID=ended COUNTERPROOF_TERMINATION=/no/such/pipe";
        let folder = processes(&[(9, 8, "HOME=/h"), (8, 7, ended), (7, 6, &inner), (6, 5, &outer), (5, 1, "A=b")]);
        let expected: Vec<(OsString, OsString)> =
            vec![("SUB_RUN_ID".into(), "inner".into()), ("COUNTERPROOF_TERMINATION".into(), pipe.into())];
        assert_eq!(variables_above(Utf8Path::from_path(folder.path()).unwrap(), 9), expected);
        assert_eq!(variables_above(Utf8Path::from_path(folder.path()).unwrap(), 5), []);
        assert_eq!(variables_above(Utf8Path::from_path(folder.path()).unwrap(), 4), [], "a process that has ended");
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let folder = processes(&[(9, 8, ""), (8, 9, "")]);
        assert_eq!(variables_above(Utf8Path::from_path(folder.path()).unwrap(), 9), []);
    }
}
