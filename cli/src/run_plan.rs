//! The runs that one `counterproof run` makes: what was typed about ids, resuming, shards and repeats, worked out. What a run
//! is asked is decided elsewhere.

use std::num::NonZeroU32;
use std::str::FromStr;

use camino::Utf8PathBuf;
use counterproof_artifact::RunId;
use counterproof_runner::{Part, Repeat, Rounds, Settings, Shard, ShardError, Start};
use uuid::Uuid;

use crate::command_error::CommandError;
use crate::value_parsers::at_least_one;

/// Which runs to make, and from where.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Names the run and its folder [default: a new id that sorts by time]
    #[arg(long, value_name = "ID")]
    run_id: Option<RunId>,

    /// Go on with a run that was stopped: ask only what is missing. The cases and the other settings must be those that it
    /// was started with
    #[arg(long, value_name = "ID", conflicts_with = "run_id")]
    pub(crate) resume: Option<RunId>,

    /// When resuming, ask the cases that failed again too
    #[arg(long, requires = "resume", conflicts_with = "run_id")]
    retry_errors: bool,

    /// Ask only the cases of shard K of N, counted from 1; `auto` reads both from the environment of Slurm, Kubernetes, AWS
    /// Batch, GitLab, Buildkite or CircleCI, `auto/N` only the first. The run is called ID-sKofN
    #[arg(long, value_name = "K/N")]
    shard: Option<ShardChoice>,

    /// Make N runs, one after the other, called ID-r1 to ID-rN
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    repeat: Option<NonZeroU32>,

    /// Make runs of the side `new`, called ID-r1, ID-r2 and so on, until every case is decided against the baseline: the first
    /// rounds ask all cases, those that follow only the open ones
    #[arg(
        long, requires = "against", requires = "max", conflicts_with_all = ["repeat", "shard", "retry_errors"]
    )]
    pub(crate) repeat_until_decided: bool,

    /// With --repeat-until-decided: the baseline's run folders
    #[arg(long, value_name = "BASELINE", num_args = 1.., requires = "repeat_until_decided")]
    pub(crate) against: Vec<Utf8PathBuf>,

    /// With --repeat-until-decided: make at most N runs
    #[arg(long, value_name = "N", requires = "repeat_until_decided", value_parser = at_least_one)]
    pub(crate) max: Option<NonZeroU32>,
}

/// A shard as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShardChoice {
    Named(Shard),
    Detected { count: Option<u32> },
}

impl FromStr for ShardChoice {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        match text.strip_prefix("auto") {
            Some("") => Ok(Self::Detected { count: None }),
            Some(rest) => {
                let count = rest.strip_prefix('/').and_then(|count| count.parse().ok()).ok_or(ShardError::Form)?;
                Shard::new(1, count).map(|_| Self::Detected { count: Some(count) })
            }
            None => text.parse().map(Self::Named),
        }
    }
}

/// One run to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) run_id: RunId,
    start: Start,
    pub(crate) part: Option<Part>,
    repeat: Option<Repeat>,
}

impl Pass {
    /// The settings of this run, as one of some rounds.
    pub(crate) fn round(&self, shared: &Settings, rounds: Rounds) -> Settings {
        let mut settings = self.settings(shared);
        settings.repeat = settings.repeat.map(|repeat| Repeat { until_decided: Some(rounds), ..repeat });
        settings
    }

    /// The settings of this run.
    pub(crate) fn settings(&self, shared: &Settings) -> Settings {
        Settings {
            run_id: self.run_id.clone(),
            start: self.start,
            part: self.part.clone(),
            repeat: self.repeat.clone(),
            ..shared.clone()
        }
    }
}

/// The runs to make, and the id by which all of them are resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passes {
    pub(crate) id: RunId,
    pub(crate) runs: Vec<Pass>,
}

