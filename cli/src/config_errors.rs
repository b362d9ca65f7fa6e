//! The error of every key of `counterproof.toml`: each key has a wrong value here, and is misspelt once.

use std::collections::BTreeSet;

use clap::Args as _;
use serde_json::Value;

use crate::config::{CONFIG_SCHEMA_SOURCE, Config, known_keys};
use crate::config_file::ConfigFile;
use crate::layers;

/// Wrong values, as `KEY = VALUE` with the dotted key. `*` is each side, `[]` a list of tables, and `NAME` any name.
const WRONG: &str = r#"
run.cases = 3
run.cases = ["a", "b"]
run.out = true
run.report = 3
run.timeout = "soon"
run.timeout = "0s"
run.connect_timeout = 10
run.first_byte_timeout = "10 parsecs"
run.idle_timeout = false
run.concurrency = 0
run.rate = "fast"
run.retries = -1
run.retries = "many"
run.retries = 99999999999
run.retry_budget = "half"
run.retry_on = ["http_999"]
run.repeat = 0
run.confirm = "on"
run.confirm_max = 0
run.fail_fast = "x"
run.max_failed = 1.5
run.max_cost = -1
run.max_tokens = "many"
run.allow_unknown_usage = "yes"
run.strict = 1
run.strict_wire = "no"
run.watch_path = [3]
run.watch_path = []
run.max_body_bytes = "2 MB"
run.max_answer_bytes = true
run.pages = "some"
run.report_url = "example.com"
side.*.base_url = "localhost:{port}"
side.*.base_url = "ftp://localhost"
side.*.base_url = 8080
side.*.command = "sh 'x"
side.*.start = ""
side.*.start = 3
side.*.setup = "sh 'x"
side.*.ready = ""
side.*.ready_timeout = "soon"
side.*.ref = 3
side.*.env.NAME = 3
side.*.headers.NAME = true
side.*.protocol = "grpc"
side.*.model = 4
side.*.persistent = "yes"
side.*.max_turns = 0
side.*.max_turns = "ten"
side.*.stream = "sse"
side.*.http.method = "SHOUT"
side.*.http.path = "http://localhost/chat"
side.*.http.headers.NAME = 3
side.*.http.body = "{{user}}"
side.*.http.stream = "websocket"
side.*.http.output = "reply"
side.*.http.calls.path = 3
side.*.http.calls.name = "fn"
side.*.http.calls.arguments = "item."
side.*.http.calls.result = 3
side.*.http.calls.id = ["/id"]
side.*.http.calls.error = "failed"
side.*.http.actions.path = "deeds"
side.*.http.actions.name = 3
side.*.http.actions.arguments = "item("
side.*.http.documents.path = "docs"
side.*.http.documents.id = 3
side.*.http.usage.input_tokens = "tokens"
side.*.http.usage.output_tokens = 3
side.*.http.usage.cached_tokens = 3
side.*.http.usage.cost = "dollars"
side.*.http.error = "err"
tools[].name = 3
tools[].description = 3
tools[].parameters = "object"
tools[].command = 3
mcp[].name = 3
mcp[].command = 3
mcp[].policy = 3
agent.deterministic = "yes"
agent.model = 4
agent.system_prompt = 3
agent.tools = "get_order"
agent.request = 3
risk.NAME = "severe"
signals.trusted_domains = ["https://example.com"]
signals.trusted_domains = "example.com"
secrets.env = "KEY"
compare.rule[].tool = 3
compare.rule[].event = 3
compare.rule[].path = 3
compare.rule[].ignore = "yes"
compare.rule[].ignore = false
compare.rule[].normalise = "time"
compare.rule[].normalise = 3
compare.rule[].tolerance = "little"
compare.rule[].tolerance = -1
compare.rule[].unordered = "yes"
compare.rule[].key = 3
compare.rule[].default = 2026-01-31
gate.slower = 1.5
gate.unmet = "most"
gate.risk.NAME.regressed = true
gate.tag.NAME.unmet = "baseline"
gate.suite.NAME.regressed = "some"
run = 3
side = 3
side.* = 3
side.*.env = 3
side.*.headers = 3
side.*.http = 3
side.*.http.headers = 3
side.*.http.calls = 3
side.*.http.actions = 3
side.*.http.documents = 3
side.*.http.usage = 3
tools = 3
mcp = 3
gate = 3
statistics = 3
agent = 3
risk = 3
signals = 3
secrets = 3
compare = 3
compare.rule = 3
"#;

/// The names that stand in for any name.
const SCOPES: [(&str, &str); 2] = [("gate.risk.NAME", "gate.risk.high"), ("NAME", "A")];

/// Returns the message about a file with this one key, and the column of its value.
fn error(key: &str, value: &str) -> (String, usize, String) {
    let key = SCOPES.iter().fold(key.to_owned(), |key, (name, real)| key.replace(name, real));
    let (table, name) = key.rsplit_once('.').unwrap_or(("", &key));
    let header = match table.strip_suffix("[]") {
        _ if table.is_empty() => "# the top".to_owned(),
        Some(list) => format!("[[{list}]]"),
        None => format!("[{table}]"),
    };
    let text = format!("{header}\n{name} = {value}\n");
    let check = crate::commands::check::Args::augment_args(clap::Command::new("check"));
    let parsed = ConfigFile::parse("counterproof.toml".into(), text.clone()).and_then(|file| {
        layers::validate_run(&file, &check)?;
        Config::parse(&file)
    });
    let message = parsed.err().map(|error| error.describe("counterproof.toml".into(), &text)).unwrap_or_default();
    (message, name.len() + 4, name.to_owned())
}

