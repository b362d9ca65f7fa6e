//! The runner against litellm's mock server, over both OpenAI protocols.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::install::{self, create, stop, succeeds, write};
use crate::programs;
use crate::step::{Failure, progress, root};

/// The tested version. An update is a separate commit.
const LITELLM: &str = "litellm[proxy]==1.106.2";

const START_WITHIN: Duration = Duration::from_mins(3);
const RUN_WITHIN: Duration = Duration::from_mins(2);

/// The API key of the mock server.
const KEY: &str = "sk-interop-0123456789abcdef0123456789abcdef";

/// One model answers with text and one with a tool call. The server mocks tool calls for the Responses API only with a
/// provider that it maps to chat completions, hence the second provider.
const MODELS: &str = r#"model_list:
  - model_name: text
    litellm_params: {model: openai/gpt-4o-mini, api_key: none, mock_response: "Your refund is on its way."}
  - model_name: calls
    litellm_params:
      model: mistral/mistral-small-latest
      api_key: none
      mock_response: ""
      mock_tool_calls:
        - {id: call_1, type: function, function: {name: issue_refund, arguments: '{"order": 7, "amount": 50}'}}
"#;

const CASES: &str = r#"[
  {"id": "refund_001", "input": {"user": "Where is my money?", "context": {"order": 7}}},
  {"id": "refund_002", "input": {"user": "Give it back."}}
]
"#;

const CONFIG: &str = "[agent]\nsystem_prompt = \"Be brief.\"\n\n[risk]\n\"issue_*\" = \"high\"\n";

/// Installs litellm, and returns the folder of its programs.
pub(super) fn install() -> Result<Option<Utf8PathBuf>, Failure> {
    install::python(&install::cached("litellm"), &[LITELLM])
}

/// Runs both OpenAI protocols against litellm's mock server.
pub(super) fn run() -> Result<(), Failure> {
    let Some(programs) = install()? else { return Ok(()) };
    let (litellm, folder) = (programs.join("litellm"), root().join("target/interop"));
    create(&folder)?;
    for (name, text) in [("models.yaml", MODELS), ("cases.json", CASES), ("counterproof.toml", CONFIG)] {
        write(&folder.join(name), text)?;
    }
    programs::build()?;
    let server = Server::start(&litellm, &folder)?;
    let runs = folder.join("runs");
    if runs.exists() {
        std::fs::remove_dir_all(&runs).map_err(|source| Failure::File { path: runs.clone(), source })?;
    }
    for protocol in ["openai-chat", "openai-responses"] {
        for model in ["text", "calls"] {
            run_cases(&folder, &server.base_url(), protocol, model)?;
        }
    }
    counterproof(&folder, ["validate", "runs"])?;
    for protocol in ["openai-chat", "openai-responses"] {
        expect(&folder, protocol, "text", "Your refund is on its way.")?;
        expect(&folder, protocol, "calls", "\"risk_level\": \"high\"")?;
    }
    progress("    both protocols produced valid artifacts");
    Ok(())
}

fn run_cases(folder: &Utf8Path, base_url: &str, protocol: &str, model: &str) -> Result<(), Failure> {
    let run_id = format!("{protocol}-{model}");
    let fixed = ["run", "--cases", "cases.json", "--side", "new", "--timeout", "60s"];
    let header = ["--header", "authorization:env:AUTHORIZATION"];
    let varying = ["--run-id", &run_id, "--base-url", base_url, "--protocol", protocol, "--model", model];
    counterproof(folder, fixed.into_iter().chain(header).chain(varying))
}

fn counterproof<'a>(folder: &Utf8Path, arguments: impl IntoIterator<Item = &'a str>) -> Result<(), Failure> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let line = format!("counterproof {}", arguments.join(" "));
    progress(&format!("==> {line}"));
    let mut command = Command::new(programs::counterproof());
    command.args(arguments).current_dir(folder).env("AUTHORIZATION", format!("Bearer {KEY}"));
    if succeeds(command, RUN_WITHIN) { Ok(()) } else { Err(Failure::Step(line)) }
}

/// Checks that every case of a run has an answer and that its artifact contains `text`.
fn expect(folder: &Utf8Path, protocol: &str, model: &str, text: &str) -> Result<(), Failure> {
    for case in ["refund_001", "refund_002"] {
        let path = folder.join(format!("runs/new/{protocol}-{model}/{case}.json"));
        let artifact = std::fs::read_to_string(&path).map_err(|source| Failure::File { path: path.clone(), source })?;
        if !artifact.contains("\"status\": \"ok\"") || !artifact.contains(text) {
            return Err(Failure::Interop(format!("`{path}` is not an answer that contains {text}:\n{artifact}")));
        }
    }
    Ok(())
}

/// The running server, stopped on drop.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(litellm: &Utf8Path, folder: &Utf8Path) -> Result<Self, Failure> {
        let failed = |source| Failure::Start { line: litellm.to_string(), source };
        // Dropping the listener frees the port; another process is unlikely to take it before the server starts.
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        drop(listener);
        progress(&format!("==> {litellm} on {address}"));
        let start = Instant::now();
        let port = address.port().to_string();
        let arguments = ["--config", "models.yaml", "--host", "127.0.0.1", "--port", &port, "--telemetry", "False"];
        let mut command = Command::new(litellm);
        command.args(arguments).current_dir(folder);
        command.env("LITELLM_MASTER_KEY", KEY).env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self { child: command.spawn().map_err(failed)?, address };
        while start.elapsed() < START_WITHIN {
            if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
                progress(&format!("    up after {:.1} s", start.elapsed().as_secs_f64()));
                return Ok(server);
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(Failure::Interop(format!("litellm exited before it listened: {status}")));
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(Failure::Interop(format!("litellm did not listen within {} s", START_WITHIN.as_secs())))
    }

    fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}
