//! The lines of a transcript, in the order in which its files have them.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use camino::Utf8Path;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::kinds::{Kind, classify, is_synthetic};
use super::tree::Agent;
use crate::import::imported::time;
use crate::import::lines::Record;
use crate::import::report::{Outcome, Tally};

/// The lines of all sessions that were read before, by their ids.
#[derive(Debug, Default)]
pub(crate) struct SeenLines {
    hasher: RandomState,
    /// The index of the session by the hash of a line's id: there may be millions of lines.
    sessions: HashMap<u64, u32>,
    names: Vec<String>,
}

impl SeenLines {
    fn session(&self, uuid: &str) -> Option<&str> {
        let index = self.sessions.get(&self.hasher.hash_one(uuid))?;
        self.names.get(*index as usize).map(String::as_str)
    }

    pub(super) fn add(&mut self, lines: &Lines) {
        let first = self.names.len();
        self.names.extend(lines.sessions.iter().cloned());
        for line in lines.all.iter().filter(|line| line.seen_in.is_none()) {
            if let (Some(uuid), Ok(index)) = (&line.uuid, u32::try_from(first + line.session)) {
                self.sessions.entry(self.hasher.hash_one(uuid.as_str())).or_insert(index);
            }
        }
    }
}

/// A line that is part of the tree or of a session.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) uuid: Option<String>,
    pub(super) parent: Option<String>,
    /// The id of the session that the line states.
    pub(super) session: usize,
    pub(super) agent: Agent,
    pub(super) time: Timestamp,
    pub(super) kind: Kind,
    /// The session of another file that has the same line.
    pub(super) seen_in: Option<String>,
    pub(super) value: Value,
}

/// All lines of a transcript, in the order in which they were read.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) all: Vec<Line>,
    pub(super) by_uuid: HashMap<String, usize>,
    /// The ids of sessions, and their indexes.
    pub(super) sessions: Vec<String>,
    pub(super) by_session: HashMap<String, usize>,
    /// Texts of lines that are not JSON, with the index of their session.
    pub(super) unreadable: Vec<(usize, Timestamp, String)>,
}

impl Lines {
    fn session(&mut self, id: &str) -> usize {
        if let Some(known) = self.by_session.get(id) {
            return *known;
        }
        self.sessions.push(id.to_owned());
        self.by_session.insert(id.to_owned(), self.sessions.len() - 1);
        self.sessions.len() - 1
    }
}

/// Adds the lines of one file.
pub(super) struct FileReader<'a> {
    lines: &'a mut Lines,
    seen: &'a SeenLines,
    tally: &'a mut Tally,
    /// The subagent of the file.
    agent: Option<String>,
    /// The session of lines that state none: that of the line before.
    session: Option<usize>,
    stem: String,
    time: Option<Timestamp>,
    /// The first line of this file.
    first: usize,
    first_unreadable: usize,
}

/// The session of lines before the first one that states a session.
const UNKNOWN_SESSION: usize = usize::MAX;

