//! Landlock: rights that the kernel takes from a process and from all processes that it starts.

use std::path::Path;

use camino::Utf8PathBuf;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities};

use serde::{Deserialize, Serialize};

use super::hidden_paths::HiddenPaths;

/// What a command may use besides what all may.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CommandAccess {
    pub(super) writable: Vec<Utf8PathBuf>,
    pub(super) readable: Vec<Utf8PathBuf>,
    pub(super) tcp_ports: Vec<u16>,
}

/// What a kernel must offer: all changes of files (Linux 6.2) and TCP (6.7). With less, bubblewrap is the better sandbox.
const REQUIRED_FILES: ABI = ABI::V3;
const REQUIRED_NETWORK: ABI = ABI::V4;
/// What is restricted where the kernel can: device commands, signals, abstract sockets, UDP, and sockets in the file system.
const NEWEST: ABI = ABI::V10;

/// Devices that commands may read and write.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// What a root user needs to build as another user would. The others lead around Landlock: to raw sockets and devices, and
/// to the environment of processes outside, which may have the key of the model.
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

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

fn rules(access: &CommandAccess) -> Result<RulesetCreated, RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let read = AccessFs::from_read(NEWEST);
    let mut rules = handled()?;
    let home = std::env::var_os("HOME");
    let mut visible = Vec::new();
    HiddenPaths::of_system(home.as_deref().map(Path::new)).visit_visible(&mut |path| visible.push(path.to_owned()));
    for path in visible.iter().map(|path| &**path).chain(access.readable.iter().map(|path| path.as_std_path())) {
        rules = allow(rules, path, read)?;
    }
    let device = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    for path in DEVICES {
        rules = allow(rules, Path::new(path), device)?;
    }
    // Device files are of no use to a build, and a root user could reach disks with them.
    let writable = all & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    for path in &access.writable {
        rules = allow(rules, path.as_std_path(), writable)?;
    }
    for port in &access.tcp_ports {
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

/// Takes rights from this thread for good.
pub(super) fn restrict(access: &CommandAccess) -> Result<(), RulesetError> {
    let rules = rules(access)?;
    drop_capabilities();
    rules.restrict_self().map(|_| ())
}

/// Limits what programs that this thread starts get as root. Other users have no capabilities, and may not remove them.
fn drop_capabilities() {
    for (_, capability) in CapabilitySet::all().difference(KEPT_CAPABILITIES).iter_names() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    if let Ok(mut sets) = capabilities(None) {
        sets.inheritable = CapabilitySet::empty();
        let _ = set_capabilities(None, sets);
    }
}
