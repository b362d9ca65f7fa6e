//! One engine for all servers of a run that have the same policy.
//!
//! `guard run` decides about the calls of its shims and proxies over a socket in its private folder. Budgets, rates, breakers and
//! duplicates thus count the calls of all of them, and the calls of a run have one numbering. Messages are lines of JSON, each request
//! with one reply.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use counterproof_artifact::Sha256Digest;
use counterproof_ledger::event::{Action, BreakerTrip, DecisionRecord, RunSummary, Transport};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::identity::RunIdentity;
use crate::policy::{Args, CallFacts, CallOutcome, Decision, Engine, Policy, RunFacts};

const NAME: &str = "decisions";

/// How long a shim waits for a decision, which takes microseconds, before the run counts as gone.
const REPLY_TIME: Duration = Duration::from_secs(10);

/// How long a process that has connected may take to join.
const JOIN_TIME: Duration = Duration::from_secs(10);

/// Most servers of a run at once. An agent can connect any number of times.
const MAX_CONNECTIONS: usize = 256;

/// Most servers that are remembered, and their longest name in bytes.
const MAX_SERVERS: usize = 1000;
const MAX_NAME: usize = 512;

/// Most policies in one run.
const MAX_POLICIES: usize = 16;

/// Longest line in bytes. Arguments that are inspected have at most 1 MiB, of which JSON can escape each byte in six.
const MAX_LINE: u64 = 8 * 1024 * 1024;

/// A server that started in the run, and its policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedServer {
    pub server_name: String,
    pub policy_hash: String,
}

/// How a call of a server ended, for the sums of the run and for breakers that count errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndKind {
    Answered,
    Failed,
    Cancelled,
    Refused,
    Throttled,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Join(Box<Joining>),
    Decide(Box<SentCall>),
    /// Numbers a call that no rule decides.
    Number,
    End {
        server_name: String,
        tool_name: String,
        kind: EndKind,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Joining {
    server_name: String,
    /// The document of the policy; `null` for the policy that only observes.
    policy: Value,
    identity: RunIdentity,
}

#[derive(Debug, Serialize, Deserialize)]
struct SentCall {
    server_name: String,
    tool_name: String,
    /// `None` if the arguments are too large to be inspected.
    args: Option<Value>,
    args_hash: Sha256Digest,
    bytes_in: u64,
    transport: Transport,
}

#[derive(Debug, Serialize, Deserialize)]
struct Decided {
    number: u64,
    record: DecisionRecord,
    tags: Vec<String>,
    breaker: Option<BreakerTrip>,
}

/// The side of `guard run`.
#[derive(Debug)]
pub(super) struct DecisionServer(Arc<Mutex<SharedRun>>);

#[derive(Debug)]
struct SharedRun {
    /// One for each policy.
    engines: Vec<Engine>,
    started: Instant,
    servers: Vec<StartedServer>,
    /// Number of servers that could not join.
    refused: u64,
    calls: u64,
    summary: RunSummary,
    /// The decision that ended the run.
    terminated: Option<DecisionRecord>,
}

impl DecisionServer {
    /// Listens in the private folder of a run.
    pub(super) fn start(folder: &Utf8Path) -> io::Result<Self> {
        let listener = UnixListener::bind(folder.join(NAME))?;
        let run = SharedRun {
            engines: Vec::new(),
            started: Instant::now(),
            servers: Vec::new(),
            refused: 0,
            calls: 0,
            summary: RunSummary::default(),
            terminated: None,
        };
        let run = Arc::new(Mutex::new(run));
        let shared = run.clone();
        let connections = Arc::new(AtomicUsize::new(0));
        // Never joined: it waits for servers until the process ends.
        thread::Builder::new().name("decisions".to_owned()).spawn(move || {
            loop {
                let Ok((stream, _)) = listener.accept() else {
                    // Without descriptors for another connection; those that exist go on.
                    thread::sleep(Duration::from_millis(20));
                    continue;
                };
                if connections.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
                    lock(&shared).refused += 1;
                    continue;
                }
                connections.fetch_add(1, Ordering::Relaxed);
                let (run, connections) = (shared.clone(), connections.clone());
                let served = thread::Builder::new().name("server".to_owned()).spawn({
                    let connections = connections.clone();
                    move || {
                        // A connection that ends, or sends anything else, belongs to a server that has gone.
                        let _ = serve(stream, &run);
                        connections.fetch_sub(1, Ordering::Relaxed);
                    }
                });
                if served.is_err() {
                    connections.fetch_sub(1, Ordering::Relaxed);
                }
            }
        })?;
        Ok(Self(run))
    }

    pub(super) fn into_results(self) -> SharedResults {
        let mut run = lock(&self.0);
        SharedResults { servers: std::mem::take(&mut run.servers), refused: run.refused, calls: run.summary }
    }
}

