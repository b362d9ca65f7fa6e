//! The rows of the table, in the order of the docs.

use std::io::Write;
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::{Value, json};

use super::request_target::RequestTarget;
use super::{Body, Line};
use crate::kit::{Reaction, answer, gzip, noise, ok, response};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n";
const MIB: u64 = 1024 * 1024;

fn line(what: &'static str, target: RequestTarget, class: &'static str, name: &'static str, body: Body) -> Line {
    let again = matches!(class, "timeout" | "network_error") || matches!(name, "rate_limited" | "server_error");
    Line { what, target, class, name, attempts: 1 + usize::from(again), body, change: |_| {}, wait_ms: None }
}

fn responds_with_bytes(bytes: impl Into<Vec<u8>>) -> RequestTarget {
    RequestTarget::Agent(Reaction::Send(bytes.into()))
}

fn responds(status: &str, headers: &str, body: &[u8]) -> RequestTarget {
    responds_with_bytes(response(status, headers, body))
}

fn half(rest: &[u8]) -> Vec<u8> {
    [HEAD, rest].concat()
}

fn responds_ok(body: &Value) -> RequestTarget {
    responds_with_bytes(ok(body))
}

pub(super) fn all() -> Vec<Line> {
    [timeouts(), connections(), framing(), statuses(), texts(), shapes(), sizes(), encodings()]
        .into_iter()
        .flatten()
        .collect()
}

fn timeouts() -> Vec<Line> {
    let t = |what, target, name, body, change| Line { change, ..line(what, target, "timeout", name, body) };
    let stall = |bytes: &[u8]| RequestTarget::Agent(Reaction::Stall(bytes.to_vec()));
    let silent = |settings: &mut counterproof_runner::Settings| settings.phases.idle = Duration::from_millis(200);
    let drip = Reaction::Drip(HEAD.to_vec(), vec![b'.'; 50], Duration::from_millis(50));
    vec![
        t("the host accepts no connection", RequestTarget::FullQueue, "connect_timeout", Body::None, |settings| {
            settings.phases.connect = Duration::from_millis(200);
        }),
        t(
            "a connection without a TLS handshake",
            RequestTarget::SilentTls,
            "connect_timeout",
            Body::None,
            |settings| {
                settings.phases.connect = Duration::from_millis(200);
            },
        ),
        t("silence after the request", stall(b""), "response_timeout", Body::None, |settings| {
            settings.phases.first_byte = Some(Duration::from_millis(200));
        }),
        t(
            "half a head, then silence",
            stall(b"HTTP/1.1 200 OK\r\nx-a: "),
            "response_timeout",
            Body::None,
            |settings| {
                settings.timeout = Duration::from_millis(200);
            },
        ),
        t("headers, then silence", stall(HEAD), "idle_timeout", Body::None, silent),
        t("half a body, then silence", stall(&half(b"{\"half\": 1")), "idle_timeout", Body::Cut("txt"), silent),
        t("a slow body without a pause", RequestTarget::Agent(drip), "body_timeout", Body::Cut("txt"), |settings| {
            settings.timeout = Duration::from_millis(900);
            settings.phases.idle = Duration::from_millis(800);
        }),
    ]
}

fn connections() -> Vec<Line> {
    let n = |what, target, name, body| line(what, target, "network_error", name, body);
    let reset = |bytes: &[u8]| RequestTarget::Agent(Reaction::Reset(bytes.to_vec()));
    vec![
        n("the name does not resolve", RequestTarget::NoSuchName, "dns", Body::None),
        n("no server listens", RequestTarget::NoListener, "connection_refused", Body::None),
        n("a reset before the response", reset(b""), "connection_reset", Body::None),
        n("a reset within the head", reset(b"HTTP/1.1 200 OK\r\nx-a: "), "connection_reset", Body::None),
        n("a reset within the body", reset(&half(b"{\"half\": 1")), "connection_reset", Body::Cut("txt")),
        n("closed before the response", responds_with_bytes(""), "connection_closed", Body::None),
        n("closed within the head", responds_with_bytes("HTTP/1.1 200 OK\r\nx-a: "), "connection_closed", Body::None),
        n("plain HTTP where TLS is expected", RequestTarget::PlainHttpForTls, "tls", Body::None),
        n("an untrusted certificate", RequestTarget::UntrustedTls, "tls", Body::None),
    ]
}

