//! `counterproof batch`: prints the files that run shards on a scheduler.

use std::num::NonZeroU32;

use camino::Utf8PathBuf;
use counterproof_artifact::{Exit, RunId, Side};
use counterproof_bucket::BucketUrl;
use serde_json::json;

use crate::command_error::CommandError;
use crate::resume_command::quoted;
use crate::streams::Streams;
use crate::value_parsers::{at_least_one, new_run_id};
use crate::working_copies::bucket_url;

/// Print a file that runs cases in shards on Slurm, Kubernetes or Dask.
///
/// The file starts `counterproof run` once per shard, then merges the shards and compares the run with the latest baseline. All
/// machines need the program and the folder of the cases. A shard that is started twice, because its node is lost, is answered once.
/// `--rate` of the run is divided by the number of shards.
///
/// Exit code 0: printed. 2: the arguments are invalid.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The scheduler
    #[arg(value_enum)]
    scheduler: Scheduler,

    /// Number of shards
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    shards: NonZeroU32,

    /// Cases to run
    #[arg(long, value_name = "PATH", default_value = "cases.json")]
    cases: Utf8PathBuf,

    /// Side of the comparison that the run belongs to
    #[arg(long, value_name = "baseline|new", default_value = "new")]
    side: Side,

    /// ID of the run, required for Kubernetes; the files for Slurm and Dask also take one when they are started [default there:
    /// `night-` and the date of the start]
    #[arg(long, value_name = "ID", value_parser = new_run_id, required_if_eq("scheduler", "kubernetes"))]
    run_id: Option<RunId>,

    /// Folder of all runs
    #[arg(long, value_name = "RUNS", default_value = "runs")]
    out: Utf8PathBuf,

    /// Configuration file of the run and of the comparison [default: counterproof.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<Utf8PathBuf>,

    /// Kubernetes: image with the program
    #[arg(long, default_value = "counterproof:latest")]
    image: String,

    /// Kubernetes: volume claim with the folder of the cases
    #[arg(long, default_value = "counterproof")]
    claim: String,

    /// Options of `counterproof run`, such as `--base-url http://agent:8787 --rate 50/s`
    #[arg(last = true, value_name = "RUN OPTIONS")]
    options: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scheduler {
    /// A shell script that submits an array and a dependent job
    Slurm,
    /// A manifest with an indexed Job and a final Job
    Kubernetes,
    /// A Python script
    Dask,
}

pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let reserved = [
        "--run-id",
        "--resume",
        "--shard",
        "--take-over",
        "--side",
        "--out",
        "--cases",
        "--repeat",
        "--confirm",
        "--config",
    ];
    if let Some(option) = args.options.iter().find(|option| reserved.iter().any(|name| is_option(option, name))) {
        return Err(CommandError::usage(format!("`{option}` cannot be among the options of the run")).hint(
            "the file sets these options; pass `--cases`, `--side`, `--run-id`, `--out` and `--config` before `--`",
        ));
    }
    if BucketUrl::is_bucket(args.out.as_str()) {
        // A printed file is kept, and an address with a password would be in it.
        bucket_url(&args.out)?;
    }
    let id = args.run_id.as_ref().map(RunId::as_str).unwrap_or_default();
    if args.scheduler == Scheduler::Kubernetes && !is_label(id) {
        return Err(CommandError::usage(format!("`{id}` is not a name of a Job"))
            .hint("use up to 50 lowercase letters, digits and `-`, with a letter or digit at both ends"));
    }
    streams.print_line(file(args).trim_end())?;
    Ok(Exit::Done)
}

fn is_option(word: &str, name: &str) -> bool {
    word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// Whether a text is a name of an object of Kubernetes, with room for a suffix.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 50 && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn file(args: &Args) -> String {
    let template = match args.scheduler {
        Scheduler::Slurm => include_str!("slurm.sh"),
        Scheduler::Kubernetes => include_str!("kubernetes.yaml"),
        Scheduler::Dask => include_str!("dask.py"),
    };
    let shards = args.shards.to_string();
    let folder = args.out.join(args.side.as_str());
    let id = args.run_id.as_ref().map(RunId::as_str).unwrap_or_default();
    let merged = folder.join(id);
    let fixed = [
        "counterproof",
        "run",
        "--cases",
        args.cases.as_str(),
        "--side",
        args.side.as_str(),
        "--out",
        args.out.as_str(),
    ];
    let run: Vec<&str> = fixed.into_iter().chain(config(args)).chain(args.options.iter().map(String::as_str)).collect();
    let shell = |words: &[&str]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    // The folder of the run follows, whose id is known when the file is started.
    let compare = compare_words(args);
    let shard = format!("auto/{shards}");
    let run_shard = [&run[..], &["--run-id", id, "--shard", &shard, "--take-over"]].concat();
    let merge = ["counterproof", "merge", "--shards", &shards, "--wait", "24h", "--out", merged.as_str()];
    // Kubernetes replaces `$(NAME)` in commands, and reads `$$` as a dollar sign.
    let container =
        |words: &[&str]| json!(words.iter().map(|word| word.replace('$', "$$")).collect::<Vec<_>>()).to_string();
    let values = [
        ("SHARDS", shards.clone()),
        ("LAST", (args.shards.get() - 1).to_string()),
        ("CASES", args.cases.as_str().replace(|c: char| c.is_control() || matches!(c, '"' | '\\'), "_")),
        ("ID", if id.is_empty() { "night-$(date +%Y-%m-%d)".to_owned() } else { id.to_owned() }),
        ("ID_TEXT", if id.is_empty() { "time.strftime(\"night-%Y-%m-%d\")".to_owned() } else { json!(id).to_string() }),
        ("RUN", shell(&run)),
        ("RUN_LIST", json!(run).to_string()),
        ("RUN_CONTAINER", container(&run_shard)),
        ("MERGE_CONTAINER", container(&merge)),
        ("COMPARE_CONTAINER", container(&[&compare[..], &[merged.as_str()]].concat())),
        ("FOLDER", quoted(folder.as_str()).into_owned()),
        ("FOLDER_TEXT", json!(folder).to_string()),
        ("COMPARE_SHELL", format!("{} {}/\"$RUN_ID\"", shell(&compare), quoted(folder.as_str()))),
        ("COMPARE_LIST", json!(compare).to_string()),
        ("IMAGE", json!(args.image).to_string()),
        ("CLAIM", json!(args.claim).to_string()),
    ];
    filled(template, &values)
}

/// The words of the comparison without the folder of the run. A baseline is validated instead.
fn compare_words(args: &Args) -> Vec<&str> {
    match args.side {
        Side::Baseline => vec!["counterproof", "validate"],
        Side::New => {
            let fixed = ["counterproof", "compare", "--cases", args.cases.as_str(), "--runs", args.out.as_str()];
            fixed.into_iter().chain(config(args)).chain(["--new"]).collect()
        }
    }
}

fn config(args: &Args) -> impl Iterator<Item = &str> {
    args.config.iter().flat_map(|path| ["--config", path.as_str()])
}

/// Replaces each `{{NAME}}` of a template in one pass, so that a value may contain braces.
fn filled(template: &str, values: &[(&str, String)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        text.push_str(values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value));
        rest = after;
    }
    text + rest
}