/// What the servers of a run reported.
#[derive(Debug)]
pub(super) struct SharedResults {
    /// The servers that joined, at most a thousand.
    pub(super) servers: Vec<StartedServer>,
    /// Number of servers that could not join.
    pub(super) refused: u64,
    /// The sums over the calls that have ended, without a time.
    pub(super) calls: RunSummary,
}

fn lock(run: &Mutex<SharedRun>) -> MutexGuard<'_, SharedRun> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: UnixStream, run: &Mutex<SharedRun>) -> io::Result<()> {
    stream.set_read_timeout(Some(JOIN_TIME))?;
    let mut stream = BufReader::new(stream);
    let Some(Request::Join(joining)) = receive(&mut stream)? else { return Err(io::ErrorKind::InvalidData.into()) };
    let member = join(*joining, run).inspect_err(|_| lock(run).refused += 1)?;
    stream.get_ref().set_read_timeout(None)?;
    send(stream.get_mut(), serde_json::to_vec(&())?)?;
    while let Some(request) = receive(&mut stream)? {
        let mut run = lock(run);
        let reply = match request {
            Request::Join(_) => return Err(io::ErrorKind::InvalidData.into()),
            Request::Decide(call) => serde_json::to_vec(&run.decide(&member, &call)),
            Request::Number => serde_json::to_vec(&run.number()),
            Request::End { server_name, tool_name, kind } => {
                serde_json::to_vec(&run.end(&member, &server_name, &tool_name, kind))
            }
        };
        drop(run);
        send(stream.get_mut(), reply?)?;
    }
    Ok(())
}

/// A server that has joined.
struct Member {
    /// The place of its engine in [`SharedRun::engines`].
    engine: usize,
    /// Servers with one policy can have different identities, such as the client that starts them.
    facts: RunFacts,
}

fn join(joining: Joining, run: &Mutex<SharedRun>) -> io::Result<Member> {
    let Joining { server_name, policy, identity } = joining;
    if server_name.len() > MAX_NAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Before the lock: other servers must not wait for it.
    let policy = Policy::from_document(&policy).map_err(io::Error::other)?;
    let facts = RunFacts::new(&policy, &identity);
    let policy_hash = policy.reference.policy_hash.clone();
    let mut run = lock(run);
    let engine = match run.engines.iter().position(|engine| engine.policy().reference.policy_hash == policy_hash) {
        Some(engine) => engine,
        None if run.engines.len() < MAX_POLICIES => {
            run.engines.push(Engine::new(Arc::new(policy), &identity));
            run.engines.len() - 1
        }
        None => return Err(io::ErrorKind::QuotaExceeded.into()),
    };
    let server = StartedServer { server_name, policy_hash };
    if run.servers.len() < MAX_SERVERS && !run.servers.contains(&server) {
        run.servers.push(server);
    }
    Ok(Member { engine, facts })
}

