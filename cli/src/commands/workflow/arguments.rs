//! `counterproof workflow run`: the arguments of a run, and the settings that they mean.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use counterproof_artifact::Exit;
use counterproof_contracts::contract::{Contract, ContractId};
use counterproof_contracts::store::Store;
use counterproof_store::read_file;
use counterproof_workflow::model::Price;
use counterproof_workflow::run::{ForgeKind, Limits, ModelSettings, Settings, Workflow, start};
use counterproof_workflow::tools::SandboxChoice;
use serde_json::{Map, Value, json};

use super::drive::{OPENAI_BASE_URL, Outside, WholeUrls, base_url, control, drive, failed, home, secrets};
use crate::command_error::CommandError;
use crate::commands::ledger::{Place, age};
use crate::streams::Streams;

/// Largest specification in a file, in bytes.
const MAX_SPECIFICATION: u64 = 1 << 20;

/// Run a workflow.
///
/// `fix-failing-test` needs `--test`, `implement-feature` needs `--spec`. The commands that run one test, all tests and the linter
/// are found by the files of the repository, and printed.
///
/// The result goes to standard output, as JSON with `--json`. Progress goes to standard error.
///
/// Exit code: 0: success. 1: failure; `error` says why. 2: invalid arguments, or no test command was found. 3: the repository, the
/// ledger or a file could not be read or written. 4: paused or interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do
    #[arg(value_enum)]
    workflow: WorkflowName,

    /// Repository: a folder, or a URL that git can clone
    #[arg(long, value_name = "DIR|URL")]
    repo: String,

    /// Branch to start from [default: the branch that is checked out]
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,

    /// Failing test: its id, a test file, or the `file://` URL of a CI log
    #[arg(long, value_name = "ID|PATH|CI-JOB-URL", required_if_eq("workflow", "fix-failing-test"))]
    test: Option<String>,

    /// Specification of the feature, or `@FILE`
    #[arg(long, value_name = "TEXT|@FILE", required_if_eq("workflow", "implement-feature"))]
    spec: Option<String>,

    /// File that the change is about; may be repeated
    #[arg(long, value_name = "PATH")]
    target_file: Vec<String>,

    /// File to follow as an example; may be repeated
    #[arg(long, value_name = "PATH")]
    example: Vec<String>,

    /// Title of the session [default: the test or the specification]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Base URL of an OpenAI-compatible model, such as `http://localhost:8000/v1`; required without `--agent-cmd`. The key is read
    /// from `OPENAI_API_KEY` [default: `OPENAI_BASE_URL`]
    #[arg(long, value_name = "URL")]
    model_url: Option<String>,

    /// Name of the model; required without `--agent-cmd`
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// Ask for whole answers instead of streams
    #[arg(long)]
    no_stream: bool,

    /// Run this agent instead of the built-in one, by `sh -c`. The task is on its standard input and in `COUNTERPROOF_TASK`
    #[arg(long, value_name = "CMD")]
    agent_cmd: Option<String>,

    /// Command that runs one test, with `{test}` in its place
    #[arg(long, value_name = "CMD")]
    test_cmd: Option<String>,

    /// Command that runs all tests
    #[arg(long, value_name = "CMD")]
    suite_cmd: Option<String>,

    /// Command that formats and checks the code
    #[arg(long, value_name = "CMD")]
    lint_cmd: Option<String>,

    /// Command of the local forge's CI [default: the command that runs all tests]
    #[arg(long, value_name = "CMD")]
    ci_cmd: Option<String>,

    /// Where the pull request is opened
    #[arg(long, value_enum, default_value_t = ForgeName::Local)]
    forge: ForgeName,

    /// Longest time to wait for the CI, such as `30m`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ci_timeout: Option<Duration>,

    /// Longest time of a test, suite or lint command
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    command_timeout: Duration,

    /// Attempts before the run fails; a red CI is one
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    max_iterations: u64,

    /// Requests to the model before the run fails, repeated ones included
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    max_turns: u64,

    /// Tokens before the run fails
    #[arg(long, value_name = "COUNT")]
    max_tokens: Option<u64>,

    /// Cost before the run fails; needs `--price`
    #[arg(long, value_name = "AMOUNT", requires = "price", value_parser = amount)]
    max_cost: Option<f64>,

    /// Price of a million prompt and completion tokens, such as `2.50,10`
    #[arg(long, value_name = "IN,OUT")]
    price: Option<Price>,

    /// Turns between two checkpoints
    #[arg(long, value_name = "TURNS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    checkpoint_every: u64,

    /// File or folder that checkpoints have although git ignores it; may be repeated
    #[arg(long, value_name = "PATH")]
    include_ignored: Vec<String>,

    /// Largest new content of a checkpoint, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    max_snapshot: u64,

    /// Sandbox of the agent's commands: `landlock`, `bwrap`, `none`, or the first of them that this system has
    #[arg(long, value_name = "NAME", default_value = "auto")]
    sandbox: SandboxChoice,

    /// Policy that decides about the agent's tool calls, as for `guard`
    #[arg(long, value_name = "FILE")]
    policy: Option<Utf8PathBuf>,

    /// Contract that must hold before the change is committed
    #[arg(long, value_name = "ID")]
    contract: Option<String>,

    /// Store of the contract
    #[arg(long, value_name = "FILE", default_value = ".counterproof/contracts.jsonl")]
    contract_store: Utf8PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WorkflowName {
    /// Make a failing test pass
    FixFailingTest,
    /// Implement a small feature with its tests
    ImplementFeature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ForgeName {
    /// A bare repository next to the ledger, with pull requests as files
    Local,
    /// GitHub, with the token in `GITHUB_TOKEN`
    Github,
}

/// The settings that a resume can replace.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplacedArgs {
    /// Base URL of the model
    #[arg(long, value_name = "URL")]
    model_url: Option<String>,

    /// Name of the model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// Command of the local forge's CI
    #[arg(long, value_name = "CMD")]
    ci_cmd: Option<String>,

    /// Longest time to wait for the CI, such as `30m`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ci_timeout: Option<Duration>,

    /// Attempts before the run fails
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    max_iterations: Option<u64>,

    /// Requests to the model before the run fails
    #[arg(long, value_name = "COUNT")]
    max_turns: Option<u64>,

    /// Tokens before the run fails
    #[arg(long, value_name = "COUNT")]
    max_tokens: Option<u64>,

    /// Cost before the run fails
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    max_cost: Option<f64>,

    /// Price of a million prompt and completion tokens
    #[arg(long, value_name = "IN,OUT")]
    price: Option<Price>,
}