/// Returns `WRONG`, with a wrong value for each rule of the gate and each threshold.
fn wrong() -> Vec<(String, String)> {
    let lines = WRONG.lines().filter_map(|line| line.split_once(" = "));
    let mut wrong: Vec<(String, String)> = Vec::new();
    for (key, value) in lines {
        if key.contains('*') {
            wrong.extend(["baseline", "new"].map(|side| (key.replace('*', side), value.to_owned())));
        } else {
            wrong.push((key.to_owned(), value.to_owned()));
        }
    }
    for table in ["gate", "statistics"] {
        let keys = known_keys(&format!("[{table}]\nunknown = 1"));
        wrong.extend(keys.iter().map(|key| (format!("{table}.{key}"), "true".to_owned())));
    }
    wrong
}

/// Adds the keys of a table of the schema.
fn collect(schema: &Value, table: &Value, prefix: &str, keys: &mut BTreeSet<String>) {
    let resolved = |value: &Value| match value["$ref"].as_str() {
        Some(reference) => schema.pointer(reference.trim_start_matches('#')).unwrap().clone(),
        None => value.clone(),
    };
    for (name, value) in table["properties"].as_object().into_iter().flatten() {
        let (key, value) = (format!("{prefix}{name}"), resolved(value));
        if value["additionalProperties"].is_object() {
            keys.insert(format!("{key}.NAME"));
        }
        collect(schema, &value, &format!("{key}."), keys);
        collect(schema, &value["items"], &format!("{key}[]."), keys);
        keys.insert(key);
    }
}

#[test]
fn every_key_of_the_schema_has_a_wrong_value_here() {
    let schema: Value = serde_json::from_str(CONFIG_SCHEMA_SOURCE).unwrap();
    let mut keys = BTreeSet::new();
    collect(&schema, &schema, "", &mut keys);
    let covered: BTreeSet<String> = wrong().into_iter().map(|(key, _)| key).collect();
    let missing: Vec<_> = keys.difference(&covered).collect();
    assert!(missing.is_empty(), "add a wrong value for {missing:?}");
    // The schema leaves the rules of the gate and the thresholds open.
    let unknown: Vec<_> =
        covered.difference(&keys).filter(|key| !key.starts_with("gate.") && !key.starts_with("statistics.")).collect();
    assert!(unknown.is_empty(), "the schema lacks {unknown:?}");
}

#[test]
fn every_wrong_value_has_its_position_its_key_and_a_remedy() {
    let mut poor = Vec::new();
    for (key, value) in wrong() {
        let (message, column, name) = error(&key, &value);
        let first = message.lines().next().unwrap_or_default();
        let is_placed = first.starts_with(&format!("counterproof.toml:2:{column}: "));
        let has_remedy =
            ["expected ", "write ", "must be `true` or omitted"].iter().any(|remedy| first.contains(remedy));
        if !is_placed || !first.contains(&name) || !has_remedy || first.contains("struct ") {
            poor.push(format!("{key} = {value}: {first}"));
        }
    }
    assert!(poor.is_empty(), "{}", poor.join("\n"));
}

#[test]
fn every_misspelt_key_has_its_position_and_the_known_ones() {
    let mut poor = Vec::new();
    let free = ["NAME", "gate.risk.NAME", "gate.tag.NAME", "gate.suite.NAME"];
    for (key, _) in wrong().iter().filter(|(key, _)| !free.iter().any(|free| key.ends_with(free))) {
        let (message, column, name) = error(&format!("{key}x"), "3");
        let first = message.lines().next().unwrap_or_default();
        // A key of `[run]` has the position of its value.
        let is_placed = [1, column].iter().any(|column| first.starts_with(&format!("counterproof.toml:2:{column}: ")));
        if !is_placed || !first.contains(&name) || !first.contains("did you mean `") {
            poor.push(format!("{key}x: {first}"));
        }
    }
    assert!(poor.is_empty(), "{}", poor.join("\n"));
}

#[test]
fn a_missing_key_and_a_wrong_element_are_named() {
    let parse = |text: &str| {
        let file = ConfigFile::parse("counterproof.toml".into(), text.to_owned()).unwrap();
        Config::parse(&file).unwrap_err().describe("counterproof.toml".into(), text)
    };
    let missing = parse("\n[[tools]]\ncommand = \"x\"\n");
    assert!(
        missing.starts_with("counterproof.toml:2:1: the key `name` is missing; expected a line `name = …`"),
        "{missing}"
    );
    let element = parse("[secrets]\nenv = [\n  \"A\",\n  3,\n]\n");
    assert!(element.starts_with("counterproof.toml:4:3: `secrets.env`: invalid type: integer `3`"), "{element}");
    let in_second =
        parse("[[compare.rule]]\npath = \"/a\"\nignore = true\n[[compare.rule]]\npath = \"b\"\nignore = true\n");
    assert!(in_second.starts_with("counterproof.toml:5:8: `path` is a JSON Pointer"), "{in_second}");
}
