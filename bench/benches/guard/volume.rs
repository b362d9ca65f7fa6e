//! Large messages: how fast they pass, and how much memory they take.

use std::io::{BufRead as _, BufReader, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::{Silence, Subject, call};

/// Bytes of arguments of a large call.
const SIZE: usize = 4 << 20;

/// Large calls, one after another.
const CALLS: usize = 20;

/// Large calls at once.
const AT_ONCE: usize = 50;

/// A program that does not pass a large call in this time does not pass it.
const WITHIN: Duration = Duration::from_secs(20);

/// Measures large calls. A subject that does not pass one is not measured further.
pub(crate) fn measure(subjects: &[Subject]) {
    println!("calls with 4 MiB of arguments, answered with as much");
    println!("{:<28}{:>14}{:>26}{:>22}", "", "time of one", "both directions", "memory, 50 at once");
    for subject in subjects {
        match one_after_another(subject) {
            Err(silence) => println!("{:<28}{silence:?}: no answer within {} s", subject.name, WITHIN.as_secs()),
            Ok(time) => {
                let rate = 2.0 * SIZE as f64 / f64::from(1 << 20) / time.as_secs_f64();
                let time = format!("{:.1} ms", time.as_secs_f64() * 1e3);
                println!("{:<28}{time:>14}{:>26}{:>22}", subject.name, format!("{rate:.0} MiB/s"), at_once(subject));
            }
        }
    }
    println!();
}

/// Returns the median time of one call.
fn one_after_another(subject: &Subject) -> Result<Duration, Silence> {
    let mut peer = subject.connect();
    let mut times = Vec::new();
    for number in 0..CALLS {
        let request = call(number, SIZE) + "\n";
        let started = Instant::now();
        let mut input = peer.take_input();
        let writer = thread::spawn(move || {
            // Fails if the program ends, which the reader reports.
            let _ = input.write_all(request.as_bytes());
            input
        });
        let answer = peer.read_within(WITHIN)?;
        assert!(answer.len() > SIZE, "{}: {}", subject.name, &answer[..answer.len().min(300)]);
        times.push(started.elapsed());
        peer.give_input(writer.join().unwrap());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Sends many large calls while reading their answers. Returns the largest memory of the processes of the subject.
fn at_once(subject: &Subject) -> String {
    let mut peer = subject.connect();
    let mut input = peer.take_input();
    let mut output = peer.take_output();
    let writer = thread::spawn(move || {
        for number in 0..AT_ONCE {
            input.write_all((call(number, SIZE) + "\n").as_bytes()).unwrap();
        }
        input
    });
    for _ in 0..AT_ONCE {
        skip_line(&mut output);
    }
    let memory = peak_memory(peer.child.id());
    peer.give_input(writer.join().unwrap());
    memory.map_or_else(|| "none".to_owned(), |bytes| format!("{:.1} MiB", bytes as f64 / 1024.0 / 1024.0))
}

fn skip_line(output: &mut BufReader<std::process::ChildStdout>) {
    loop {
        let available = output.fill_buf().unwrap();
        assert!(!available.is_empty(), "the connection ended");
        let end = memchr::memchr(b'\n', available);
        let used = end.map_or(available.len(), |end| end + 1);
        output.consume(used);
        if end.is_some() {
            return;
        }
    }
}

/// The largest resident memory of a process and its children, without the server. `None` if the process is the server.
fn peak_memory(process: u32) -> Option<u64> {
    let command = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let words: Vec<_> = command.split(|byte| *byte == 0).collect();
    // The program, `echo`, and the empty word after the last zero byte.
    if matches!(words[..], [_, b"echo", b""]) {
        return None;
    }
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().ok()?;
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| peak_memory(child.parse().ok()?));
    Some(peak * 1024 + children.sum::<u64>())
}
