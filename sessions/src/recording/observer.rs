//! A thread that looks for changes and commands at the start of each turn, while the model works.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::with_causes;
use jiff::Timestamp;

use crate::observe::{WorkingTree, recorded_commands, remove_recorded};
use crate::recorder::SessionRecorder;

/// Looks when it is asked to, and once more at the end.
pub(super) struct Observer {
    turns: Sender<()>,
    thread: JoinHandle<u64>,
}

impl Observer {
    /// `commands` is the folder in which `safe-run` records the commands of the agent.
    pub(super) fn start(
        recorder: Arc<SessionRecorder>,
        tree: Option<WorkingTree>,
        commands: Utf8PathBuf,
        warn: impl Fn(&str) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (turns, received) = mpsc::channel();
        let observe = move || observe(&recorder, tree, &commands, &received, &warn);
        let thread = thread::Builder::new().name("observer".to_owned()).spawn(observe)?;
        Ok(Self { turns, thread })
    }

    /// Asks for a look, and does not wait for it.
    pub(super) fn turn_begins(&self) {
        let _ = self.turns.send(());
    }

    /// Looks a last time. Returns the number of commands that were seen.
    pub(super) fn finish(self) -> u64 {
        drop(self.turns);
        self.thread.join().unwrap_or_default()
    }
}

fn observe(
    recorder: &SessionRecorder,
    mut tree: Option<WorkingTree>,
    commands: &Utf8Path,
    turns: &Receiver<()>,
    warn: &dyn Fn(&str),
) -> u64 {
    let mut commands_seen = 0;
    let mut has_warned = false;
    loop {
        let is_last = turns.recv().is_err();
        // One look for all turns that began in the meantime.
        while turns.try_recv().is_ok() {}
        let (files, mut events): (Vec<_>, Vec<_>) = recorded_commands(commands).into_iter().unzip();
        let count = events.len() as u64;
        let mut problem = None;
        if let Some(tree) = &mut tree {
            match tree.changes(Timestamp::now()) {
                Ok(changes) => events.extend(changes),
                Err(error) => problem = Some(with_causes(&error)),
            }
        }
        if !events.is_empty() {
            match recorder.record(events) {
                Ok(()) => {
                    commands_seen += count;
                    remove_recorded(&files);
                }
                Err(error) => problem = Some(with_causes(&error)),
            }
        }
        if let Some(problem) = problem
            && !std::mem::replace(&mut has_warned, true)
        {
            warn(&format!("some changes of files or commands are not recorded: {problem}"));
        }
        if is_last {
            return commands_seen;
        }
    }
}
