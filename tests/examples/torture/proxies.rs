//! Clients of `guard proxy` that announce long bodies and send them slowly, or not at all. Another client is answered, and the memory
//! of the proxy follows what arrived.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::process::Signal;

use crate::attempt::{Attempt, Fault, Outcome, ensure};
use crate::process::Running;

/// Far above the time to start or to answer, also on a busy machine.
const WITHIN: Duration = Duration::from_mins(1);

/// Largest memory of a proxy whose clients send a few KiB each.
const MOST_MEMORY_KIB: u64 = 128 * 1024;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}"#;

pub(crate) fn run(attempt: &mut Attempt) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let upstream = format!("http://{}/mcp", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_requests(stream));
        }
    });
    let events = attempt.sandbox.path("events.jsonl").to_string();
    let line = ["guard", "proxy", "--listen", "127.0.0.1:0", "--server-name", "tools", "--upstream", &upstream];
    // The short one is far above the time in which a client sends its request, also on a busy machine.
    let (timeout, silence) = if attempt.random.bool() { ("2s", WITHIN) } else { ("30s", Duration::from_millis(100)) };
    let limits = ["--client-timeout", timeout, "--max-connections", "200", "--events", &events];
    let proxy = Running::start(attempt.sandbox.command(line.into_iter().chain(limits)))?;
    let outcome = attack(&proxy, silence, &mut attempt.random);
    // Without open connections, so that the proxy has nothing to wait for.
    proxy.send(Signal::TERM);
    let ended = proxy.wait()?;
    outcome.and_then(|()| ended.has_code(0))
}

/// Attacks the proxy with clients that stall up to a time, and calls tools meanwhile.
fn attack(proxy: &Running, silence: Duration, random: &mut Rng) -> Outcome {
    let address = address(proxy)?;
    let clients: Vec<_> = (0..random.usize(1..150))
        .map(|_| {
            let seed = random.u64(..);
            thread::spawn(move || misbehave(address, silence, &mut Rng::with_seed(seed)))
        })
        .collect();
    let mut outcome = Ok(());
    for _ in 0..random.usize(1..5) {
        outcome = outcome.and_then(|()| call(address));
    }
    let memory = proxy.memory_kib();
    for client in clients {
        let _ = client.join();
    }
    outcome?;
    call(address)?;
    // Only Linux reports it.
    ensure!(memory.is_none_or(|memory| memory < MOST_MEMORY_KIB), "the proxy has {memory:?} KiB in memory");
    Ok(())
}

/// Waits for the line that names the address.
fn address(proxy: &Running) -> Result<SocketAddr, Fault> {
    let start = Instant::now();
    while start.elapsed() < WITHIN {
        let printed = proxy.stdout_so_far()?;
        let line = printed.split_once('\n').map(|(line, _)| line).and_then(|line| line.split("http://").nth(1));
        if let Some(address) = line.and_then(|url| url.split('/').next()?.parse().ok()) {
            return Ok(address);
        }
        thread::sleep(Duration::from_millis(2));
    }
    Err(Fault::new("the proxy did not start"))
}

/// Calls a tool as a client should.
fn call(address: SocketAddr) -> Outcome {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(WITHIN))?;
    write!(stream, "{}content-length: {}\r\nconnection: close\r\n\r\n{CALL}", head("application/json"), CALL.len())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    ensure!(response.starts_with("HTTP/1.1 200"), "a call was answered with {response:?}");
    Ok(())
}

fn head(content_type: &str) -> String {
    format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\n")
}

/// Does one of the things that clients should not do. Errors end it: the proxy may close the connection at any time.
fn misbehave(address: SocketAddr, silence: Duration, random: &mut Rng) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let size = random.u64(1..63);
    let length = random.u64(1..=1 << size);
    let content_type = ["application/json", "text/plain"][usize::from(random.u8(..8) == 0)];
    let mut bytes = match random.u8(..4) {
        0 => format!("{}transfer-encoding: chunked\r\n\r\n{length:x}\r\n", head(content_type)),
        1 => format!("{}host: localhost\r\ncontent-length: {length}\r\n\r\n", head(content_type)),
        _ => format!("{}content-length: {length}\r\n\r\n", head(content_type)),
    }
    .into_bytes();
    bytes.extend((0..random.usize(..4000)).map(|_| random.u8(b' '..=b'~')));
    bytes.truncate(random.usize(..=bytes.len()));
    // In a few pieces, with a pause after each.
    let size = bytes.len() / random.usize(1..8) + 1;
    for piece in bytes.chunks(size) {
        if stream.write_all(piece).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(random.u64(..40)));
    }
    if random.bool() {
        // Until the proxy closes the connection, or for a while.
        let _ = stream.set_read_timeout(Some(silence));
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

/// Answers all requests of the proxy with an empty result.
fn answer_requests(mut stream: TcpStream) {
    let Ok(input) = stream.try_clone() else { return };
    let mut input = BufReader::new(input);
    loop {
        let (mut length, mut line) = (0, String::new());
        while line != "\r\n" {
            line.clear();
            if input.read_line(&mut line).unwrap_or_default() == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        let mut body = vec![0; length];
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let response = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        );
        if input.read_exact(&mut body).is_err() || stream.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}
