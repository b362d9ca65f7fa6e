//! The cost of the guard for each call, and its behaviour next to that of another program between client and server.
//!
//! `bench_guard measure NAME=COMMAND…`: each command relays standard input and output between a client and the server that follows
//! it, or is empty for a direct connection. The first is what the others are compared with.
//!
//! `bench_guard behave NAME=COMMAND…`: what each does with messages that a relay may mishandle.
//!
//! `bench_guard echo` is the server, and `bench_guard relay COMMAND…` a relay that does nothing else. The client and the server are
//! of our own, so that their noise does not hide the cost.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark prints its figures and may panic"
)]

mod behaviour;
mod echo;
mod latency;
mod peer;
mod relay;
mod volume;

use peer::Subject;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match mode.as_str() {
        "echo" => echo::serve(),
        "relay" => relay::run(&rest),
        "measure" => {
            let subjects: Vec<Subject> = rest.iter().map(|argument| Subject::parse(argument)).collect();
            latency::measure(&subjects);
            volume::measure(&subjects);
        }
        "behave" => behaviour::compare(&rest.iter().map(|argument| Subject::parse(argument)).collect::<Vec<_>>()),
        _ => panic!("usage: bench_guard measure|behave NAME=COMMAND…"),
    }
}
