//! The upper bound: one request over many connections, as fast as the server answers, without parsing or saving answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::server::read_message;
use counterproof_bench::Outcome;

use crate::print_line;

/// The duration of the load.
const SPAN: Duration = Duration::from_secs(2);

const BODY: &str =
    r#"{"case_id":"case_00001","version":"new","input":{"user":"Where is my money?"},"run_meta":{"run_id":"r1"}}"#;

/// Generates load, and prints the requests per second.
pub(crate) fn generate(url: &str, connections: usize) -> Outcome {
    let address = url.trim_start_matches("http://").to_owned();
    let request = format!(
        "POST /run-case HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let request: Arc<str> = request.into();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (answers, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let start = Instant::now();
    runtime.block_on(async {
        let workers: Vec<_> = (0..connections)
            .map(|_| tokio::spawn(send_requests(address.clone(), request.clone(), answers.clone(), over.clone())))
            .collect();
        tokio::time::sleep(SPAN).await;
        over.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.await??;
        }
        Outcome::Ok(())
    })?;
    let rate = answers.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    print_line(&format!("{rate:.0}"))
}

async fn send_requests(
    address: String,
    request: Arc<str>,
    answers: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8 * 1024);
    while !over.load(Ordering::Relaxed) {
        stream.write_all(request.as_bytes()).await?;
        if !read_message(&mut stream, &mut buffer).await? {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        answers.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