impl<'a> FileReader<'a> {
    pub(super) fn new(
        path: &Utf8Path,
        is_agent: bool,
        lines: &'a mut Lines,
        seen: &'a SeenLines,
        tally: &'a mut Tally,
    ) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_owned();
        let agent = is_agent.then(|| stem.strip_prefix("agent-").unwrap_or(&stem).to_owned());
        let (first, first_unreadable) = (lines.all.len(), lines.unreadable.len());
        Self { lines, seen, tally, agent, session: None, stem, time: None, first, first_unreadable }
    }

    pub(super) fn add(&mut self, record: Record) {
        let value = match record {
            Record::Value(value @ Value::Object(_)) => value,
            Record::Value(other) => return self.add_unreadable(other.to_string(), "(not an object)"),
            Record::Unreadable(text) => return self.add_unreadable(text, "(unreadable)"),
        };
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let (name, kind) = classify(&value);
        if let Some(time) = text("timestamp").and_then(time) {
            self.time = Some(time);
        }
        if let Some(id) = text("sessionId").filter(|id| !id.is_empty()) {
            self.session = Some(self.lines.session(id));
        }
        let uuid = text("uuid").map(str::to_owned);
        let seen_in = uuid.as_deref().and_then(|uuid| self.seen.session(uuid));
        // A fork begins with copies of the lines of its parent, which say so.
        let origin = value.pointer("/forkedFrom/sessionId").and_then(Value::as_str);
        let seen_in = seen_in.or(origin.filter(|origin| Some(*origin) != text("sessionId"))).map(str::to_owned);
        if let Some(uuid) = &uuid {
            if self.lines.by_uuid.contains_key(uuid) {
                // The line is part of the session already.
                return self.tally.count(&name, Outcome::LeftOut);
            }
            self.lines.by_uuid.insert(uuid.clone(), self.lines.all.len());
        }
        self.tally.count(&name, outcome(kind, seen_in.is_some(), &value));
        if kind == Kind::LeftOut && uuid.is_none() {
            return;
        }
        let parent = ["parentUuid", "logicalParentUuid"].iter().find_map(|name| text(name)).map(str::to_owned);
        let named = text("agentId").map(str::to_owned).or_else(|| self.agent.clone());
        let is_sidechain = value.get("isSidechain").and_then(Value::as_bool).unwrap_or(false);
        let agent = if is_sidechain || named.is_some() { Agent::Sub(named) } else { Agent::Main };
        // Of a line that is left out, only its place in the tree matters.
        let value = if kind == Kind::LeftOut { Value::Object(Map::new()) } else { value };
        let session = self.session.unwrap_or(UNKNOWN_SESSION);
        let time = self.time.unwrap_or(Timestamp::MIN);
        self.lines.all.push(Line { uuid, parent, session, agent, time, kind, seen_in, value });
    }

    fn add_unreadable(&mut self, text: String, kind: &str) {
        self.tally.count(kind, Outcome::Opaque);
        let session = self.session.unwrap_or(UNKNOWN_SESSION);
        self.lines.unreadable.push((session, self.time.unwrap_or(Timestamp::MIN), text));
    }

    /// Completes the lines before the first one with a session or a time.
    pub(super) fn finish(self) {
        let lines = &self.lines.all[self.first..];
        let first_time = lines.iter().map(|line| line.time).find(|time| *time > Timestamp::MIN);
        let unknown = lines
            .iter()
            .map(|line| line.session)
            .chain(self.lines.unreadable[self.first_unreadable..].iter().map(|(session, ..)| *session));
        let session = if unknown.into_iter().any(|session| session == UNKNOWN_SESSION) {
            let stated = lines.iter().map(|line| line.session).find(|session| *session != UNKNOWN_SESSION);
            stated.unwrap_or_else(|| self.lines.session(&self.stem))
        } else {
            UNKNOWN_SESSION
        };
        let complete = |of: &mut usize, time: &mut Timestamp| {
            if *of == UNKNOWN_SESSION {
                *of = session;
            }
            if *time == Timestamp::MIN {
                *time = first_time.unwrap_or(*time);
            }
        };
        for line in &mut self.lines.all[self.first..] {
            complete(&mut line.session, &mut line.time);
        }
        for (session, time, _) in &mut self.lines.unreadable[self.first_unreadable..] {
            complete(session, time);
        }
    }
}

fn outcome(kind: Kind, is_seen: bool, value: &Value) -> Outcome {
    match kind {
        Kind::Unknown => Outcome::Opaque,
        Kind::LeftOut => Outcome::LeftOut,
        // Part of the session that was read before.
        _ if is_seen => Outcome::LeftOut,
        Kind::Assistant if is_synthetic(value) => Outcome::LeftOut,
        _ => Outcome::Mapped,
    }
}
