//! The agent of one side for the time of a command: where requests go, and what has to run for that.

use std::sync::Arc;

use camino::Utf8Path;
use counterproof_artifact::Side;
use counterproof_runner::{
    AgentCommand, BaseUrl, Checkout, Header, Interrupt, Lifetime, Protocol, RunningAgent, Secret, Settings, Target,
};

use crate::agent_args::agent_options;
use crate::agent_process::{Place, Start, variables};
use crate::command_error::CommandError;
use crate::environment;
use crate::layers::Layers;
use crate::side_table::SideTable;
use crate::streams::Streams;

/// The agent of one side. Dropping it stops what was started for it.
#[derive(Debug)]
pub(crate) struct SideAgent {
    pub(crate) side: Side,
    /// What the configuration says about the side. Keys that an option replaces are left out.
    pub(crate) table: SideTable,
    /// The base URL of the started server; `None` if none was started.
    pub(crate) base_url: Option<Secret>,
    /// Dropped before `place`, in which it runs.
    running: Option<RunningAgent>,
    place: Place,
}

impl SideAgent {
    /// Starts the agent of a side, if the configuration has a command for that and no option names another agent. `out` is
    /// the folder of the runs.
    pub(crate) fn open(
        side: Side,
        layers: &Layers,
        out: &Utf8Path,
        interrupt: &Interrupt,
        streams: &mut Streams,
    ) -> Result<Self, CommandError> {
        let mut agent = Self::without_start(side, layers);
        agent.base_url = None;
        let start = Start { side, table: &agent.table, layers, out, interrupt };
        agent.place = start.prepare(streams)?;
        agent.running = start.run(&agent.place, streams)?;
        agent.base_url = agent.running.as_ref().map(|running| running.base_url().to_secret());
        Ok(agent)
    }

    /// Returns the agent of a side without a start, for what sends no request.
    pub(crate) fn without_start(side: Side, layers: &Layers) -> Self {
        let table = Self::table(side, layers);
        // Nothing is sent there. The configured URL alone need not be one.
        let base_url = table.start.as_ref().map(|_| {
            let url = table.base_url.as_ref().map_or("http://127.0.0.1:{port}", Secret::expose);
            Secret::from(url.replace("{port}", "0"))
        });
        Self { side, table, base_url, running: None, place: Place::in_folder(&layers.config.folder) }
    }

    /// Returns the agent that a table describes, without a start.
    pub(crate) fn of_table(side: Side, table: SideTable) -> Self {
        Self { side, table, base_url: None, running: None, place: Place::in_folder(Utf8Path::new("")) }
    }

    /// The same agent at another address.
    pub(crate) fn with_base_url(self, base_url: Option<Secret>) -> Self {
        Self { base_url: base_url.or(self.base_url), ..self }
    }

    /// Returns an error if the agent ended while it was needed.
    pub(crate) fn check_alive(&self) -> Result<(), CommandError> {
        match self.running.as_ref().and_then(RunningAgent::died) {
            Some(died) => Err(CommandError::io(died)),
            None => Ok(()),
        }
    }

