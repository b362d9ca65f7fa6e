//! Landlock: rights that the kernel takes from a thread and from all processes that it starts.
//!
//! The rights of a thread cannot be given back, so each command has a thread of its own, from which safe-run starts it.

use std::path::Path;

use counterproof_safe_run::{Command, Record};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use super::command::{OutputObserver, SandboxedCommand};
use super::hidden_paths::HiddenPaths;
use super::kind::SandboxError;

/// What a kernel must offer: all changes of files (Linux 6.2) and TCP (6.7). With less, bubblewrap is the better sandbox.
const REQUIRED_FILES: ABI = ABI::V3;
const REQUIRED_NETWORK: ABI = ABI::V4;
/// What is restricted where the kernel can: device commands, signals, abstract sockets, UDP, and sockets in the file system.
const NEWEST: ABI = ABI::V10;

/// Devices that commands may read and write.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

pub(super) fn is_available() -> bool {
    // On a thread of its own, because it cannot be undone. A container may refuse the call itself.
    let restricted = std::thread::spawn(|| handled().and_then(RulesetCreated::restrict_self).is_ok());
    restricted.join().unwrap_or(false)
}

/// Returns rules that allow nothing of what is restricted.
fn handled() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(REQUIRED_FILES))?
        .handle_access(AccessNet::from_all(REQUIRED_NETWORK))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()
}

fn rules(command: &SandboxedCommand) -> Result<RulesetCreated, RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let read = AccessFs::from_read(NEWEST);
    let mut rules = handled()?;
    let home = std::env::var_os("HOME");
    let mut visible = Vec::new();
    HiddenPaths::of_system(home.as_deref().map(Path::new)).visit_visible(&mut |path| visible.push(path.to_owned()));
    visible.extend(command.readable.iter().map(|path| path.as_std_path().to_owned()));
    // The supervisor of the command, which may be in a hidden folder.
    visible.extend(command.supervisor.clone());
    visible.extend(std::env::current_exe());
    for path in &visible {
        rules = allow(rules, path, read)?;
    }
    let device = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    for path in DEVICES {
        rules = allow(rules, Path::new(path), device)?;
    }
    for path in [&command.workspace, &command.private] {
        // Device files are of no use to a build, and a root user could reach disks with them.
        let access = all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
        rules = allow(rules, path.as_std_path(), access)?;
    }
    for port in &command.tcp_ports {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(rules)
}

/// Allows an access below a path. A path that cannot be opened stays forbidden.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    let (Ok(descriptor), Ok(metadata)) = (PathFd::new(path), path.metadata()) else { return Ok(rules) };
    let access = if metadata.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(descriptor, access))
}

pub(super) fn run(
    sandboxed: SandboxedCommand,
    command: Command,
    observer: &mut OutputObserver<'_>,
) -> Result<Record, SandboxError> {
    let rules = rules(&sandboxed).map_err(|error| SandboxError::Setup(error.to_string()))?;
    let command = Command { input: sandboxed.input, ..command };
    std::thread::scope(|scope| {
        let run = std::thread::Builder::new().name("sandbox".to_owned()).spawn_scoped(scope, || {
            rules.restrict_self().map_err(|error| SandboxError::Setup(error.to_string()))?;
            Ok(command.run(&mut |stream, at, bytes| observer(stream, at, bytes))?)
        });
        let run = run.map_err(|error| SandboxError::Setup(error.to_string()))?;
        run.join().unwrap_or_else(|_| Err(SandboxError::Setup("its thread panicked".to_owned())))
    })
}
