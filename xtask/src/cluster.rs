//! The files of `counterproof batch` on real schedulers: Slurm with four nodes of which one is lost, Kubernetes' schemas and the
//! pods under podman, and Dask with two workers; and runs in a bucket of a server that fails every tenth request. What is not
//! installed and cannot be installed is skipped with a line that says so.

use std::process::Command;

use camino::Utf8Path;

use crate::interop::install;
use crate::programs;
use crate::step::{Failure, Step, progress, root};

/// The packages of Debian that have Slurm.
const SLURM: [&str; 3] = ["slurmctld", "slurmd", "slurm-client"];

/// The packages of Debian that run pods without Kubernetes. The tests use `runc`, since `crun` needs cgroups of version 2.
const PODMAN: [&str; 3] = ["podman", "runc", "catatonit"];

/// How many cases and shards run.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Options {
    /// Number of cases on Slurm; a tenth of them run on Dask
    #[arg(long, default_value_t = 20_000)]
    cases: u32,
    /// Number of shards on Slurm; a quarter of them on Dask
    #[arg(long, default_value_t = 32)]
    shards: u32,
}

pub(crate) fn run(options: Options) -> Result<(), Failure> {
    programs::build()?;
    let scratch = root().join("target/cluster");
    install::create(&scratch)?;
    slurm(options, &scratch)?;
    kubernetes(&scratch)?;
    dask(options, &scratch)?;
    s3(&scratch)
}

fn skip(what: &str, why: &str) {
    progress(&format!("==> SKIPPED: {what} ({why})"));
}

fn slurm(options: Options, scratch: &Utf8Path) -> Result<(), Failure> {
    if !has("slurmctld", "-V", &SLURM) {
        skip("Slurm", "slurmctld is not installed, and apt-get cannot install it");
        return Ok(());
    }
    let mut test = Command::new(root().join("tests/cluster/slurm.sh"));
    test.arg(programs::counterproof()).arg(scratch.join("slurm"));
    test.args([options.cases, options.shards].map(|number| number.to_string()));
    Step::new(format!("tests/cluster/slurm.sh: {} cases in {} shards", options.cases, options.shards), test).run()
}

/// Whether a program works, after its packages were installed if it does not.
fn has(program: &str, version: &str, packages: &[&str]) -> bool {
    let works = || Step::new(format!("{program} {version}"), at_sbin(program, &[version])).works();
    if works() {
        return true;
    }
    let mut update = Command::new("apt-get");
    update.args(["update", "-qq"]);
    let _ = Step::new("apt-get update".to_owned(), update).works();
    let mut apt = Command::new("apt-get");
    apt.args(["install", "--yes", "--no-install-recommends", "-qq"]).args(packages);
    let _ = Step::new(format!("apt-get install {}", packages.join(" ")), apt).works();
    works()
}

/// A program of the system, which is not on the path of every user.
fn at_sbin(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.arg(format!("PATH=/usr/sbin:{}", std::env::var("PATH").unwrap_or_default())).arg(name).args(arguments);
    command
}

fn kubernetes(scratch: &Utf8Path) -> Result<(), Failure> {
    let Some(python) = install::python(&install::cached("kubernetes"), &["kubernetes-validate==1.37.0"])? else {
        skip("the schemas of Kubernetes", "kubernetes-validate is not installed");
        return Ok(());
    };
    let mut batch = Command::new(programs::counterproof());
    batch.args([
        "batch",
        "kubernetes",
        "--shards",
        "8",
        "--run-id",
        "night",
        "--",
        "--base-url",
        "http://agent:8787",
        "--rate",
        "50/s",
    ]);
    let printed = batch.output().map_err(|source| Failure::Start { line: "counterproof batch".to_owned(), source })?;
    if !printed.status.success() {
        return Err(Failure::Step("counterproof batch kubernetes".to_owned()));
    }
    let manifest = scratch.join("batch.yaml");
    install::write(&manifest, printed.stdout)?;
    let mut validate = Command::new(python.join("kubernetes-validate"));
    validate.args(["--strict", manifest.as_str()]);
    Step::new("kubernetes-validate --strict batch.yaml".to_owned(), validate).run()?;
    if !has("podman", "--version", &PODMAN) {
        skip("the pods of Kubernetes", "podman is not installed, and apt-get cannot install it");
        return Ok(());
    }
    let mut test = Command::new(root().join("tests/cluster/podman.sh"));
    test.arg(programs::counterproof()).arg(scratch.join("podman"));
    test.args(["200", "3"]).arg(python.join("python"));
    Step::new("tests/cluster/podman.sh: 200 cases in 3 pods".to_owned(), test).run()
}

fn dask(options: Options, scratch: &Utf8Path) -> Result<(), Failure> {
    let Some(python) = install::python(&install::cached("dask"), &["distributed==2026.8.0"])? else {
        skip("Dask", "distributed is not installed");
        return Ok(());
    };
    let (cases, shards) = (options.cases / 10, (options.shards / 4).max(1));
    let mut test = Command::new(root().join("tests/cluster/dask.sh"));
    test.arg(programs::counterproof()).arg(scratch.join("dask"));
    test.args([cases, shards].map(|number| number.to_string())).arg(python);
    Step::new(format!("tests/cluster/dask.sh: {cases} cases in {shards} shards"), test).run()
}

/// Cases that run in a bucket. The server of the test answers some hundred requests a second.
const BUCKET_CASES: &str = "200";

fn s3(scratch: &Utf8Path) -> Result<(), Failure> {
    let Some(python) = install::python(&install::cached("s3"), &["moto[s3]==5.2.5", "flask", "flask-cors"])? else {
        skip("runs in a bucket", "moto is not installed");
        return Ok(());
    };
    let mut test = Command::new(root().join("tests/cluster/s3.sh"));
    test.arg(programs::counterproof()).arg(scratch.join("s3")).arg(BUCKET_CASES).arg(python);
    Step::new(format!("tests/cluster/s3.sh: {BUCKET_CASES} cases"), test).run()
}