pub(super) fn run(args: &Args, place: &Place, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut settings = settings(args)?;
    let mut urls = WholeUrls::default();
    urls.take_repository(&mut settings.source);
    urls.take_model(&mut settings.model);
    refuse_key_in_query(&settings, &urls)?;
    let outside = Outside::new(place)?;
    let home = home(place)?;
    let secrets = secrets(&settings, urls)?;
    let begun = start(&home, settings, args.title.clone(), &secrets, control(&outside))
        .map_err(|error| failed(error, place))?;
    drive(begun, &home, place, streams)
}

fn settings(args: &Args) -> Result<Settings, CommandError> {
    let workflow = match args.workflow {
        WorkflowName::FixFailingTest => Workflow::FixFailingTest,
        WorkflowName::ImplementFeature => Workflow::ImplementFeature,
    };
    let url = model_url(args)?;
    Ok(Settings {
        workflow,
        source: args.repo.clone(),
        branch: args.branch.clone(),
        test: args.test.clone(),
        specification: args.spec.as_deref().map(specification).transpose()?,
        target_files: args.target_file.clone(),
        examples: args.example.clone(),
        model: ModelSettings {
            url,
            had_credentials: false,
            name: args.model.clone(),
            is_streaming: !args.no_stream,
            price: args.price,
        },
        test_command: args.test_cmd.clone(),
        suite_command: args.suite_cmd.clone(),
        lint_command: args.lint_cmd.clone(),
        ci_command: args.ci_cmd.clone(),
        agent_command: args.agent_cmd.clone(),
        forge: match args.forge {
            ForgeName::Local => ForgeKind::Local,
            ForgeName::Github => ForgeKind::Github,
        },
        ci_timeout: args.ci_timeout.map(|time| time.as_secs_f64()),
        command_timeout: args.command_timeout.as_secs_f64(),
        limits: Limits {
            iterations: args.max_iterations,
            // A model that repeats itself would never end.
            turns: Some(args.max_turns),
            tokens: args.max_tokens,
            cost: args.max_cost,
        },
        checkpoint_every: args.checkpoint_every,
        include_ignored: args.include_ignored.clone(),
        max_snapshot_bytes: args.max_snapshot << 20,
        sandbox: args.sandbox,
        policy: args.policy.as_ref().map(|path| absolute(path)).transpose()?,
        contract: args.contract.as_deref().map(|id| contract(id, &args.contract_store)).transpose()?,
    })
}

