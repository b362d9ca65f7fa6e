//! The runs that one `counterproof run` makes, worked out from the options about ids, resuming, shards, repeats and confirmation.
//! Which cases a run contains is decided elsewhere.

use std::num::NonZeroU32;
use std::str::FromStr;

use camino::Utf8PathBuf;
use counterproof_artifact::RunId;
use counterproof_cases::{Shard, ShardError};
use counterproof_runner::{AgentCommand, BaseUrl, Repeat, RunShard, Secret, Settings, Start};
use jiff::Timestamp;
use uuid::Uuid;

use crate::agent_args::agent_options;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::value_parsers::{at_least_one, new_run_id};

/// Options that decide which runs are made.
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    /// ID of the run and name of its folder [default: the time and a random part, such as 20261122-165946-a1b2]
    #[arg(long, value_name = "ID", value_parser = new_run_id)]
    run_id: Option<RunId>,

    /// Resume the stopped run ID: run only the cases without an artifact
    ///
    /// The cases and the other settings must be those that the run was started with.
    #[arg(long, value_name = "ID", conflicts_with = "run_id")]
    pub(crate) resume: Option<RunId>,

    /// With --resume: also retry the cases that failed
    #[arg(long, requires = "resume", conflicts_with = "run_id")]
    retry_errors: bool,

    /// Run only the cases of shard K of N, counted from 1
    ///
    /// `auto` reads both numbers from the environment of Slurm, Kubernetes, AWS Batch, GitLab, Buildkite or CircleCI, `auto/N` only K.
    /// The ID of the run is ID-sKofN.
    #[arg(help_heading = "Selection", long, value_name = "K/N")]
    shard: Option<ShardChoice>,

    /// Start the shard, or go on with the one that an earlier process did not finish, even if that process still runs
    ///
    /// For schedulers that start a task again: Slurm, Kubernetes, Dask. The folder is ID-sKofN, then ID-sKofN-a2 and so on. The finished
    /// cases are copied, and the earlier process stops before its next one. A finished shard is left as it is.
    #[arg(help_heading = "Selection", long, requires = "shard", conflicts_with = "resume")]
    pub(crate) take_over: bool,

    /// Make N runs in sequence, with the IDs ID-r1 to ID-rN
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    repeat: Option<NonZeroU32>,

    /// With --confirm: run folders of the baseline
    #[arg(help_heading = "Confirmation", help_heading = "Confirmation", long, value_name = "BASELINE", num_args = 1.., requires = "confirm")]
    pub(crate) against: Vec<Utf8PathBuf>,

    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,
}

/// The value of `--shard`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardChoice {
    Explicit(Shard),
    FromEnvironment { count: Option<u32> },
}

impl FromStr for ShardChoice {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        match text.strip_prefix("auto") {
            Some("") => Ok(Self::FromEnvironment { count: None }),
            Some(rest) => {
                let count = rest.strip_prefix('/').and_then(|count| count.parse().ok()).ok_or(ShardError::Form)?;
                // Checks the number of shards. The index comes from the environment.
                Shard::new(1, count).map(|_| Self::FromEnvironment { count: Some(count) })
            }
            None => text.parse().map(Self::Explicit),
        }
    }
}

impl ShardChoice {
    /// The shard of this process.
    pub(crate) fn shard(self, environment: impl Fn(&str) -> Option<String>) -> Result<Shard, CommandError> {
        match self {
            ShardChoice::Explicit(shard) => Ok(shard),
            ShardChoice::FromEnvironment { count } => {
                counterproof_runner::detect_shard(environment, count).map_err(|error| {
                    CommandError::usage(error)
                        .hint("set the shard explicitly, such as `--shard 2/4` or `--shard auto/4`")
                })
            }
        }
    }
}

/// The value of `--confirm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfirmRuns {
    /// As many runs as one case needs that always fails.
    Auto,
    /// This many runs of each flipped case.
    Fixed(NonZeroU32),
    /// No run.
    Off,
}