impl SharedRun {
    fn number(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    fn decide(&mut self, member: &Member, call: &SentCall) -> Option<Decided> {
        let number = self.number();
        if let Some(record) = self.terminated.clone() {
            // After the end of the run, every call of every server gets the same answer.
            return Some(Decided { number, record, tags: Vec::new(), breaker: None });
        }
        let facts = CallFacts {
            server_name: &call.server_name,
            tool_name: &call.tool_name,
            args: call.args.as_ref().map_or(Args::TooLarge, Args::Inspected),
            args_hash: &call.args_hash,
            bytes_in: call.bytes_in,
            transport: call.transport,
        };
        let Decision { record, tags, breaker } =
            self.engines.get_mut(member.engine)?.decide_as(&member.facts, &facts, self.started.elapsed());
        if record.action == Action::TerminateRun {
            self.terminated = Some(record.clone());
        }
        Some(Decided { number, record, tags, breaker })
    }

    fn end(&mut self, member: &Member, server_name: &str, tool_name: &str, kind: EndKind) {
        let outcome = CallOutcome { server_name, tool_name, is_error: kind == EndKind::Failed };
        let elapsed = self.started.elapsed();
        if let Some(engine) = self.engines.get_mut(member.engine).filter(|_| member.facts.applies()) {
            engine.record_outcome(&outcome, elapsed);
        }
        count_end(&mut self.summary, kind);
    }
}

/// Adds the end of a call to the sums.
pub(crate) fn count_end(summary: &mut RunSummary, kind: EndKind) {
    summary.calls_total += 1;
    summary.errors_total += u64::from(kind != EndKind::Answered);
    match kind {
        EndKind::Answered | EndKind::Failed | EndKind::Cancelled => summary.calls_allowed += 1,
        EndKind::Refused => summary.calls_blocked += 1,
        EndKind::Throttled => summary.calls_throttled += 1,
    }
}

/// The side of a server: its connection to the run that it belongs to.
#[derive(Debug)]
pub struct RunConnection {
    stream: BufReader<UnixStream>,
}

impl RunConnection {
    /// Joins the run whose termination pipe this is. Fails if the run has ended.
    pub fn join(pipe: &Utf8Path, server_name: &str, policy: &Policy, identity: &RunIdentity) -> io::Result<Self> {
        let stream = UnixStream::connect(pipe.with_file_name(NAME))?;
        stream.set_read_timeout(Some(REPLY_TIME))?;
        stream.set_write_timeout(Some(REPLY_TIME))?;
        let mut connection = Self { stream: BufReader::new(stream) };
        let joining = Joining {
            server_name: server_name.to_owned(),
            policy: policy.document.as_ref().clone(),
            identity: identity.clone(),
        };
        connection.request::<()>(&Request::Join(Box::new(joining)))?;
        Ok(connection)
    }

    /// Decides about a call, and returns its number in the run.
    pub(crate) fn decide(&mut self, call: &CallFacts<'_>) -> io::Result<(Decision, u64)> {
        let args = match call.args {
            Args::Inspected(value) => Some(value.clone()),
            Args::TooLarge => None,
        };
        let call = SentCall {
            server_name: call.server_name.to_owned(),
            tool_name: call.tool_name.to_owned(),
            args,
            args_hash: *call.args_hash,
            bytes_in: call.bytes_in,
            transport: call.transport,
        };
        let decided: Decided = self.request(&Request::Decide(Box::new(call)))?;
        let Decided { number, record, tags, breaker } = decided;
        Ok((Decision { record, tags, breaker }, number))
    }

    pub(crate) fn number(&mut self) -> io::Result<u64> {
        self.request(&Request::Number)
    }

    pub(crate) fn end(&mut self, server_name: &str, tool_name: &str, kind: EndKind) -> io::Result<()> {
        let (server_name, tool_name) = (server_name.to_owned(), tool_name.to_owned());
        self.request(&Request::End { server_name, tool_name, kind })
    }

