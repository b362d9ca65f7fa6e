//! The options of `run --confirm`.

use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use counterproof_runner::{AgentCommand, BaseUrl, Secret, Settings};

use crate::agent_args::agent_options;
use crate::command_error::CommandError;
use crate::config::Config;
use crate::value_parsers::at_least_one;

/// Options that decide how regressions are confirmed.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfirmArgs {
    /// Run the flipped cases N more times, to tell regressions from chance
    ///
    /// A case is flipped if it looks worse than on the baseline: it was answered and is not, fails an expectation that was met, or
    /// lost evidence. The runs have the IDs ID-c1 to ID-cN. `counterproof compare` judges these cases by all their runs. The baseline
    /// is that of --against [default: the latest run in RUNS/baseline, with its repeats].
    #[arg(
        long, value_name = "N", value_parser = at_least_one, conflicts_with_all = ["repeat", "shard"]
    )]
    pub(crate) confirm: Option<NonZeroU32>,

    /// With --confirm: base URL of the agent of the baseline, which then also runs the flipped cases N more times
    // Not parsed by clap, whose messages quote what was typed.
    #[arg(long, value_name = "URL", requires = "confirm")]
    confirm_baseline_url: Option<Secret>,

    /// With --confirm: program of the agent of the baseline, instead of a URL
    #[arg(long, value_name = "CMD", requires = "confirm", conflicts_with = "confirm_baseline_url")]
    confirm_baseline_cmd: Option<Secret>,

    /// With --confirm: configuration file with `[agent]` and `[risk]` of the baseline, if these differ
    #[arg(long, value_name = "FILE", requires = "confirm")]
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
            let model = config.agent.model.as_ref().or(model);
            settings.agent = agent_options(&config.agent, &config.risk, model)?;
        }
        Ok(Some(settings))
    }
}