fn framing() -> Vec<Line> {
    let n = |what, target, name, body| line(what, target, "network_error", name, body);
    let chunked =
        |chunks: &str| responds_with_bytes(format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"));
    let headers = "x-many: 1\r\n".repeat(10_000);
    vec![
        n("not HTTP at all", responds_with_bytes("SSH-2.0-OpenSSH_9.6\r\n"), "malformed_response", Body::None),
        n(
            "two values for `Content-Length`",
            responds_with_bytes("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 9\r\n\r\n{}"),
            "malformed_response",
            Body::None,
        ),
        n("ten thousand headers", responds("200 OK", &headers, b"{}"), "head_too_large", Body::None),
        n(
            "a `Content-Length` beyond the body",
            responds_with_bytes(half(b"{\"half\": 1")),
            "body_incomplete",
            Body::Cut("txt"),
        ),
        n("chunks that end early", chunked("5\r\n{\"a\":\r\n9\r\n1"), "body_incomplete", Body::Cut("txt")),
        n("chunks without the last one", chunked("5\r\n{\"a\":\r\n"), "body_incomplete", Body::Cut("txt")),
        n("a chunk without a size", chunked("5\r\n{\"a\":\r\nzz\r\n"), "body_incomplete", Body::Cut("txt")),
        n(
            "half of a gzip body",
            {
                let encoded = gzip(noise().as_bytes());
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", encoded.len());
                responds_with_bytes([head.as_bytes(), &encoded[..encoded.len() / 2]].concat())
            },
            "body_incomplete",
            Body::Cut("txt"),
        ),
        line(
            "a `Content-Length` short of the body",
            responds_with_bytes(format!("HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n{}", answer())),
            "invalid_json",
            "not_json",
            Body::Whole("txt"),
        ),
    ]
}

fn statuses() -> Vec<Line> {
    let page = b"<h1>no</h1>";
    let h = |what, status, headers: &str, name| {
        line(what, responds(status, headers, page), "http_error", name, Body::Whole("txt"))
    };
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_hours(24));
    let again = |line| Line { attempts: 2, ..line };
    let waits = |line, millis| Line { wait_ms: Some(millis), attempts: 2, ..line };
    vec![
        h("a redirect to another origin: not followed", "302 Found", "location: http://127.0.0.1:9/\r\n", "redirect"),
        h("a redirect within the origin: not followed", "307 Temporary Redirect", "location: /v2\r\n", "redirect"),
        h("status 400", "400 Bad Request", "", "client_error"),
        h("status 401", "401 Unauthorized", "", "client_error"),
        h("status 404", "404 Not Found", "", "client_error"),
        again(h("status 408", "408 Request Timeout", "", "client_error")),
        waits(
            h("status 408 with `Retry-After` in seconds", "408 Request Timeout", "retry-after: 1\r\n", "client_error"),
            1000,
        ),
        again(h("status 429", "429 Too Many Requests", "", "rate_limited")),
        waits(
            h(
                "status 429 with `Retry-After` in seconds",
                "429 Too Many Requests",
                "retry-after: 1\r\n",
                "rate_limited",
            ),
            1000,
        ),
        waits(
            h(
                "status 429 with `Retry-After` as an HTTP date",
                "429 Too Many Requests",
                &format!("retry-after: {date}\r\n"),
                "rate_limited",
            ),
            1000,
        ),
        waits(
            h("a `Retry-After` beyond its cap", "503 Service Unavailable", "retry-after: 3600\r\n", "server_error"),
            1000,
        ),
        h("an invalid `Retry-After`", "503 Service Unavailable", "retry-after: soon\r\n", "server_error"),
        h("status 500", "500 Internal Server Error", "", "server_error"),
        line(
            "status 500 without a body",
            responds("500 Internal Server Error", "", b""),
            "http_error",
            "server_error",
            Body::None,
        ),
        line(
            "status 502 and a body that breaks off",
            responds_with_bytes("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 50\r\n\r\n<h1>"),
            "http_error",
            "server_error",
            Body::Cut("txt"),
        ),
        h("status 999", "999 No Such Status", "", "unexpected_status"),
    ]
}

fn texts() -> Vec<Line> {
    let j = |what, target, name, body| line(what, target, "invalid_json", name, body);
    let page = "<html>We are back soon</html>";
    vec![
        j(
            "200 with an error page",
            responds("200 OK", "content-type: text/html\r\n", page.as_bytes()),
            "not_json",
            Body::Whole("txt"),
        ),
        j(
            "200 with JSON that ends early",
            responds("200 OK", "", b"{\"proposed_actions\": ["),
            "not_json",
            Body::Whole("txt"),
        ),
        j(
            "200 with JSON nested too deep",
            responds("200 OK", "", "[".repeat(100_000).as_bytes()),
            "not_json",
            Body::Whole("txt"),
        ),
        j(
            "200 with bytes that are not UTF-8",
            responds("200 OK", "", b"{\"a\": \"\xff\xfe\"}"),
            "invalid_utf8",
            Body::Whole("bin"),
        ),
        j(
            "200 with a duplicate key",
            responds_with_bytes(response(
                "200 OK",
                "",
                format!("{{\"events\": 1, {}", &answer().to_string()[1..]).as_bytes(),
            )),
            "duplicate_key",
            Body::Whole("txt"),
        ),
        j("200 without a body", responds("200 OK", "", b""), "empty_body", Body::None),
        j("204", responds_with_bytes("HTTP/1.1 204 No Content\r\n\r\n"), "empty_body", Body::None),
    ]
}

