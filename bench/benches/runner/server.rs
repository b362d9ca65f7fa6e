//! A minimal agent: HTTP/1.1 with keep-alive, and one answer for all requests. It runs as long as its
//! standard input is open.

use std::io::Read;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use counterproof_bench::Outcome;

use crate::print_line;

const BODY: &str = concat!(
    r#"{"proposed_actions":[{"action_id":"a1","action_type":"create_ticket","tool_name":"create_ticket","#,
    r#""params":{"title":"Refund"},"risk_level":"low","risk_tags":[],"evidence_refs":[{"kind":"tool_result","call_id":"c1"}]}],"#,
    r#""events":[{"type":"tool_call","ts":1,"call_id":"c1","tool":"lookup","args":{"order":7}},"#,
    r#"{"type":"tool_result","ts":2,"call_id":"c1","status":"ok","latency_ms":1,"payload_summary":{"found":true}}],"#,
    r#""final_output":{"content_type":"text","content":"The refund is on its way."}}"#
);

pub(crate) fn serve() -> Outcome {
    // The parent process holds the other end, so this server ends with it.
    let parent = std::thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    print_line(&format!("http://{}", listener.local_addr()?))?;
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_connection(stream));
        }
    });
    let _ = parent.join();
    Ok(())
}

async fn serve_connection(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let response =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}", BODY.len());
    let mut buffer = Vec::with_capacity(8 * 1024);
    while let Ok(true) = read_message(&mut stream, &mut buffer).await {
        if stream.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads and discards one message with the body length from `Content-Length`. Returns false at the end of the connection.
pub(crate) async fn read_message(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    loop {
        if let Some(head) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let length = content_length(&buffer[..head]);
            let end = head + 4 + length;
            if buffer.len() >= end {
                buffer.drain(..end);
                return Ok(true);
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(false);
        }
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0)
}
