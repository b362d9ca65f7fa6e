//! Measures the runner against a trivial local server: `cargo bench -p counterproof-bench --bench runner`. Not a test: it checks no limit, and its
//! figures are only comparable with each other.
//!
//! Server, load generator and runner are separate processes of this program, so that each has its own memory.
//! Only loopback is used.

mod load;
mod measure;
mod server;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use counterproof_bench::{Outcome, arguments, machine};

fn main() -> Outcome {
    let arguments = arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["serve"] => server::serve(),
        ["load", url, connections] => load::generate(url, connections.parse()?),
        ["run", url, folder, cases, concurrency] => {
            measure::run(url, camino::Utf8Path::new(folder), cases.parse()?, concurrency.parse()?)
        }
        [] => {
            print_line(&format!("machine: {}", machine()))?;
            measure::all()
        }
        _ => Err("unknown arguments".into()),
    }
}

/// Starts this program as another process with the given role.
fn role(arguments: &[&str]) -> Outcome<Child> {
    let program = std::env::current_exe()?;
    Ok(Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

/// Returns the first line of a process's output.
fn first_line(child: &mut Child) -> Outcome<String> {
    let out = child.stdout.take().ok_or("no output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    if line.is_empty() { Err("a benchmark process printed nothing".into()) } else { Ok(line.trim().to_owned()) }
}

/// Runs a process to its end, and returns its first line of output.
fn answer(arguments: &[&str]) -> Outcome<String> {
    let mut child = role(arguments)?;
    let line = first_line(&mut child);
    let status = child.wait()?;
    if status.success() { line } else { Err(format!("{arguments:?} ended with {status}").into()) }
}

/// Prints a line to standard output.
fn print_line(line: &str) -> Outcome {
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(())
}
