//! The agent of one side for the time of a command: where requests go, and what has to run for that.

use counterproof_artifact::Side;
use counterproof_runner::{AgentCommand, BaseUrl, Interrupt, Secret, Settings};

use crate::agent_args::agent_options;
use crate::command_error::CommandError;
use crate::environment;
use crate::layers::Layers;
use crate::side_table::SideTable;
use crate::streams::Streams;

/// The agent of one side.
#[derive(Debug)]
pub(crate) struct SideAgent {
    pub(crate) side: Side,
    /// What the configuration says about the side. Keys that an option replaces are left out.
    pub(crate) table: SideTable,
    /// The base URL of the started server; `None` if none was started.
    pub(crate) base_url: Option<Secret>,
}

impl SideAgent {
    /// Starts the agent of a side, if the configuration has a command for that and no option names another agent.
    pub(crate) fn open(
        side: Side,
        layers: &Layers,
        _interrupt: &Interrupt,
        _streams: &mut Streams,
    ) -> Result<Self, CommandError> {
        Ok(Self::without_start(side, layers))
    }

    /// Returns the agent of a side without a start, for what sends no request.
    pub(crate) fn without_start(side: Side, layers: &Layers) -> Self {
        Self { side, table: Self::table(side, layers), base_url: None }
    }

    /// The same agent at another address.
    pub(crate) fn with_base_url(self, base_url: Option<Secret>) -> Self {
        Self { base_url, ..self }
    }

    /// Returns the table of a side without the agent that an option replaces.
    fn table(side: Side, layers: &Layers) -> SideTable {
        let table = layers.config.side.get(side);
        if side == Side::New && (layers.is_overridden("base_url") || layers.is_overridden("agent_cmd")) {
            return SideTable { command: None, start: None, ready: None, setup: None, commit: None, ..table };
        }
        table
    }

    /// Returns the settings of the baseline: those of new with what the table of the baseline sets.
    pub(crate) fn baseline_settings(&self, new: &Settings, layers: &Layers) -> Result<Settings, CommandError> {
        let mut settings = Settings { side: Side::Baseline, ..new.clone() };
        let table = &self.table;
        if let Some(url) = self.base_url.as_ref().or(table.base_url.as_ref()) {
            let url: BaseUrl = url.expose().parse().map_err(CommandError::usage)?;
            settings.target = url.into();
        }
        if let Some(command) = &table.command {
            let command: AgentCommand = command.expose().parse().map_err(CommandError::usage)?;
            settings.target = command.into();
        }
        if let Some(protocol) = table.protocol {
            settings.protocol = protocol;
        }
        if let Some(model) = &table.model {
            settings.agent = agent_options(&layers.config.agent, &layers.config.risk, Some(model))?;
        }
        if !table.headers.is_empty() {
            let headers = table.headers.iter().map(|(name, value)| Secret::from(format!("{name}:{}", value.expose())));
            settings.headers = environment::headers(&headers.collect::<Vec<_>>()).map_err(CommandError::usage)?;
        }
        Ok(settings)
    }
}
