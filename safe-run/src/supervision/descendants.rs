//! What is left below a process, and the end of it.

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, WaitOptions};

/// Kills and reaps all children of this process, and those that become its children by that, until there are none. Gives
/// how many there were besides `known`. Where the system cannot tell who they are, they are waited for no longer than they run.
pub(crate) fn kill_all(known: Option<Pid>) -> i32 {
    let mut killed = BTreeSet::new();
    loop {
        // Those that have ended.
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        let children = children();
        if children.is_empty() {
            break;
        }
        for child in children {
            // It is not reaped before the next round, so its number is still its own.
            let _ = rustix::process::kill_process(child, Signal::KILL);
            if Some(child) != known {
                killed.insert(child.as_raw_nonzero());
            }
        }
        if rustix::process::wait(WaitOptions::empty()).is_err() {
            break;
        }
    }
    i32::try_from(killed.len()).unwrap_or(i32::MAX)
}

/// The children of this process, of all of its threads.
#[cfg(target_os = "linux")]
fn children() -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let lists = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let mut children = Vec::new();
    for list in lists {
        // A kernel may be built without these lists.
        let Ok(list) = list else { return children_by_parent() };
        children.extend(list.split_ascii_whitespace().filter_map(pid));
    }
    children
}

/// The same from the list of all processes.
#[cfg(target_os = "linux")]
fn children_by_parent() -> Vec<Pid> {
    let this = std::process::id().to_string();
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let is_ours = |name: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{name}/stat")).unwrap_or_default();
        // The name of a program stands in parentheses and may hold anything; state and parent follow.
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

/// Elsewhere nobody adopts, and the group has been killed.
#[cfg(not(target_os = "linux"))]
fn children() -> Vec<Pid> {
    Vec::new()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn both_lists_of_children_name_a_child() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = pid(&child.id().to_string()).unwrap();
        assert!(children().contains(&id) && children_by_parent().contains(&id));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children_by_parent().contains(&id));
    }
}