impl FromStr for ConfirmRuns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            number => at_least_one(number).map(Self::Fixed).map_err(|problem| format!("{problem}, `auto` or `off`")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedRun {
    pub(crate) run_id: RunId,
    start: Start,
    pub(crate) shard: Option<RunShard>,
    repeat: Option<Repeat>,
}

impl PlannedRun {
    pub(crate) fn settings(&self, shared: &Settings) -> Settings {
        Settings {
            run_id: self.run_id.clone(),
            start: self.start,
            rate: match &self.shard {
                Some(shard) => shared.rate.map(|rate| rate.shared_by(shard.shard.count())),
                None => shared.rate,
            },
            shard: self.shard.clone(),
            repeat: self.repeat.clone(),
            ..shared.clone()
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunPlan {
    /// The ID that `--resume` takes to resume all of the runs.
    pub(crate) id: RunId,
    pub(crate) runs: Vec<PlannedRun>,
    /// The IDs of the runs that confirm the only run; empty without `--confirm`. With `--confirm auto`, these are the most.
    pub(crate) confirmations: Vec<RunId>,
    /// How a run starts that follows the first. A stopped command may not have reached it.
    pub(crate) later_start: Start,
}

impl PlanArgs {
    /// The runs of one side with this id: one, or several repeats.
    pub(crate) fn of_check(
        run_id: RunId,
        repeat: Option<NonZeroU32>,
        confirm: Option<(ConfirmRuns, NonZeroU32)>,
    ) -> Self {
        Self {
            run_id: Some(run_id),
            resume: None,
            retry_errors: false,
            shard: None,
            take_over: false,
            repeat: repeat.filter(|repeat| repeat.get() > 1),
            against: Vec::new(),
            confirm: ConfirmArgs {
                confirm: confirm.map(|(runs, _)| runs),
                confirm_max: confirm.map_or(DEFAULT_CONFIRM_MAX, |(_, most)| most),
                confirm_baseline_url: None,
                confirm_baseline_cmd: None,
                confirm_baseline_config: None,
            },
        }
    }

    /// Works out the runs to make. `environment` returns the value of an environment variable.
    pub(crate) fn plan(&self, environment: impl Fn(&str) -> Option<String>) -> Result<RunPlan, CommandError> {
        let shard = self.shard.map(|choice| choice.shard(environment)).transpose()?;
        let id = match self.resume.as_ref().or(self.run_id.as_ref()) {
            Some(id) => id.clone(),
            // `merge` joins only shards whose IDs name the same run, so a generated ID would make them useless.
            None if shard.is_some() => {
                return Err(CommandError::usage("`--shard` requires `--run-id`")
                    .hint("use one ID for all shards of a run, such as the build number: `--run-id build-1234`"));
            }
            None => generated_id(Timestamp::now(), Uuid::now_v7()).parse().map_err(CommandError::usage)?,
        };
        let numbers: Vec<Option<u32>> = match self.repeat {
            None => vec![None],
            Some(of) => (1..=of.get()).map(Some).collect(),
        };
        let runs = numbers.into_iter().map(|number| self.planned_run(&id, number, shard)).collect::<Result<_, _>>()?;
        let confirmations = 1..=match self.confirm.confirm {
            None | Some(ConfirmRuns::Off) => 0,
            Some(ConfirmRuns::Auto) => self.confirm.confirm_max.get(),
            Some(ConfirmRuns::Fixed(runs)) => runs.get(),
        };
        // Planned with the run, so that a dry run shows their names and a name that is too long fails at once.
        let confirmations =
            confirmations.map(|number| with_suffix(&id, &format!("c{number}"))).collect::<Result<_, _>>()?;
        Ok(RunPlan { id, runs, confirmations, later_start: self.start(true) })
    }

    /// Returns how a run starts. A stopped command may not have reached a later run, which then is created.
    fn start(&self, is_later: bool) -> Start {
        match &self.resume {
            None if self.take_over => Start::TakeOver,
            None => Start::New,
            Some(_) => Start::Resume { retry_errors: self.retry_errors, or_create: is_later },
        }
    }

    /// Plans the run with this repeat number, or the only run if there are no repeats.
    fn planned_run(&self, id: &RunId, number: Option<u32>, shard: Option<Shard>) -> Result<PlannedRun, CommandError> {
        let mut run_id = id.clone();
        let mut repeat = None;
        if let (Some(number), Some(of)) = (number, self.repeat) {
            run_id = with_suffix(&run_id, &format!("r{number}"))?;
            repeat = Some(Repeat { group_id: id.clone(), number, of: of.get() });
        }
        // The first run must exist if the command resumes one: otherwise the ID is mistyped.
        let start = self.start(number.is_some_and(|number| number > 1));
        let mut run_shard = None;
        if let Some(shard) = shard {
            // After the repeat: `merge` joins the shards of one repeat.
            let part = RunShard { run_id, shard };
            run_id = part.attempt(1).map_err(|error| CommandError::usage(error).hint("use a shorter ID"))?;
            run_shard = Some(part);
        }
        Ok(PlannedRun { run_id, start, shard: run_shard, repeat })
    }
}

/// Returns an id such as `20261122-165946-a1b2`: the time in UTC, and a random part.
pub(crate) fn generated_id(now: Timestamp, random: Uuid) -> String {
    let random = random.simple().to_string();
    format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), random.get(28..).unwrap_or_default())
}

fn with_suffix(id: &RunId, suffix: &str) -> Result<RunId, CommandError> {
    format!("{id}-{suffix}").parse().map_err(|error| CommandError::usage(error).hint("use a shorter ID"))
}

/// The default of `--confirm-max`.
pub(crate) const DEFAULT_CONFIRM_MAX: NonZeroU32 = NonZeroU32::MIN.saturating_add(11);

/// Options that decide how regressions are confirmed.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfirmArgs {
    /// Run the flipped cases again, to tell regressions from chance
    ///
    /// A case is flipped if it looks worse than on the baseline: it was answered and is not, fails an expectation that was met, or
    /// lost evidence. The runs have the IDs ID-c1 to ID-cN. `counterproof compare` judges these cases by all their runs. The
    /// baseline is the one of --against [default: the latest run in RUNS/baseline, with its repeats].
    ///
    /// `auto`, or no value: as many runs as exclude chance for a case that fails in all of them and in no run of the baseline. A case
    /// that passes is not run again. `N`: N more runs of each flipped case.
    #[arg(
        long, value_name = "N|auto|off", num_args = 0..=1, default_missing_value = "auto",
        conflicts_with_all = ["repeat", "shard"]
    )]
    pub(crate) confirm: Option<ConfirmRuns>,

    /// With --confirm auto: maximum number of further runs of a case
    #[arg(help_heading = "Confirmation", long, value_name = "N", default_value_t = DEFAULT_CONFIRM_MAX, value_parser = at_least_one)]
    confirm_max: NonZeroU32,

    /// With --confirm: base URL of the agent of the baseline, which then also runs the flipped cases again
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(help_heading = "Confirmation", long, value_name = "URL", requires = "confirm")]
    confirm_baseline_url: Option<Secret>,

    /// With --confirm: program of the agent of the baseline, instead of a URL
    #[arg(
        help_heading = "Confirmation",
        long,
        value_name = "CMD",
        requires = "confirm",
        conflicts_with = "confirm_baseline_url"
    )]
    confirm_baseline_cmd: Option<Secret>,

    /// With --confirm: configuration file with `[agent]` and `[risk]` of the baseline, if these differ
    #[arg(help_heading = "Confirmation", long, value_name = "FILE", requires = "confirm")]
    confirm_baseline_config: Option<Utf8PathBuf>,
}

