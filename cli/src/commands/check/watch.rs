//! `check --watch`: runs the affected cases again whenever a file changes, until Ctrl-C.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::{CaseId, Exit};
use counterproof_cases::CaseSpec;
use counterproof_evaluator::text;
use counterproof_runner::{Interrupt, Urgency};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::args::Args;
use super::output;
use super::steps::check;
use crate::command_error::CommandError;
use crate::layers::Layers;
use crate::streams::Streams;

/// Reads the command line again, with a changed configuration.
pub(crate) type Reload<'a> = &'a dyn Fn() -> Result<(Box<Args>, Layers), CommandError>;

/// The interrupt of a watch, and that of the check in progress. An agent that ends interrupts its check, and not the watch.
#[derive(Clone, Default)]
pub(super) struct Stop {
    watch: Interrupt,
    check: Arc<Mutex<Interrupt>>,
}

impl Stop {
    /// Interrupts the watch and the check.
    pub(super) fn trigger(&self) {
        self.watch.trigger();
        self.check.lock().unwrap_or_else(PoisonError::into_inner).trigger();
    }

    fn is_reached(&self) -> bool {
        self.watch.reached(Urgency::Finish)
    }

    /// Returns the interrupt of a new check.
    fn of_check(&self) -> Interrupt {
        let interrupt = Interrupt::default();
        *self.check.lock().unwrap_or_else(PoisonError::into_inner) = interrupt.clone();
        // A signal before the exchange reached the check before.
        if self.is_reached() {
            interrupt.trigger();
        }
        interrupt
    }
}

/// How long no file may change before the cases run again: editors write a file in several steps.
const QUIET: Duration = Duration::from_millis(300);

/// How often an interrupt is noticed.
const POLL: Duration = Duration::from_millis(100);

/// What changed since the last check.
#[derive(Debug, Default)]
struct Changes {
    cases: bool,
    /// The configuration, or a path of `--watch-path`: all cases may be affected.
    all: bool,
}

/// Watches the files that a check depends on.
struct Watch {
    cases: Utf8PathBuf,
    config: Utf8PathBuf,
    others: Vec<Utf8PathBuf>,
    /// What a check writes itself.
    ignored: Vec<Utf8PathBuf>,
    events: Receiver<notify::Result<Event>>,
    _watcher: RecommendedWatcher,
}

pub(super) fn run(
    args: Box<Args>,
    layers: Layers,
    reload: Reload<'_>,
    stop: &Stop,
    streams: &mut Streams,
) -> Result<Exit, CommandError> {
    let mut watch = Watch::start(&args, &layers)?;
    let (mut args, mut layers) = (args, layers);
    let mut known = HashMap::new();
    let mut exit = Exit::Done;
    let mut changes = Changes { all: true, ..Changes::default() };
    loop {
        let cases = load(&args, streams);
        if let Some(cases) = &cases {
            let changed = (!changes.all).then(|| changed(&known, cases));
            if changed.as_ref().is_none_or(|changed| !changed.is_empty()) {
                exit = check_again(&args, &layers, &stop.of_check(), changed.as_ref(), streams).unwrap_or(exit);
            }
            known = cases.iter().map(|case| (case.id.clone(), case.clone())).collect();
        }
        if stop.is_reached() {
            return Ok(exit);
        }
        streams.log("watching for changes; press Ctrl-C to stop");
        let Some(next) = watch.wait(stop) else { return Ok(exit) };
        changes = next;
        if changes.all {
            // The new configuration may name other paths.
            let reloaded = reload().and_then(|(args, layers)| Ok((Watch::start(&args, &layers)?, args, layers)));
            match reloaded {
                Ok(reloaded) => (watch, args, layers) = reloaded,
                // The old configuration stays in force until the new one is valid.
                Err(error) => {
                    error.report(streams);
                    changes.all = false;
                }
            }
        }
    }
}

/// Makes one check, and prints it. Returns `None` if it was interrupted.
fn check_again(
    args: &Args,
    layers: &Layers,
    interrupt: &Interrupt,
    changed: Option<&HashSet<CaseId>>,
    streams: &mut Streams,
) -> Option<Exit> {
    let what = changed
        .map_or_else(|| "all cases".to_owned(), |changed| text::count(changed.len(), "changed case", "changed cases"));
    // A line that is easy to find above the verdict.
    streams.log(format_args!("\n──── running {what}"));
    let printed = check(args, layers, interrupt, changed, streams).and_then(|checked| match checked {
        Some(checked) => output::print(args, &checked, streams).map(|()| Some(checked.exit)),
        None => Ok(None),
    });
    match printed {
        Ok(exit) => exit,
        // The next change may correct the cause.
        Err(error) => Some(error.report(streams)),
    }
}

