//! Adopts and kills the descendants of a process.

use std::collections::BTreeSet;
use std::io;
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

/// Kills and reaps all children of this process until there are none, including orphans that it adopts meanwhile. Returns their
/// number without `known`. On systems that cannot list children, it only reaps those that end by themselves.
pub(crate) fn kill_descendants(known: Option<Pid>) -> i32 {
    let mut killed = BTreeSet::new();
    loop {
        // Reap children that have already ended.
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        let children = children_of(rustix::process::getpid());
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

/// Kills all processes below a supervisor that does not answer, and then the supervisor, which the caller reaps. Returns their number
/// without the supervisor and the command.
#[cfg(target_os = "linux")]
pub(crate) fn kill_tree(supervisor: Pid, command: Option<Pid>) -> i32 {
    let end = Instant::now() + TREE_TIMEOUT;
    let mut killed = BTreeSet::new();
    // The supervisor is killed last: until then, it adopts the children of those that are killed, also while it is stopped.
    loop {
        let children = children_of(supervisor);
        let alive: Vec<_> = children.iter().copied().filter(|child| is_alive(*child)).collect();
        for &child in &alive {
            let _ = rustix::process::kill_process(child, Signal::KILL);
            if Some(child) != command {
                killed.insert(child.as_raw_nonzero());
            }
        }
        // A child that ended after it was listed may have left children. They are in a second list.
        let is_done = alive.is_empty() && children_of(supervisor) == children;
        if is_done || end <= Instant::now() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = rustix::process::kill_process(supervisor, Signal::KILL);
    i32::try_from(killed.len()).unwrap_or(i32::MAX)
}

/// How long the processes below a supervisor may take to end after KILL.
#[cfg(target_os = "linux")]
const TREE_TIMEOUT: Duration = Duration::from_secs(1);

/// Other systems cannot list children, and only the process group of the command is killed.
#[cfg(not(target_os = "linux"))]
pub(crate) fn kill_tree(supervisor: Pid, command: Option<Pid>) -> i32 {
    if let Some(command) = command {
        let _ = rustix::process::kill_process_group(command, Signal::KILL);
    }
    let _ = rustix::process::kill_process(supervisor, Signal::KILL);
    0
}

/// Returns true if a thread of a process runs. The first thread can end before the others.
#[cfg(target_os = "linux")]
fn is_alive(process: Pid) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return false };
    threads.flatten().any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        state_and_parent(&stat).is_some_and(|(state, _)| state != "Z" && state != "X")
    })
}

#[cfg(target_os = "linux")]
fn children_of(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let mut children = Vec::new();
    for list in lists {
        // Kernels without CONFIG_PROC_CHILDREN have no such file.
        let Ok(list) = list else { return children_by_parent(parent) };
        children.extend(list.split_ascii_whitespace().filter_map(pid));
    }
    children
}

#[cfg(target_os = "linux")]
fn children_by_parent(parent: Pid) -> Vec<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let processes = processes.flatten().filter_map(|entry| pid(entry.file_name().to_str()?));
    let is_child = |process: &Pid| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        state_and_parent(&stat).and_then(|(_, parent)| pid(parent)) == Some(parent)
    };
    processes.filter(is_child).collect()
}

/// Reads `/proc/<id>/stat`. The program name is in parentheses and can contain any character; the state and the parent follow it.
#[cfg(target_os = "linux")]
fn state_and_parent(stat: &str) -> Option<(&str, &str)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?, fields.next()?))
}

#[cfg(target_os = "linux")]
fn pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

/// Other systems have no subreaper: there are no adopted children, and the process group was already killed.
#[cfg(not(target_os = "linux"))]
fn children_of(_parent: Pid) -> Vec<Pid> {
    Vec::new()
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn both_ways_to_list_children_find_a_child() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let (this, id) = (rustix::process::getpid(), Pid::from_child(&child));
        assert!(children_of(this).contains(&id) && children_by_parent(this).contains(&id) && is_alive(id));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children_by_parent(this).contains(&id) && !is_alive(id));
    }

    #[test]
    fn a_stopped_process_is_killed_after_all_processes_below_it() {
        let script = "sleep 60 & setsid sleep 60 & echo ready; kill -STOP $$; echo continued";
        let mut parent = Command::new("sh");
        let mut parent = parent.args(["-c", script]).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let mut output = BufReader::new(parent.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(kill_tree(Pid::from_child(&parent), None), 2);
        assert!(!parent.wait().unwrap().success());
        line.clear();
        // The output ends only with the last process.
        output.read_to_string(&mut line).unwrap();
        assert_eq!(line, "");
    }
}