    /// Returns the last lines that the started agent printed; none without one.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.running.as_ref().map(RunningAgent::last_lines).unwrap_or_default()
    }

    /// Returns the commit that the agent runs at, if its folder is a checkout.
    pub(crate) fn checkout(&self) -> Option<Checkout> {
        let folder = self.place.folder();
        Checkout::discover(if folder.as_str().is_empty() { Utf8Path::new(".") } else { folder })
    }

    /// Adds what the configuration says about a program that is the target of requests.
    pub(crate) fn complete(&self, settings: &mut Settings) -> Result<(), CommandError> {
        let Target::Command(command) = &settings.target else { return Ok(()) };
        // A command of an option has nothing to do with the table.
        if self.table.command.is_none() {
            return Ok(());
        }
        let is_persistent = self.table.persistent == Some(true);
        if is_persistent && settings.protocol == Protocol::Text {
            return Err(CommandError::usage(
                "`persistent = true` needs a protocol with one line per answer, and `text` has none",
            )
            .hint("remove `persistent`, or use `protocol = \"native\"`"));
        }
        let lifetime = if is_persistent { Lifetime::Run } else { Lifetime::Attempt };
        let command = command.clone().with_variables(variables(&self.table)?).with_lifetime(lifetime);
        settings.target = self.place.of(command).into();
        Ok(())
    }

    /// Returns the table of a side without the agent that an option replaces.
    fn table(side: Side, layers: &Layers) -> SideTable {
        let table = layers.config.side.get(side);
        if side == layers.side && (layers.is_overridden("base_url") || layers.is_overridden("agent_cmd")) {
            return SideTable {
                base_url: None,
                command: None,
                start: None,
                setup: None,
                commit: None,
                persistent: None,
                ..table
            };
        }
        table
    }

    /// Returns the settings of the baseline: those of new with what the table of the baseline sets.
    pub(crate) fn baseline_settings(&self, new: &Settings, layers: &Layers) -> Result<Settings, CommandError> {
        let mut settings = Settings { side: Side::Baseline, is_selection: false, ..new.clone() };
        // Headers of the endpoint of new are for that endpoint alone. `apply_http` adds those of the baseline.
        if let Some(mapping) = &layers.config.side.new.http
            && let Ok(own) = mapping.headers(|name| std::env::var(name))
        {
            settings.headers.retain(|header| own.iter().all(|own| own.name() != header.name()));
        }
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
            let config = &layers.config;
            settings.agent = agent_options(&settings.agent, &config.agent, &config.risk, Some(model))?;
        }
        if !table.headers.is_empty() {
            let headers = table.headers.iter().map(|(name, value)| Header::text(name, value));
            settings.headers = environment::headers(&headers.collect::<Vec<_>>()).map_err(CommandError::usage)?;
        }
        self.complete(&mut settings)?;
        self.apply_http(&mut settings)?;
        self.apply_loop(&mut settings);
        Ok(settings)
    }

    /// Sets how often a model is asked for one case, and whether it streams.
    pub(crate) fn apply_loop(&self, settings: &mut Settings) {
        if let Some(max_turns) = self.table.max_turns {
            settings.tools.max_turns = max_turns;
        }
        settings.agent.stream = self.table.stream == Some(true);
    }

    /// Sets how requests are built and answers are read, for the protocols without an agreed format.
    pub(crate) fn apply_http(&self, settings: &mut Settings) -> Result<(), CommandError> {
        let Some(mapping) = &self.table.http else {
            let table = format!("[side.{}.http]", self.side);
            return match settings.protocol {
                Protocol::Http => Err(CommandError::usage(format!("the protocol `http` needs the table `{table}`"))
                    .hint("`counterproof try --input \"Hello\"` proposes its lines; docs/http-agents.md has examples")),
                _ => Ok(()),
            };
        };
        match settings.protocol {
            Protocol::Http => {}
            Protocol::Text => {
                if let Some(key) = mapping.answer_keys().first() {
                    let message = format!("`{key}` of `[side.{}.http]` needs the protocol `http`", self.side);
                    return Err(CommandError::usage(message).hint(
                        "with the protocol `text`, the whole answer is the output: remove `protocol` or the key",
                    ));
                }
            }
            // An option may name another protocol than the file.
            _ => return Ok(()),
        }
        let headers = mapping
            .headers(|name| std::env::var(name))
            .map_err(|error| CommandError::usage(error).hint(format!("it is set in `[side.{}.http]`", self.side)))?;
        settings.headers.retain(|header| headers.iter().all(|own| own.name() != header.name()));
        settings.headers.extend(headers);
        settings.agent.http = Arc::new(mapping.clone());
        Ok(())
    }
}
