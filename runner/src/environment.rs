//! What the runner takes from the system, passed in by the caller: time, randomness, the checkout and the stop handle.

use std::hash::{BuildHasher, RandomState};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use counterproof_safe_run::Cancellation;
use jiff::{SignedDuration, Timestamp};

use crate::policy::Spending;

/// The clock, randomness, checkout, stop handle and spending of a run.
pub struct Environment {
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The source of the random part of waits.
    pub jitter: Jitter,
    /// The checked-out commit, for `run.json`.
    pub checkout: Option<Checkout>,
    /// The handle that stops the run.
    pub interrupt: Interrupt,
    /// What the answers used so far. Runs that share it share the limits on it.
    pub spending: Spending,
}

impl Environment {
    /// Creates an environment with the real clock and real randomness, and without a checkout.
    pub fn from_system() -> Self {
        Self {
            clock: Arc::new(SystemClock::start()),
            jitter: Jitter::from_system(),
            checkout: None,
            interrupt: Interrupt::default(),
            spending: Spending::default(),
        }
    }
}

/// One reading of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time of day.
    pub at: Timestamp,
    /// Time since the clock was created. Unlike the time of day, it never decreases.
    pub elapsed: Duration,
}

impl Moment {
    /// Returns the time of day in ISO 8601, in UTC with milliseconds.
    pub fn iso(&self) -> String {
        format!("{:.3}", self.at)
    }
}

/// A source of time.
pub trait Clock: Send + Sync {
    /// Reads the clock once.
    fn read(&self) -> Moment;

    /// Notifies the clock that the runner waited with a timer. A real clock advances without this.
    fn waited(&self, _span: Duration) {}
}

/// The system clock.
#[derive(Debug, Clone)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Creates a clock whose elapsed time starts now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn read(&self) -> Moment {
        Moment { at: Timestamp::now(), elapsed: self.start.elapsed() }
    }
}

/// A clock that advances by one step with each reading, and by each reported wait. Two runs that do the same work read the
/// same times, so their files are byte-identical.
#[derive(Debug)]
pub struct SteppingClock {
    start: Timestamp,
    step: Duration,
    elapsed_micros: AtomicU64,
}

impl SteppingClock {
    /// Creates a clock whose first reading is `start`. Steps are rounded down to whole microseconds.
    pub fn new(start: Timestamp, step: Duration) -> Self {
        Self { start, step, elapsed_micros: AtomicU64::new(0) }
    }

    fn advance(&self, span: Duration) -> Duration {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        // The value before the addition, so that the first reading is the start.
        Duration::from_micros(self.elapsed_micros.fetch_add(micros, Ordering::Relaxed))
    }
}

impl Clock for SteppingClock {
    fn read(&self) -> Moment {
        let elapsed = self.advance(self.step);
        let span = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        Moment { at: self.start.checked_add(span).unwrap_or(Timestamp::MAX), elapsed }
    }

    fn waited(&self, span: Duration) {
        self.advance(span);
    }
}

/// Returns the whole milliseconds of a duration, rounded down.
pub(crate) fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A checked-out commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The full commit id.
    pub commit: String,
    /// Whether tracked files differ from the commit.
    pub dirty: bool,
}

impl Checkout {
    /// Reads the checkout that contains `folder`. Returns `None` without a checkout, without a commit or without `git`.
    ///
    /// Untracked files do not count as changes, because run folders and reports usually are untracked.
    pub fn discover(folder: &Utf8Path) -> Option<Self> {
        Self::from_status(&git_status(folder)?)
    }

    /// Reads the output of `git status`: headers that start with `#`, then one line per change.
    fn from_status(status: &str) -> Option<Self> {
        let commit = status.lines().find_map(|line| line.strip_prefix("# branch.oid "))?.to_owned();
        let dirty = status.lines().any(|line| !line.starts_with('#'));
        (commit != "(initial)").then_some(Self { commit, dirty })
    }
}

/// Returns the output of `git status`, which is empty after a failure.
fn git_status(folder: &Utf8Path) -> Option<String> {
    let mut git = Command::new("git")
        // `status` would otherwise rewrite the index and could block other git commands in the checkout.
        .args(["--no-optional-locks", "-C", folder.as_str()])
        .args(["status", "--porcelain=v2", "--branch", "--untracked-files=no"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut output = String::new();
    let read = git.stdout.take()?.read_to_string(&mut output);
    // There is no exit status to wait for if the parent of this process ignored SIGCHLD. Agent programs inherit that, so it is not
    // changed here; the headers show well enough that git succeeded.
    let is_failure = git.wait().is_ok_and(|status| !status.success());
    (read.is_ok() && !is_failure).then_some(output)
}

/// How urgently a run must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Start no further case; attempts in flight may finish.
    Finish,
    /// Abandon attempts in flight.
    Abandon,
}

/// A handle that stops a run from another thread. Clones stop the same run.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    finish: Cancellation,
    abandon: Cancellation,
}