fn shapes() -> Vec<Line> {
    let s = |what, body: &Value, name| line(what, responds_ok(body), "schema_mismatch", name, Body::Whole("txt"));
    let with = |field: &str, value: Value| {
        let mut body = answer();
        body[field] = value;
        body
    };
    let linked = json!([
        {"type": "tool_call", "ts": 1, "call_id": "c1", "tool": "t", "args": {}},
        {"type": "tool_result", "ts": 2, "call_id": "c1", "status": "ok", "latency_ms": 1, "payload_asset_href": "assets/a.json"},
    ]);
    vec![
        s("JSON `null`", &json!(null), "not_an_object"),
        s("a JSON list", &json!([answer()]), "not_an_object"),
        s("an object without the required fields", &json!({"error": "unknown case"}), "contract_violated"),
        s("a field of the wrong type", &with("events", json!("none")), "contract_violated"),
        s("the answer to another case", &with("case_id", json!("c2")), "other_case"),
        s("the answer of the other side", &with("version", json!("baseline")), "other_side"),
        s("a link to a file that no response carries", &with("events", linked), "asset_not_delivered"),
    ]
}

fn sizes() -> Vec<Line> {
    let o = |what, target, name, body| line(what, target, "other", name, body);
    let flood = |status: &str, piece: &[u8], total| {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {total}\r\n\r\n");
        RequestTarget::Agent(Reaction::Flood(head.into_bytes(), piece.repeat(64 * 1024 / piece.len()), total))
    };
    vec![
        o("1 GiB of a body", flood("200 OK", b"{\"a\": 1}", 1024 * MIB), "body_too_large", Body::Cut("txt")),
        Line {
            change: |settings| (settings.limits.body, settings.limits.answer) = (24 << 20, 1 << 20),
            ..o(
                "1 GiB with a limit of 24 MiB",
                flood("200 OK", b"{\"a\": 1}", 1024 * MIB),
                "body_too_large",
                Body::Cut("txt"),
            )
        },
        Line {
            change: |settings| (settings.limits.body, settings.limits.answer) = (24 << 20, 1 << 20),
            ..o(
                "8 MiB with a limit of 1 MiB for answers",
                flood("200 OK", b"{\"a\": 1}", 8 * MIB),
                "body_too_large",
                Body::Whole("txt"),
            )
        },
        Line {
            attempts: 2,
            ..line(
                "an error page of 1 GiB",
                flood("500 No", b"\xff\xfe\xfd\xfc", 1024 * MIB),
                "http_error",
                "server_error",
                Body::Cut("bin"),
            )
        },
    ]
}

fn encodings() -> Vec<Line> {
    let o = |what, target, name, body| line(what, target, "other", name, body);
    let encoded = |encoding: &str, body: &[u8]| responds("200 OK", &format!("content-encoding: {encoding}\r\n"), body);
    vec![
        o(
            "a gzip bomb",
            encoded("gzip", &bomb(GzEncoder::new(Vec::new(), Compression::best()), |e| e.finish().unwrap())),
            "decompression_bomb",
            Body::Cut("txt"),
        ),
        o(
            "a deflate bomb",
            encoded("deflate", &bomb(ZlibEncoder::new(Vec::new(), Compression::best()), |e| e.finish().unwrap())),
            "decompression_bomb",
            Body::Cut("txt"),
        ),
        Line {
            change: |settings| settings.limits.body = 100_000,
            ..o(
                "over the limit after decoding",
                encoded("gzip", &gzip(noise().as_bytes())),
                "body_too_large",
                Body::Cut("txt"),
            )
        },
        o("plain text declared as gzip", encoded("gzip", b"not gzip at all"), "undecodable_body", Body::Whole("txt")),
        o("gzip that is corrupt in the middle", encoded("gzip", &corrupt()), "undecodable_body", Body::Cut("txt")),
        o(
            "brotli, which was not requested",
            encoded("br", b"\x8b\x02\x80{}\x03"),
            "unknown_encoding",
            Body::Whole("bin"),
        ),
        o(
            "zstd, which was not requested",
            encoded("zstd", b"\x28\xb5\x2f\xfd\x20\x02\x11\0\0{}"),
            "unknown_encoding",
            Body::Whole("bin"),
        ),
        o("two nested encodings", encoded("gzip, br", b"\x8b\x02\x80"), "unknown_encoding", Body::Whole("bin")),
    ]
}

/// Compresses 64 MiB of spaces without holding them in memory.
fn bomb<E: Write>(mut encoder: E, finish: impl FnOnce(E) -> Vec<u8>) -> Vec<u8> {
    let spaces = vec![b' '; 1024 * 1024];
    for _ in 0..64 {
        encoder.write_all(&spaces).unwrap();
    }
    finish(encoder)
}

fn corrupt() -> Vec<u8> {
    let mut bytes = gzip(noise().as_bytes());
    let middle = bytes.len() / 2;
    bytes[middle..middle + 2000].fill(0xff);
    bytes
}
