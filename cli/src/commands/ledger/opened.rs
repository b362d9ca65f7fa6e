//! The ledger of a command: its option, how it is opened, and the options about times.

use counterproof_artifact::with_causes;
use counterproof_ledger::line::sortable_time;
use counterproof_ledger::location::{LedgerLocation, StateFolder, real_path};
use counterproof_ledger::query::{RunRecord, find_run};
use counterproof_ledger::spool::{SpoolError, SpoolFolder, SpoolReplay, replay};
use counterproof_ledger::store::{EventStore, StoreError};
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

use crate::command_error::CommandError;
use crate::streams::Streams;
use crate::value_parsers::LedgerParser;

/// The options that all commands on a ledger have.
#[derive(Debug, clap::Args)]
pub(crate) struct PlaceArgs {
    /// Ledger: a SQLite file, or a `postgres://` URL [default: `$XDG_STATE_HOME/counterproof/ledger.db`]
    #[arg(long, global = true, value_name = "FILE", env = "COUNTERPROOF_LEDGER", hide_env_values = true, value_parser = LedgerParser)]
    ledger: Option<LedgerLocation>,

    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

impl PlaceArgs {
    pub(crate) fn place(&self) -> Result<Place, CommandError> {
        Ok(Place { is_json: self.json, ..Place::new(self.ledger.as_ref())? })
    }
}

/// The ledger that the arguments name, and how results are printed.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) location: LedgerLocation,
    pub(crate) spool: SpoolFolder,
    pub(crate) is_named: bool,
    pub(crate) is_json: bool,
}

impl Place {
    pub(crate) fn new(given: Option<&LedgerLocation>) -> Result<Self, CommandError> {
        let state = StateFolder::from_environment(|name| std::env::var(name).ok());
        let location = match (given, &state) {
            (Some(location), _) => location.clone(),
            (None, Ok(state)) => LedgerLocation::default_in(state),
            (None, Err(error)) => return Err(CommandError::usage(error.clone()).hint("pass a file with `--ledger`")),
        };
        // Only a database on another machine needs the folder.
        let spool = match (&location, state) {
            (LedgerLocation::PostgreSql(_), Err(error)) => return Err(CommandError::usage(error)),
            (location, state) => location.spool_folder(&state.unwrap_or_else(|_| StateFolder::new("."))),
        };
        Ok(Self { location, spool: SpoolFolder::new(spool), is_named: given.is_some(), is_json: false })
    }

    /// Returns the option ` --ledger …` for a command in a message, if the ledger is not the default.
    pub(crate) fn option(&self) -> String {
        if self.is_named {
            format!(" --ledger {}", crate::resume_command::quoted(&self.location.to_string()))
        } else {
            String::new()
        }
    }

    /// Returns the location for a command that is run later, in any folder.
    pub(crate) fn absolute(&self) -> String {
        let location = match &self.location {
            LedgerLocation::SqliteFile(path) => real_path(path).into_string(),
            LedgerLocation::PostgreSql(_) => self.location.to_string(),
        };
        crate::resume_command::quoted(&location).into_owned()
    }

    /// Opens the ledger for reading, and adds the events that processes left behind. Fails if there is no ledger.
    pub(crate) fn open(&self, streams: &mut Streams) -> Result<Box<dyn EventStore>, CommandError> {
        let mut store = self.open_store().map_err(failed)?;
        if store.is_read_only() {
            self.warn_read_only(streams);
            return Ok(store);
        }
        match replay(&self.spool, store.as_mut()) {
            Ok(replayed) => report(&replayed, self, streams),
            // The events stay where they are, and what the ledger has can be read.
            Err(error) => streams.warn(format_args!("events that wait were not added: {}", with_causes(&error))),
        }
        Ok(store)
    }

    /// Opens the ledger. Creates it if it does not exist and events wait for it.
    pub(crate) fn open_store(&self) -> Result<Box<dyn EventStore>, StoreError> {
        match counterproof_ledger::open(&self.location) {
            // Only then: a command that reads, such as `query`, must not leave an empty ledger.
            Err(StoreError::Missing { .. }) if self.spool.is_empty().is_ok_and(|is_empty| !is_empty) => {
                counterproof_ledger::open_or_create(&self.location)
            }
            opened => opened,
        }
    }