impl Interrupt {
    /// Stops the run after the attempts in flight. A second call abandons those too.
    pub fn trigger(&self) {
        self.raise(if self.reached(Urgency::Finish) { Urgency::Abandon } else { Urgency::Finish });
    }

    /// Raises the urgency.
    pub(crate) fn raise(&self, urgency: Urgency) {
        // It never decreases: a cancellation cannot be reset.
        self.finish.cancel();
        if urgency == Urgency::Abandon {
            self.abandon.cancel();
        }
    }

    /// Reports whether the urgency is at least this high.
    pub fn reached(&self, urgency: Urgency) -> bool {
        self.at(urgency).is_cancelled()
    }

    /// Waits until the urgency is at least this high.
    pub(crate) async fn wait_for(&self, urgency: Urgency) {
        self.at(urgency).cancelled().await;
    }

    /// Returns the handle that is cancelled when the urgency is at least this high.
    pub(crate) const fn at(&self, urgency: Urgency) -> &Cancellation {
        match urgency {
            Urgency::Finish => &self.finish,
            Urgency::Abandon => &self.abandon,
        }
    }
}

/// A source of random fractions: `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug)]
pub struct Jitter(AtomicU64);

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

impl Jitter {
    /// Creates a source. The same seed returns the same fractions in the same order.
    pub const fn from_seed(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Creates a source with a seed from the system's randomness.
    pub fn from_system() -> Self {
        // Every `RandomState` has random keys from the system, so the hash of any value is a random seed.
        Self::from_seed(RandomState::new().hash_one(0))
    }

    /// Returns the next fraction, at least 0 and less than 1.
    pub fn fraction(&self) -> f64 {
        let mut bits = self.0.fetch_add(GAMMA, Ordering::Relaxed).wrapping_add(GAMMA);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        // 32 bits are precise enough for a wait, and an `f64` represents them exactly.
        f64::from((bits >> 32) as u32) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stepping_clock_advances_with_readings_and_with_waits() {
        let clock = SteppingClock::new("2026-01-05T09:00:00Z".parse().unwrap(), Duration::from_millis(2));
        assert_eq!(clock.read().iso(), "2026-01-05T09:00:00.000Z");
        clock.waited(Duration::from_secs(1));
        assert_eq!(clock.read().iso(), "2026-01-05T09:00:01.002Z");
        assert_eq!(clock.read().elapsed, Duration::from_millis(1004));
    }

    #[test]
    fn the_system_clock_counts_from_its_start() {
        let clock = SystemClock::start();
        let (first, second) = (clock.read(), clock.read());
        assert!(first.elapsed <= second.elapsed);
    }

    #[test]
    fn a_folder_outside_a_checkout_has_no_commit() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Checkout::discover(Utf8Path::from_path(folder.path()).unwrap()), None);
    }

    #[test]
    fn the_commit_and_the_changes_are_read_from_the_status() {
        let status = "# branch.oid 1f2e3d\n# branch.head main\n";
        let checkout = |dirty| Some(Checkout { commit: "1f2e3d".to_owned(), dirty });
        assert_eq!(Checkout::from_status(status), checkout(false));
        assert_eq!(
            Checkout::from_status(&format!("{status}1 .M N... 100644 100644 100644 0 0 a.txt\n")),
            checkout(true)
        );
        assert_eq!(Checkout::from_status("# branch.oid (initial)\n# branch.head main\n"), None);
        assert_eq!(Checkout::from_status(""), None);
    }

    #[test]
    fn the_first_call_finishes_and_the_second_abandons() {
        let interrupt = Interrupt::default();
        assert!(!interrupt.reached(Urgency::Finish));
        interrupt.clone().trigger();
        assert!(interrupt.reached(Urgency::Finish) && !interrupt.reached(Urgency::Abandon));
        interrupt.trigger();
        interrupt.raise(Urgency::Finish);
        assert!(interrupt.reached(Urgency::Abandon));
    }

    #[test]
    fn fractions_repeat_with_their_seed_and_stay_below_one() {
        let take = |seed| {
            let jitter = Jitter::from_seed(seed);
            (0..1000).map(|_| jitter.fraction()).collect::<Vec<_>>()
        };
        let fractions = take(7);
        assert_eq!(fractions, take(7));
        assert_ne!(fractions, take(8));
        assert!(fractions.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        let mean = fractions.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }
}