impl ConfirmArgs {
    /// Returns the settings of the agent of the baseline, based on those of new; `None` if no option names it.
    pub(crate) fn baseline_settings(
        &self,
        new: &Settings,
        model: Option<&String>,
    ) -> Result<Option<Settings>, CommandError> {
        let mut settings = new.clone();
        match (&self.confirm_baseline_url, &self.confirm_baseline_cmd, &self.confirm_baseline_config) {
            (None, None, None) => return Ok(None),
            (Some(url), ..) => {
                let url: BaseUrl = url.expose().parse().map_err(|error| {
                    CommandError::usage(error).hint("example: `--confirm-baseline-url http://localhost:8788`")
                })?;
                settings.target = url.into();
            }
            (None, Some(command), _) => {
                let command: AgentCommand = command.expose().parse().map_err(|error| {
                    CommandError::usage(error).hint("example: `--confirm-baseline-cmd 'python old/agent.py'`")
                })?;
                settings.target = command.into();
            }
            // The same address: the side or the model in the request selects the version.
            (None, None, Some(_)) => {}
        }
        if let Some(path) = &self.confirm_baseline_config {
            let config = Config::load(Some(path))?;
            // The model of the baseline first: the versions may differ in nothing else.
            let model = config.agent.model.as_ref().or(model);
            settings.agent = agent_options(&new.agent, &config.agent, &config.risk, model)?;
        }
        Ok(Some(settings))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: PlanArgs,
    }