    /// Warns that the ledger may lack events, unless none wait for it.
    pub(super) fn warn_read_only(&self, streams: &mut Streams) {
        if !self.spool.is_empty().is_ok_and(|is_empty| is_empty) {
            streams.warn(format_args!(
                "the ledger `{}` can only be read; events that wait in `{}` are not added",
                self.location,
                self.spool.path()
            ));
        }
    }

    pub(crate) fn unknown_run(&self, run_id: &str) -> CommandError {
        CommandError::usage(format!("the ledger `{}` has no run `{run_id}`", self.location))
            .hint(format!("list the runs with `counterproof ledger runs{}`", self.option()))
    }

    pub(crate) fn find_run(&self, run_id: &str, store: &mut dyn EventStore) -> Result<RunRecord, CommandError> {
        find_run(store, run_id).map_err(failed)?.ok_or_else(|| self.unknown_run(run_id))
    }

    pub(super) fn open_or_create(&self) -> Result<Box<dyn EventStore>, CommandError> {
        counterproof_ledger::open_or_create(&self.location).map_err(failed)
    }
}

pub(super) fn report(replayed: &SpoolReplay, place: &Place, streams: &mut Streams) {
    let processes = if replayed.files == 1 { "process that was killed" } else { "processes that were killed" };
    match (replayed.files, replayed.added) {
        (0, _) => {}
        (files, 0) => streams.log(format_args!("the ledger already had all events of {files} {processes}")),
        (files, added) => streams.log(format_args!("events added: {added}, of {files} {processes}")),
    }
    if replayed.rejected > 0 {
        let (lines, option) = (replayed.rejected, place.option());
        streams.warn(format_args!(
            "invalid lines set aside: {lines}; `counterproof ledger doctor{option}` names their files"
        ));
    }
    for failure in &replayed.failures {
        streams.warn(with_causes(failure));
    }
}

pub(crate) fn failed(error: StoreError) -> CommandError {
    match error {
        StoreError::Missing { .. } => CommandError::io(error)
            .hint("record calls with `counterproof guard`, or name another ledger with `--ledger`"),
        StoreError::Newer { .. } => CommandError::usage(error).hint("use the newer version of this program"),
        StoreError::Url { .. } => CommandError::usage(error).hint("see docs/ledger.md for the parameters of a URL"),
        StoreError::Tls { .. } => CommandError::usage(error).hint("name a file of certificates with `SSL_CERT_FILE`"),
        StoreError::NotALedger { .. } => CommandError::usage(error).hint("name another file with `--ledger`"),
        error => CommandError::io(error),
    }
}

pub(super) fn failed_spool(error: SpoolError) -> CommandError {
    match error {
        SpoolError::Store(error) => failed(error),
        error => CommandError::io(error),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    At(Timestamp),
    Ago(SignedDuration),
}

/// Parses a time, such as `2026-01-31T12:00:00Z`, or a duration before now, such as `2h`.
pub(crate) fn since(text: &str) -> Result<Since, String> {
    if let Ok(time) = text.parse() {
        return Ok(Since::At(time));
    }
    age(text)
        .map(Since::Ago)
        .map_err(|_| "expected a time such as 2026-01-31T12:00:00Z, or a duration such as 2h".into())
}

/// Parses a duration in which a day has 24 hours.
pub(crate) fn age(text: &str) -> Result<SignedDuration, String> {
    let span: Option<Span> = text.parse().ok();
    let age = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    age.filter(SignedDuration::is_positive)
        .ok_or_else(|| "expected a number with a unit, such as 30d or 12h".to_owned())
}

impl Since {
    pub(crate) fn sortable(self, now: Timestamp) -> String {
        sortable_time(self.time(now))
    }

    pub(crate) fn time(self, now: Timestamp) -> Timestamp {
        match self {
            Since::At(time) => time,
            Since::Ago(age) => now.saturating_sub(age).unwrap_or(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_stated_as_such_or_as_a_duration_before_now() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let at = |text: &str| since(text).unwrap().sortable(now);
        assert_eq!(at("2026-01-30T10:00:00+02:00"), "2026-01-30T08:00:00.000000000Z");
        assert_eq!(at("2h"), "2026-01-31T10:00:00.000000000Z");
        assert_eq!(at("30d"), "2026-01-01T12:00:00.000000000Z");
        for text in ["", "soon", "-1h", "0s", "2026"] {
            assert!(since(text).is_err(), "{text:?}");
        }
    }
}
