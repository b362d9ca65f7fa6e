//! A shim without a server: a cassette answers.

use std::fs::File;
use std::io::{self, PipeReader};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use counterproof_ledger::event::{RunStatus, Termination};

use super::shim::spawn_signals;
use super::shim::{is_ending, open_calls_end};
use super::{ClientOutput, ClientPump};
use crate::cassette::Cassette;
use crate::mcp::PendingCalls;
use crate::session::{Problem, Session};

/// What a shim without a server runs.
pub struct ReplayOptions {
    pub cassette: Arc<Cassette>,
    pub session: Arc<Session>,
    /// The signals of this process, as [`counterproof_safe_run::Signals::take_from_process`] sends them.
    pub signals: PipeReader,
    pub on_terminated: Box<dyn Fn(&Termination)>,
}

/// Answers the client on the standard streams of this process until the client, a signal or a rule ends the run. Records the end of
/// the run.
pub fn run_replay(options: ReplayOptions) -> io::Result<RunStatus> {
    let ReplayOptions { cassette, session, signals, on_terminated } = options;
    let (sender, ended) = mpsc::channel();
    let client = ClientOutput::new(Box::new(File::from(rustix::stdio::stdout().try_clone_to_owned()?)));
    let input = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let (of_client, of_pump, replayed) = (sender.clone(), session.clone(), cassette.clone());
    thread::Builder::new().name("client".to_owned()).spawn(move || {
        let terminated = || {
            let _ = of_client.send(RunStatus::Terminated);
        };
        let pump = ClientPump {
            session: &of_pump,
            pending: &PendingCalls::default(),
            client: &client,
            cassette: Some(&cassette),
            on_terminated: &terminated,
        };
        // Notifications have no receiver.
        pump.run(input, io::sink());
        let _ = of_client.send(RunStatus::Succeeded);
    })?;
    spawn_signals(signals, move |signal| {
        if is_ending(signal) {
            let _ = sender.send(RunStatus::Cancelled);
        }
    })?;
    // Both threads are gone only if the process is about to end.
    let status = ended.recv().unwrap_or(RunStatus::Failed);
    if let Some(termination) = session.termination() {
        on_terminated(&termination);
    }
    if let Cassette::Replay(replay) = &*replayed
        && let Some(misses) = replay.misses()
    {
        session.report(Problem::CassetteMisses, &misses);
    }
    session.finish(status, open_calls_end(status));
    Ok(status)
}