    fn ids(line: &[&str]) -> Result<Vec<String>, String> {
        let options = Line::try_parse_from(["run"].iter().chain(line)).map_err(|error| error.to_string())?.options;
        let environment = |name: &str| match name {
            "CIRCLE_NODE_INDEX" => Some("2".to_owned()),
            "CIRCLE_NODE_TOTAL" => Some("4".to_owned()),
            _ => None,
        };
        let plan = options.plan(environment).map_err(|error| format!("{error:?}"))?;
        Ok(plan.runs.iter().map(|run| run.run_id.to_string()).collect())
    }

    #[test]
    fn ids_contain_the_repeat_and_the_shard() {
        assert_eq!(ids(&["--run-id", "n"]).unwrap(), ["n"]);
        assert_eq!(ids(&["--run-id", "n", "--repeat", "2"]).unwrap(), ["n-r1", "n-r2"]);
        assert_eq!(ids(&["--run-id", "n", "--shard", "2/4"]).unwrap(), ["n-s2of4"]);
        assert_eq!(ids(&["--run-id", "n", "--shard", "auto"]).unwrap(), ["n-s3of4"]);
        let both = ids(&["--resume", "n", "--shard", "auto/4", "--repeat", "2"]).unwrap();
        assert_eq!(both, ["n-r1-s3of4", "n-r2-s3of4"]);
        assert_eq!(ids(&[]).unwrap().len(), 1);
    }

    #[test]
    fn the_number_of_confirmation_runs_is_optional() {
        let confirmations = |line: &[&str]| {
            let line = ["run", "--run-id", "n", "--confirm"].iter().chain(line);
            let plan = Line::try_parse_from(line).unwrap().options.plan(|_| None).unwrap();
            plan.confirmations.last().unwrap().to_string()
        };
        assert_eq!(confirmations(&[]), "n-c12");
        assert_eq!(confirmations(&["--confirm-max", "5"]), "n-c5");
        assert_eq!(confirmations(&["auto"]), "n-c12");
        assert_eq!(confirmations(&["4"]), "n-c4");
    }

    #[test]
    fn zero_repeats_are_rejected() {
        let error = ids(&["--repeat", "0"]).unwrap_err();
        assert!(error.contains("invalid value '0' for '--repeat <N>': expected a number of at least 1"), "{error}");
    }

    #[test]
    fn conflicting_options_are_rejected() {
        for line in [
            &["--shard", "1/2"][..],
            &["--run-id", "n", "--shard", "auto/5"],
            &["--run-id", "n", "--shard", "auto/0"],
            &["--run-id", "n", "--shard", "automatic"],
            &["--run-id", "n", "--resume", "n"],
            &["--run-id", "n", "--retry-errors"],
            &["--run-id", "n", "--take-over"],
            &["--resume", "n", "--shard", "1/2", "--take-over"],
            &["--run-id", "n", "--repeat", "0"],
            &["--run-id", "n", "--against", "b"],
            &["--run-id", "n", "--confirm", "2", "--repeat", "3"],
            &["--run-id", "n", "--confirm", "--shard", "1/2"],
            &["--run-id", "n", "--confirm", "often"],
        ] {
            assert!(ids(line).is_err(), "{line:?}");
        }
    }
}