/// Returns the URL of the model. The one of the environment is not used for all requests of an agent command: it may send other ones
/// than those of OpenAI.
fn model_url(args: &Args) -> Result<Option<String>, CommandError> {
    if args.agent_cmd.is_some() {
        return Ok(args.model_url.clone());
    }
    let url = args.model_url.clone().or_else(|| base_url(OPENAI_BASE_URL));
    let missing = match (&url, &args.model) {
        (Some(_), Some(_)) => return Ok(url),
        (None, Some(_)) => "`--model-url URL` is",
        (Some(_), None) => "`--model NAME` is",
        (None, None) => "`--model-url URL` and `--model NAME` are",
    };
    let error = CommandError::usage(format!("{missing} missing, which the built-in agent needs"));
    Err(error.hint("`--agent-cmd CMD` runs another agent, without them"))
}

/// Replaces settings, and returns those that were replaced, for the record.
pub(crate) fn replace(args: &ReplacedArgs, settings: &mut Settings) -> Result<(Value, WholeUrls), CommandError> {
    let (mut replaced, mut urls) = (Map::new(), WholeUrls::default());
    let mut note = |name: &str, value: Value| drop(replaced.insert(name.to_owned(), value));
    if let Some(url) = &args.model_url {
        settings.model.url = Some(url.clone());
        urls.take_model(&mut settings.model);
        refuse_key_in_query(settings, &urls)?;
        note("model_url", json!(settings.model.url));
    }
    if let Some(name) = &args.model {
        settings.model.name = Some(name.clone());
        note("model", json!(name));
    }
    if let Some(command) = &args.ci_cmd {
        settings.ci_command = Some(command.clone());
        note("ci_cmd", json!(command));
    }
    if let Some(time) = args.ci_timeout {
        settings.ci_timeout = Some(time.as_secs_f64());
        note("ci_timeout", json!(time.as_secs_f64()));
    }
    if let Some(count) = args.max_iterations {
        settings.limits.iterations = count;
        note("max_iterations", json!(count));
    }
    if let Some(count) = args.max_turns {
        settings.limits.turns = Some(count);
        note("max_turns", json!(count));
    }
    if let Some(count) = args.max_tokens {
        settings.limits.tokens = Some(count);
        note("max_tokens", json!(count));
    }
    if let Some(cost) = args.max_cost {
        settings.limits.cost = Some(cost);
        note("max_cost", json!(cost));
    }
    if let Some(price) = args.price {
        settings.model.price = Some(price);
        note("price", json!(price));
    }
    if args.max_cost.is_some() && settings.model.price.is_none() {
        let error = CommandError::usage("`--max-cost` needs a price, and the session has none");
        return Err(error.hint("pass the prices of a million tokens: `--price IN,OUT`"));
    }
    Ok((Value::Object(replaced), urls))
}

/// The URL of the agent's proxy has the query of the model URL.
fn refuse_key_in_query(settings: &Settings, urls: &WholeUrls) -> Result<(), CommandError> {
    if settings.agent_command.is_some() && urls.model_has_query() {
        let error = CommandError::usage("the agent of `--agent-cmd` would see the key in the query of `--model-url`");
        return Err(error.hint("set the key in `OPENAI_API_KEY`"));
    }
    Ok(())
}

fn specification(text: &str) -> Result<String, CommandError> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let bytes = read_file::read(Utf8Path::new(path), MAX_SPECIFICATION)
        .map_err(|error| CommandError::io(format!("cannot read the specification `{path}`: {error}")))?;
    String::from_utf8(bytes).map_err(|_| CommandError::usage(format!("the specification `{path}` is not UTF-8")))
}

fn contract(id: &str, store: &Utf8Path) -> Result<Box<Contract>, CommandError> {
    let parsed: ContractId = id.parse().map_err(CommandError::usage)?;
    let store = Store::new(store);
    let found = store.status(&parsed).map_err(CommandError::io)?;
    let status = found.ok_or_else(|| {
        CommandError::usage(format!("the store `{}` has no contract `{id}`", store.path()))
            .hint("add it with `counterproof contract add`, or name another store with `--contract-store`")
    })?;
    store.latest(&status).map(Box::new).map_err(CommandError::io)
}

fn absolute(path: &Utf8Path) -> Result<String, CommandError> {
    let path = camino::absolute_utf8(path).map_err(CommandError::io)?;
    Ok(path.into_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    age(text)?.try_into().map_err(|_| "the time is too long".to_owned())
}

fn amount(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.parse().ok();
    amount
        .filter(|amount| amount.is_finite() && *amount >= 0.0)
        .ok_or_else(|| "expected a number of 0 or more".to_owned())
}