/// Loads the cases. Returns `None` and prints the problems if they are invalid: the next change may correct them.
fn load(args: &Args, streams: &mut Streams) -> Option<Vec<CaseSpec>> {
    let loaded = crate::commands::run::required_cases(args.cases.as_deref())
        .and_then(|path| crate::cases_file::load(path, streams));
    match loaded {
        Ok(suite) => Some(suite.cases),
        Err(error) => {
            error.report(streams);
            None
        }
    }
}

/// Returns the cases that are new or not as they were.
fn changed(known: &HashMap<CaseId, CaseSpec>, cases: &[CaseSpec]) -> HashSet<CaseId> {
    let is_changed = |case: &&CaseSpec| known.get(&case.id) != Some(case);
    cases.iter().filter(is_changed).map(|case| case.id.clone()).collect()
}

impl Watch {
    fn start(args: &Args, layers: &Layers) -> Result<Self, CommandError> {
        let (sender, events) = mpsc::channel();
        let mut watcher = notify::recommended_watcher(sender).map_err(CommandError::io)?;
        let cases = absolute(crate::commands::run::required_cases(args.cases.as_deref())?)?;
        let config = match layers.file.path.as_str() {
            "" => "counterproof.toml",
            path => path,
        };
        let config = absolute(Utf8Path::new(config))?;
        let others = args.watch_path.iter().map(|path| absolute(path)).collect::<Result<Vec<_>, _>>()?;
        let ignored = [&args.out, &args.report].map(|path| absolute_missing(path)).into_iter().collect();
        for path in [&cases, &config].into_iter().chain(&others) {
            // A file is watched through its folder: editors replace it, and a watch of the file would end.
            let (folder, mode) = if path.is_dir() {
                (path.as_path(), RecursiveMode::Recursive)
            } else {
                (path.parent().unwrap_or(path), RecursiveMode::NonRecursive)
            };
            watcher
                .watch(folder.as_std_path(), mode)
                .map_err(|error| CommandError::io(format!("cannot watch `{folder}`: {error}")))?;
        }
        Ok(Self { cases, config, others, ignored, events, _watcher: watcher })
    }

    /// Waits for a change, and until no file changes for a while. Returns `None` if the command was interrupted.
    fn wait(&self, stop: &Stop) -> Option<Changes> {
        let mut changes = Changes::default();
        loop {
            let span = if changes.cases || changes.all { QUIET } else { POLL };
            match self.events.recv_timeout(span) {
                Ok(Ok(event)) => self.note(&event, &mut changes),
                // Some events were lost.
                Ok(Err(_)) => changes.all = true,
                Err(RecvTimeoutError::Timeout) if changes.cases || changes.all => return Some(changes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            if stop.is_reached() {
                return None;
            }
        }
    }

    fn note(&self, event: &Event, changes: &mut Changes) {
        if matches!(event.kind, EventKind::Access(_)) {
            return;
        }
        for path in event.paths.iter().filter_map(|path| Utf8Path::from_path(path)) {
            let is_ignored = self.ignored.iter().any(|ignored| path.starts_with(ignored))
                || path.components().any(|part| part.as_str() == ".git");
            if is_ignored {
                continue;
            }
            changes.cases |= path.starts_with(&self.cases);
            changes.all |= path == self.config || self.others.iter().any(|other| path.starts_with(other));
        }
    }
}

/// Returns the path as events name it.
fn absolute(path: &Utf8Path) -> Result<Utf8PathBuf, CommandError> {
    match path.canonicalize_utf8() {
        Ok(path) => Ok(path),
        // The configuration need not exist yet.
        Err(_) if path.file_name() == Some("counterproof.toml") => Ok(absolute_missing(path)),
        Err(error) => Err(CommandError::io(format!("cannot watch `{path}`: {error}"))),
    }
}

fn absolute_missing(path: &Utf8Path) -> Utf8PathBuf {
    let here = Utf8Path::new(".").canonicalize_utf8().unwrap_or_default();
    path.canonicalize_utf8().unwrap_or_else(|_| here.join(path))
}
