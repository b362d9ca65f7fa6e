//! Measures the runner against a trivial local server: `cargo xtask bench-runner`. Not a test: it holds nothing against a
//! limit, and its figures mean something only beside each other.
//!
//! Server, load generator and runner are processes of their own, so that each has its own memory; all are this program.
//! Only loopback is used.

mod load;
mod machine;
mod measure;
mod server;

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["serve"] => server::serve(),
        ["load", url, connections] => load::generate(url, connections.parse()?),
        ["run", url, folder, cases, concurrency] => {
            measure::run(url, camino::Utf8Path::new(folder), cases.parse()?, concurrency.parse()?)
        }
        // Cargo itself passes `--bench` to benches, and nothing to examples.
        [] => measure::all(),
        _ => Err("unknown arguments".into()),
    }
}

/// Starts this program as another process with a role of its own.
fn role(arguments: &[&str]) -> Outcome<Child> {
    let program = std::env::current_exe()?;
    Ok(Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

/// The first line that a process says.
fn first_line(child: &mut Child) -> Outcome<String> {
    let out = child.stdout.take().ok_or("no output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    if line.is_empty() { Err("a process of the bench said nothing".into()) } else { Ok(line.trim().to_owned()) }
}

/// Runs a process to its end, and gives the line that it said.
fn answer(arguments: &[&str]) -> Outcome<String> {
    let mut child = role(arguments)?;
    let line = first_line(&mut child);
    let status = child.wait()?;
    if status.success() { line } else { Err(format!("{arguments:?} ended with {status}").into()) }
}

/// Says a line on standard output.
fn say(line: &str) -> Outcome {
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(())
}
