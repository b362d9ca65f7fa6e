//! Adopts and kills the descendants of a process.

use std::collections::BTreeSet;
use std::io;

use rustix::process::{Pid, Signal, WaitOptions};

/// Kills and reaps all children of this process until there are none, including orphans that it adopts meanwhile. Returns their
/// number without `known`. On systems that cannot list children, it only reaps those that end by themselves.
pub(crate) fn kill_descendants(known: Option<Pid>) -> i32 {
    let mut killed = BTreeSet::new();
    loop {
        // Reap children that have already ended.
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        let children = children();
        if children.is_empty() {
            break;
        }
        for &child in &children {
            // The child is not reaped before the next round, so its id cannot have been reused.
            let _ = rustix::process::kill_process(child, Signal::KILL);
            if Some(child) != known {
                killed.insert(child.as_raw_nonzero());
            }
        }
        // Blocks until the killed children are gone. Their own children are adopted by then and found in the next round. Each child
        // is awaited by its id: if SIGCHLD is ignored, a wait for any child returns only when none is left, adopted ones included.
        for child in children {
            let _ = rustix::process::waitpid(Some(child), WaitOptions::empty());
        }
    }
    i32::try_from(killed.len()).unwrap_or(i32::MAX)
}

#[cfg(target_os = "linux")]
fn children() -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let mut children = Vec::new();
    for list in lists {
        // Kernels without CONFIG_PROC_CHILDREN have no such file.
        let Ok(list) = list else { return children_by_parent() };
        children.extend(list.split_ascii_whitespace().filter_map(pid));
    }
    children
}

#[cfg(target_os = "linux")]
fn children_by_parent() -> Vec<Pid> {
    let this = std::process::id().to_string();
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let is_ours = |name: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{name}/stat")).unwrap_or_default();
        // The program name is in parentheses and can contain any character; the state and the parent follow it.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1));
        parent == Some(&*this)
    };
    let names = processes.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| pid(name).is_some() && is_ours(name)).filter_map(|name| pid(&name)).collect()
}

#[cfg(target_os = "linux")]
fn pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

/// Other systems have no subreaper: there are no adopted children, and the process group was already killed.
#[cfg(not(target_os = "linux"))]
fn children() -> Vec<Pid> {
    Vec::new()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_list_children_find_a_child() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = pid(&child.id().to_string()).unwrap();
        assert!(children().contains(&id) && children_by_parent().contains(&id));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children_by_parent().contains(&id));
    }
}

/// Makes the children of a killed supervisor children of this process, which can then kill them.
#[cfg(target_os = "linux")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?)
}

/// Does nothing: other systems have no subreaper.
#[cfg(not(target_os = "linux"))]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}