    fn request<T: DeserializeOwned>(&mut self, request: &Request) -> io::Result<T> {
        send(self.stream.get_mut(), serde_json::to_vec(request)?)?;
        // A late reply to this request must not be read as that to the next one.
        let reply = receive(&mut self.stream).and_then(|reply| reply.ok_or(io::ErrorKind::UnexpectedEof.into()));
        reply.inspect_err(|_: &io::Error| _ = self.stream.get_ref().shutdown(std::net::Shutdown::Both))
    }
}

fn send(stream: &mut UnixStream, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads a message; `None` at the end.
fn receive<T: DeserializeOwned>(stream: &mut BufReader<UnixStream>) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    stream.take(MAX_LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

#[cfg(test)]
mod tests {
    use counterproof_ledger::event::Action;

    use super::*;
    use crate::agent_run::TerminationPipe;

    const TWO_CALLS: &str = "
policy_id: p
version: '1'
mode: guardrails
rules:
  - {rule_id: end, kind: deny, match: {tool_name: {glob: [wipe]}}, effect: {action: TERMINATE_RUN, message: ended}}
  - {rule_id: two, kind: budget, match: {tool_name: {glob: ['*']}}, effect: {budget: {scope: run, limit_calls: 2}, message: enough}}
";

    struct Run {
        pipe: TerminationPipe,
        server: DecisionServer,
    }

    fn run() -> Run {
        let pipe = TerminationPipe::create().unwrap();
        let server = DecisionServer::start(pipe.folder()).unwrap();
        Run { pipe, server }
    }

    fn policy(text: &str) -> Policy {
        Policy::parse("policy.yaml".into(), text.as_bytes()).unwrap()
    }

    impl Run {
        /// Joins with an identity of its own, as servers of different clients do.
        fn join(&self, server_name: &str, policy: &Policy) -> RunConnection {
            let lookup = |name: &str| match name {
                "SUB_RUN_ID" => Some("r".to_owned()),
                "SUB_AGENT_ID" => Some(server_name.to_owned()),
                _ => None,
            };
            let identity = RunIdentity::from_environment(lookup).0;
            RunConnection::join(self.pipe.path(), server_name, policy, &identity).unwrap()
        }
    }

    fn decide(server: &mut RunConnection, tool_name: &str) -> (Action, u64) {
        let args = serde_json::json!({"amount": 1.1e-7, "text": "\u{1}\u{2028}"});
        let facts = CallFacts {
            server_name: "s",
            tool_name,
            args: Args::Inspected(&args),
            args_hash: &Sha256Digest::from_bytes(tool_name.as_bytes()),
            bytes_in: 1,
            transport: Transport::McpStdio,
        };
        let (decision, number) = server.decide(&facts).unwrap();
        (decision.record.action, number)
    }

    #[test]
    fn servers_with_one_policy_share_its_counters_and_all_share_the_numbers() {
        let run = run();
        let (mut one, mut two) = (run.join("one", &policy(TWO_CALLS)), run.join("two", &policy(TWO_CALLS)));
        let mut other = run.join("other", &Policy::observe_only());
        assert_eq!(decide(&mut one, "a"), (Action::Allow, 1));
        assert_eq!(decide(&mut other, "a"), (Action::Allow, 2));
        assert_eq!(other.number().unwrap(), 3);
        assert_eq!(decide(&mut two, "a"), (Action::Allow, 4));
        assert_eq!(decide(&mut one, "a"), (Action::Block, 5));
        assert_eq!(decide(&mut two, "b"), (Action::Block, 6));
        one.end("one", "a", EndKind::Answered).unwrap();
        one.end("one", "a", EndKind::Throttled).unwrap();
        two.end("two", "a", EndKind::Cancelled).unwrap();
        two.end("two", "a", EndKind::Refused).unwrap();
        let SharedResults { servers, refused, calls: sums } = run.server.into_results();
        assert_eq!(refused, 0);
        let names: Vec<&str> = servers.iter().map(|server| server.server_name.as_str()).collect();
        assert_eq!(names, ["one", "two", "other"]);
        assert_eq!((sums.calls_total, sums.calls_allowed, sums.calls_blocked), (4, 2, 1));
        assert_eq!((sums.calls_throttled, sums.errors_total), (1, 3));
    }

    #[test]
    fn the_end_of_the_run_by_a_rule_refuses_the_calls_of_every_server() {
        let run = run();
        let (mut one, mut two) = (run.join("one", &policy(TWO_CALLS)), run.join("two", &Policy::observe_only()));
        assert_eq!(decide(&mut two, "a").0, Action::Allow);
        assert_eq!(decide(&mut one, "wipe").0, Action::TerminateRun);
        assert_eq!(decide(&mut two, "a").0, Action::TerminateRun);
    }

    #[test]
    fn a_connection_that_sends_anything_else_is_closed_and_others_go_on() {
        let run = run();
        let socket = run.pipe.path().with_file_name(NAME);
        let not_joined = serde_json::to_string(&Request::Number).unwrap() + "\n";
        for bytes in ["\n", "{}\n", "x", &not_joined, "{\"join\":{}}\n"] {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.write_all(bytes.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut reply = Vec::new();
            stream.read_to_end(&mut reply).unwrap();
            assert_eq!(reply, b"", "{bytes}");
        }
        assert_eq!(decide(&mut run.join("one", &policy(TWO_CALLS)), "a"), (Action::Allow, 1));
    }

    #[test]
    fn policies_beyond_the_limit_cannot_join() {
        let run = run();
        let identity = RunIdentity::from_environment(|_| None).0;
        for number in 0..MAX_POLICIES {
            // Not `1`: that is the version of the policy that is refused.
            let version = if number == 1 { "x".to_owned() } else { number.to_string() };
            run.join("s", &policy(&TWO_CALLS.replace("'1'", &format!("'{version}'"))));
        }
        assert!(RunConnection::join(run.pipe.path(), "s", &policy(TWO_CALLS), &identity).is_err());
        assert!(
            RunConnection::join(run.pipe.path(), &"s".repeat(MAX_NAME + 1), &policy(TWO_CALLS), &identity).is_err()
        );
        run.join("s", &policy(&TWO_CALLS.replace("'1'", "'0'")));
        let SharedResults { servers, refused, .. } = run.server.into_results();
        assert_eq!((servers.len(), refused), (MAX_POLICIES, 2));
    }
}
