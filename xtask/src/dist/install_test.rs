//! Installs the wheel and the packages of npm into empty folders, and runs the programs with a PATH without Rust.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use crate::folders;
use crate::step::{Failure, Step, progress};

/// The longest time from an empty folder to the end of the demo, without the installation.
const DEMO_WITHIN: Duration = Duration::from_secs(10);

pub(super) fn run(out: &Utf8Path, wheels: &[Utf8PathBuf], packages: &[Utf8PathBuf]) -> Result<(), Failure> {
    let temporary = tempfile::tempdir().map_err(|source| Failure::File { path: out.to_owned(), source })?;
    let folder = Utf8Path::from_path(temporary.path()).unwrap_or(out);
    for wheel in wheels {
        let programs = install_wheel(&folder.join("python"), wheel)?;
        try_programs(&folder.join("with-wheel"), programs.as_deref(), "the wheel")?;
    }
    let programs = install_packages(&folder.join("npm"), packages)?;
    try_programs(&folder.join("with-npm"), programs.as_deref(), "the packages of npm")
}

/// Installs a wheel into an empty environment, and returns the folder of its programs. Returns `None` without Python.
fn install_wheel(folder: &Utf8Path, wheel: &Utf8Path) -> Result<Option<Utf8PathBuf>, Failure> {
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv", folder.as_str()]);
    if !Step::new("python3 -m venv".to_owned(), environment).works() {
        return Ok(None);
    }
    let programs = folder.join("bin");
    let mut pip = command(&programs.join("python"), &programs, folder);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel.as_str()]);
    Step::new(format!("pip install {wheel}"), pip).run()?;
    Ok(Some(programs))
}

/// Installs packages into an empty folder, and returns the folder of their programs. Returns `None` without npm.
fn install_packages(folder: &Utf8Path, packages: &[Utf8PathBuf]) -> Result<Option<Utf8PathBuf>, Failure> {
    let mut npm = Command::new("npm");
    npm.arg("--version");
    if !Step::new("npm --version".to_owned(), npm).works() {
        return Ok(None);
    }
    folders::create(folder)?;
    let programs = folder.join("node_modules/.bin");
    let mut npm = command("npm".into(), &programs, folder);
    npm.args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel", "error", "--prefix", folder.as_str()]);
    npm.args(packages);
    Step::new("npm install the packages".to_owned(), npm).run()?;
    Ok(Some(programs))
}

/// A command that finds the installed programs, and no programs of Rust.
fn command(program: &Utf8Path, programs: &Utf8Path, folder: &Utf8Path) -> Command {
    let path = env::var_os("PATH").unwrap_or_default();
    let without_rust =
        env::split_paths(&path).filter(|folder| !["cargo", "rustc"].iter().any(|it| folder.join(it).exists()));
    let path = env::join_paths([programs.as_std_path().to_owned()].into_iter().chain(without_rust));
    let mut command = Command::new(program);
    command.current_dir(folder).env("PATH", path.unwrap_or_default());
    command
}

fn try_programs(folder: &Utf8Path, programs: Option<&Utf8Path>, what: &str) -> Result<(), Failure> {
    let Some(programs) = programs else {
        progress(&format!("==> skipped: {what} (Python or npm is not installed)"));
        return Ok(());
    };
    folders::create(folder)?;
    let step = |program: &str, arguments: &[&str]| {
        let mut command = command(&programs.join(program), programs, folder);
        command.args(arguments).stdout(Stdio::null());
        Step::new(format!("{program} {} from {what}", arguments.join(" ")), command)
    };
    step("safe-run", &["--help"]).run()?;
    let start = Instant::now();
    step("counterproof", &["demo"]).run()?;
    let elapsed = start.elapsed();
    if elapsed > DEMO_WITHIN {
        return Err(Failure::Interop(format!("the demo took {:.1} s", elapsed.as_secs_f64())));
    }
    step("counterproof", &["init", "--agent", "http", "--ci", "github"]).run()?;
    // The built-in agent knows the cases of the demo, and speaks the native protocol.
    let agent = DemoAgent::start(command(&programs.join("counterproof"), programs, folder))?;
    let config =
        format!("[run]\ncases = \"counterproof-demo/cases.json\"\n\n[side.new]\nbase_url = \"{}\"\n", agent.url);
    folders::write(&folder.join("demo.toml"), config)?;
    let check = ["check", "--config", "demo.toml"];
    let code = step("counterproof", &check).code()?;
    // One case of the demo meets no expectation on its baseline.
    if code != Some(0) && code != Some(1) || !folder.join("report/index.html").is_file() {
        return Err(Failure::Interop(format!("`counterproof check` from {what} ended with {code:?}")));
    }
    Ok(())
}

/// The built-in agent, which ends with this value.
struct DemoAgent {
    process: Child,
    url: String,
}

impl DemoAgent {
    fn start(mut command: Command) -> Result<Self, Failure> {
        let failed = |source| Failure::Start { line: "counterproof demo-agent".to_owned(), source };
        command.args(["demo-agent", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(failed)?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            // The line comes when the agent listens.
            BufReader::new(output).read_line(&mut line).map_err(failed)?;
        }
        let url = line.rsplit(' ').next().unwrap_or_default().trim().to_owned();
        Ok(Self { process, url })
    }
}

impl Drop for DemoAgent {
    fn drop(&mut self) {
        // The launcher of npm passes this signal on, unlike SIGKILL.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}