impl Options {
    /// Works out which runs are to be made.
    pub(crate) fn passes(&self, environment: impl Fn(&str) -> Option<String>) -> Result<Passes, CommandError> {
        let shard = match self.shard {
            None => None,
            Some(ShardChoice::Named(shard)) => Some(shard),
            Some(ShardChoice::Detected { count }) => {
                Some(counterproof_runner::detect_shard(environment, count).map_err(|error| {
                    CommandError::usage(error).hint("say it yourself, such as `--shard 2/4`, or `--shard auto/4`")
                })?)
            }
        };
        let id = match self.resume.as_ref().or(self.run_id.as_ref()) {
            Some(id) => id.clone(),
            // Shards of one run know each other by its id: those of different runs are never merged.
            None if shard.is_some() => {
                return Err(CommandError::usage("a shard needs a `--run-id`, the same for all shards of a run")
                    .hint("take what your CI calls this build, such as `--run-id build-1234`"));
            }
            None => Uuid::now_v7().to_string().parse().map_err(CommandError::usage)?,
        };
        let start = match &self.resume {
            None => Start::New,
            // The runs that a stopped command had not come to are made; but an id that no run has is a mistake.
            Some(_) => Start::Resume { retry_errors: self.retry_errors, or_new: false },
        };
        let derived = |id: &RunId, suffix: String| {
            format!("{id}-{suffix}")
                .parse::<RunId>()
                .map_err(|error| CommandError::usage(error).hint("use a shorter id"))
        };
        let mut runs = Vec::new();
        let repeats = self.repeat.or(self.max);
        for number in 1..=repeats.map_or(1, NonZeroU32::get) {
            let (mut run_id, mut repeat, mut start) = (id.clone(), None, start);
            if let Some(of) = repeats {
                run_id = derived(&run_id, format!("r{number}"))?;
                repeat = Some(Repeat { group_id: id.clone(), number, of: of.get(), until_decided: None });
                if let Start::Resume { or_new, .. } = &mut start {
                    *or_new = number > 1;
                }
            }
            let mut part = None;
            if let Some(shard) = shard {
                part = Some(Part { run_id: run_id.clone(), shard });
                run_id = derived(&run_id, format!("s{}of{}", shard.index(), shard.count()))?;
            }
            runs.push(Pass { run_id, start, part, repeat });
        }
        Ok(Passes { id, runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn ids(line: &[&str]) -> Result<Vec<String>, String> {
        let options = Line::try_parse_from(["run"].iter().chain(line)).map_err(|error| error.to_string())?.options;
        let environment = |name: &str| match name {
            "CIRCLE_NODE_INDEX" => Some("2".to_owned()),
            "CIRCLE_NODE_TOTAL" => Some("4".to_owned()),
            _ => None,
        };
        let passes = options.passes(environment).map_err(|error| format!("{error:?}"))?;
        Ok(passes.runs.iter().map(|pass| pass.run_id.to_string()).collect())
    }

    #[test]
    fn ids_say_which_repeat_and_which_shard() {
        assert_eq!(ids(&["--run-id", "n"]).unwrap(), ["n"]);
        assert_eq!(ids(&["--run-id", "n", "--repeat", "2"]).unwrap(), ["n-r1", "n-r2"]);
        assert_eq!(ids(&["--run-id", "n", "--shard", "2/4"]).unwrap(), ["n-s2of4"]);
        assert_eq!(ids(&["--run-id", "n", "--shard", "auto"]).unwrap(), ["n-s3of4"]);
        let both = ids(&["--resume", "n", "--shard", "auto/4", "--repeat", "2"]).unwrap();
        assert_eq!(both, ["n-r1-s3of4", "n-r2-s3of4"]);
        let rounds = ["--run-id", "n", "--repeat-until-decided", "--max", "2", "--against", "b1", "b2"];
        assert_eq!(ids(&rounds).unwrap(), ["n-r1", "n-r2"]);
        assert_eq!(ids(&[]).unwrap().len(), 1);
    }

    #[test]
    fn no_runs_at_all_are_refused_in_words() {
        let error = ids(&["--repeat", "0"]).unwrap_err();
        assert!(error.contains("invalid value '0' for '--repeat <N>': it has to be at least 1"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_together_is_refused() {
        for line in [
            &["--shard", "1/2"][..],
            &["--run-id", "n", "--shard", "auto/5"],
            &["--run-id", "n", "--shard", "auto/0"],
            &["--run-id", "n", "--shard", "automatic"],
            &["--run-id", "n", "--resume", "n"],
            &["--run-id", "n", "--retry-errors"],
            &["--run-id", "n", "--repeat", "0"],
            &["--run-id", "n", "--repeat-until-decided", "--max", "9"],
            &["--run-id", "n", "--repeat-until-decided", "--against", "b"],
            &["--run-id", "n", "--against", "b", "--max", "9"],
            &["--run-id", "n", "--repeat-until-decided", "--against", "b", "--max", "9", "--repeat", "3"],
        ] {
            assert!(ids(line).is_err(), "{line:?}");
        }
    }
}
