//! Tests of the changes of texts.

use camino::Utf8Path;
use counterproof_store::read_file;
use counterproof_store::write::{Durability, write};
use proptest::prelude::*;

use super::config_tree::{Language, Node, NodeValue};
use super::wrap::{ServerStatus, ShimCommand, parse, unwrap, wrap};
use super::{Client, ImportOptions, Mode, RestoreOptions, RestoreOutcome, import, restore};

fn shim() -> ShimCommand {
    ShimCommand { program: "/opt/counterproof".to_owned(), options: Vec::new() }
}

fn wrapped(client: Client, language: Language, text: &str) -> String {
    wrap(client, text, language, &shim()).unwrap().text.unwrap_or_else(|| text.to_owned())
}

#[test]
fn a_command_becomes_an_argument_in_the_style_of_the_list() {
    for (text, expected) in [
        (
            r#"{"mcpServers":{"a":{"command":"x","args":["1"]}}}"#,
            r#"{"mcpServers":{"a":{"command":"/opt/counterproof","args":["guard", "shim", "--server-name=a", "--client=custom", "--", "x", "1"]}}}"#,
        ),
        (
            "{\"mcpServers\": {\"a\": {\n  \"args\": [],\n  \"command\": \"x\"}}}",
            "{\"mcpServers\": {\"a\": {\n  \"args\": [\"guard\", \"shim\", \"--server-name=a\", \"--client=custom\", \"--\", \"x\"],\n  \"command\": \"/opt/counterproof\"}}}",
        ),
        (
            "{\"mcpServers\": {\"-a\": {\r\n    // why\r\n    \"command\": \"x\\u0041\" // c\r\n}}}",
            "{\"mcpServers\": {\"-a\": {\r\n    // why\r\n    \"command\": \"/opt/counterproof\",\r\n    \"args\": [\"guard\", \"shim\", \"--server-name=-a\", \"--client=custom\", \"--\", \"x\\u0041\"] // c\r\n}}}",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [ // first\n\t\t/* y */ \"1\", // one\n\t\t\"2\",\n\t]}}}",
            "{\"mcpServers\": {\"a\": {\"command\": \"/opt/counterproof\", \"args\": [ // first\n\t\t/* y */ \"guard\",\n\t\t\"shim\",\n\t\t\"--server-name=a\",\n\t\t\"--client=custom\",\n\t\t\"--\",\n\t\t\"x\",\n\t\t\"1\", // one\n\t\t\"2\",\n\t]}}}",
        ),
    ] {
        let new = wrapped(Client::Cursor, Language::Json, text);
        assert_eq!(new, expected);
        assert_eq!(
            wrap(Client::Cursor, &new, Language::Json, &shim()).unwrap().text,
            None,
            "a second import changes nothing"
        );
    }
}

#[test]
fn line_ends_of_windows_stay_in_lists() {
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\r\n  \"1\"\r\n]}}}";
    let new = wrapped(Client::Cursor, Language::Json, text);
    assert_eq!(new.matches('\n').count(), new.matches("\r\n").count(), "{new:?}");
    assert_eq!(unwrap(Client::Cursor, &new, Language::Json, &[]).unwrap().text.unwrap(), text);
}

#[test]
fn a_comma_after_the_last_removed_value_is_removed_too() {
    for (language, text, expected) in [
        (
            Language::Json,
            "{\"mcpServers\": {\"a\": {\"command\": \"c\", \"args\": [\"guard\", \"shim\", \"--server-name=a\", \"--\", \"x\" /* , */ // ,\n , ]}}}",
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [ /* , */ // ,\n  ]}}}",
        ),
        (
            Language::Toml,
            "[mcp_servers.a]\ncommand = \"c\"\nargs = [\"guard\", \"shim\", \"--server-name=a\", \"--\", 'x' # ,\n, ]",
            "[mcp_servers.a]\ncommand = 'x'\nargs = [ # ,\n ]",
        ),
    ] {
        let new = unwrap(Client::Cursor, text, language, &[]).unwrap().text.unwrap();
        assert_eq!(new, expected);
        assert!(parse(&new, language).is_ok());
    }
}

#[test]
fn tables_of_toml_keep_their_style() {
    for (text, expected) in [
        (
            "[mcp_servers.a]\ncommand = 'x' # c\nargs = [ \"1\" ]\n",
            "[mcp_servers.a]\ncommand = \"/opt/counterproof\" # c\nargs = [ \"guard\", \"shim\", \"--server-name=a\", \"--client=custom\", \"--\", 'x', \"1\" ]\n",
        ),
        (
            "[mcp_servers.\"a b\"]\r\n  command = \"x\"\r\n[other]",
            "[mcp_servers.\"a b\"]\r\n  command = \"/opt/counterproof\"\r\n  args = [\"guard\", \"shim\", \"--server-name=a b\", \"--client=custom\", \"--\", \"x\"]\r\n[other]",
        ),
        (
            "mcp_servers.a.command = \"x\"",
            "mcp_servers.a.command = \"/opt/counterproof\"\nmcp_servers.a.args = [\"guard\", \"shim\", \"--server-name=a\", \"--client=custom\", \"--\", \"x\"]",
        ),
        (
            "mcp_servers = { a = { command = \"x\" } }",
            "mcp_servers = { a = { command = \"/opt/counterproof\", args = [\"guard\", \"shim\", \"--server-name=a\", \"--client=custom\", \"--\", \"x\"] } }",
        ),
        (
            "[mcp_servers]\na = {command = \"\"\"x\ny\"\"\", args = [\n  \"1\",\n]}",
            "[mcp_servers]\na = {command = \"/opt/counterproof\", args = [\n  \"guard\",\n  \"shim\",\n  \"--server-name=a\",\n  \"--client=custom\",\n  \"--\",\n  \"\"\"x\ny\"\"\",\n  \"1\",\n]}",
        ),
    ] {
        // Of another client than Codex, which gets more variables.
        let new = wrapped(Client::Cursor, Language::Toml, text);
        assert_eq!(new, expected);
        assert_eq!(wrap(Client::Cursor, &new, Language::Toml, &shim()).unwrap().text, None);
    }
}

#[test]
fn codex_passes_the_variables_of_a_run() {
    let text = "[mcp_servers.a]\ncommand = \"x\"\nargs = []\nenv_vars = [\"TOKEN\", \"SUB_ENV\"]\n\n[mcp_servers.b]\ncommand = \"x\"";
    let changed = wrap(Client::Codex, text, Language::Toml, &shim()).unwrap();
    let new = changed.text.unwrap();
    insta::assert_snapshot!(new, @r#"
    [mcp_servers.a]
    command = "/opt/counterproof"
    args = ["guard", "shim", "--server-name=a", "--client=codex", "--", "x"]
    env_vars = ["SUB_RUN_ID", "SUB_AGENT_ID", "SUB_CLIENT", "SUB_PRINCIPAL", "SUB_WORKLOAD", "COUNTERPROOF_POLICY", "COUNTERPROOF_LEDGER", "COUNTERPROOF_TERMINATION", "TOKEN", "SUB_ENV"]

    [mcp_servers.b]
    command = "/opt/counterproof"
    args = ["guard", "shim", "--server-name=b", "--client=codex", "--", "x"]
    env_vars = ["SUB_RUN_ID", "SUB_AGENT_ID", "SUB_ENV", "SUB_CLIENT", "SUB_PRINCIPAL", "SUB_WORKLOAD", "COUNTERPROOF_POLICY", "COUNTERPROOF_LEDGER", "COUNTERPROOF_TERMINATION"]
    "#);
    let restored = unwrap(Client::Codex, &new, Language::Toml, &changed.added).unwrap().text.unwrap();
    insta::assert_snapshot!(restored, @r#"
    [mcp_servers.a]
    command = "x"
    args = []
    env_vars = ["TOKEN", "SUB_ENV"]

    [mcp_servers.b]
    command = "x"
    args = []
    "#);
}

#[test]
fn variables_that_the_user_has_listed_stay() {
    for list in ["[\"SUB_RUN_ID\"]", "[ \"TOKEN\", \"SUB_RUN_ID\" ]", "[]"] {
        let text = format!("[mcp_servers.a]\ncommand = \"x\"\nargs = []\nenv_vars = {list}\n");
        let changed = wrap(Client::Codex, &text, Language::Toml, &shim()).unwrap();
        let new = changed.text.unwrap();
        assert_eq!(unwrap(Client::Codex, &new, Language::Toml, &changed.added).unwrap().text.unwrap(), text);
        // Without the record, all names stay.
        let restored = unwrap(Client::Codex, &new, Language::Toml, &[]).unwrap().text.unwrap();
        assert!(restored.contains("COUNTERPROOF_POLICY") && restored.contains("SUB_RUN_ID"), "{restored}");
    }
    // A name that was added to the new list stays with the list.
    let text = "[mcp_servers.a]\ncommand = \"x\"\nargs = []\n";
    let changed = wrap(Client::Codex, text, Language::Toml, &shim()).unwrap();
    let edited = changed.text.unwrap().replace("TERMINATION\"]", "TERMINATION\", \"TOKEN\"]");
    let restored = unwrap(Client::Codex, &edited, Language::Toml, &changed.added).unwrap().text.unwrap();
    assert_eq!(restored, "[mcp_servers.a]\ncommand = \"x\"\nenv_vars = [\"TOKEN\"]\nargs = []\n");
}

#[test]
fn a_second_import_updates_the_options_that_it_states() {
    let with =
        |options: &[&str]| ShimCommand { options: options.iter().map(|it| (*it).to_owned()).collect(), ..shim() };
    let text = r#"{"mcpServers":{"a":{"command":"x","args":[
  "1"
]}}}"#;
    let first = with(&["--policy", "/old.yaml"]);
    let old = wrap(Client::Cursor, text, Language::Json, &first).unwrap().text.unwrap();
    let edited =
        old.replace("\"--policy\",\n  \"/old.yaml\",", "\"--secrets\",\n  \"/s.json\",\n  \"--policy=/old.yaml\",");
    for old in [&old, &edited] {
        let second = with(&["--policy", "/new.yaml", "--ledger", "/calls.db"]);
        let changed = wrap(Client::Cursor, old, Language::Json, &second).unwrap();
        assert_eq!(changed.servers[0].status, ServerStatus::Updated);
        assert_eq!(changed.servers[0].reason.as_deref(), Some("new value of `--policy`, `--ledger`"));
        let new = changed.text.unwrap();
        let expected =
            old.replace("/old.yaml", "/new.yaml").replace("  \"--\",", "  \"--ledger\",\n  \"/calls.db\",\n  \"--\",");
        assert_eq!(new, expected);
        for same in [&second, &first, &shim()] {
            let again = wrap(Client::Cursor, &new, Language::Json, same).unwrap();
            assert_eq!(again.text.is_none(), *same != first, "an option that is not stated stays");
        }
        assert_eq!(unwrap(Client::Cursor, &new, Language::Json, &[]).unwrap().text.unwrap(), text);
    }
}

#[test]
fn a_server_with_options_like_those_of_a_shim_is_an_ordinary_server() {
    let text =
        r#"{"mcpServers": {"a": {"command": "node", "args": ["server.js", "--server-name", "foo", "--", "bar"]}}}"#;
    let changed = wrap(Client::Cursor, text, Language::Json, &shim()).unwrap();
    assert_eq!(changed.servers[0].status, ServerStatus::Wrapped);
    assert_eq!(unwrap(Client::Cursor, &changed.text.unwrap(), Language::Json, &[]).unwrap().text.unwrap(), text);
    for command in ["/usr/bin/mcp-shim", "C:\\\\bin\\\\Subluminal.exe", "sub"] {
        let text = text.replace("node", command);
        let changed = wrap(Client::Cursor, &text, Language::Json, &shim()).unwrap();
        assert_eq!(changed.servers[0].status, ServerStatus::Skipped, "{command}");
    }
}

#[test]
fn a_map_of_servers_that_is_no_object_is_an_error() {
    for (client, text) in [
        (Client::Cursor, r#"{"mcpServers": []}"#),
        (Client::VsCode, r#"{"servers": "x"}"#),
        (Client::VsCode, r#"{"mcp": {"servers": [1]}}"#),
        (Client::ClaudeCode, r#"{"projects": {"/a": {"mcpServers": null}}}"#),
    ] {
        let error = wrap(client, text, Language::Json, &shim()).unwrap_err();
        assert!(error.message.ends_with("is not an object: it has to map names to servers"), "{}", error.message);
    }
}

#[test]
fn servers_that_are_no_programs_are_skipped_with_the_reason() {
    let text = r#"{"mcpServers": {
        "http": {"url": "https://example.com/mcp"}, "typed": {"type": "sse", "command": "x"}, "gemini": {"httpUrl": "https://e"},
        "both": {"command": "x", "url": "https://e"}, "list": {"command": ["x"]}, "args": {"command": "x", "args": "y"},
        "number": {"command": "x", "args": [1]}, "none": {}, "null": null, "empty": {"command": ""},
        "ours": {"command": "old", "args": ["guard", "shim", "--server-name", "ours", "--", "x"]},
        "other": {"command": "shim", "args": ["--server-name=other", "--", "x"]}
    }}"#;
    let changed = wrap(Client::ClaudeDesktop, text, Language::Json, &shim()).unwrap();
    assert_eq!(changed.text, None);
    assert!(changed.had_wrapped && changed.servers.iter().all(|server| server.status == ServerStatus::Skipped));
    let reasons: Vec<_> =
        changed.servers.iter().map(|it| format!("{}: {}", it.name, it.reason.as_ref().unwrap())).collect();
    insta::assert_snapshot!(reasons.join("\n"), @r#"
    http: it is reached over the network; `guard proxy` guards such servers
    typed: it is reached over the network; `guard proxy` guards such servers
    gemini: it is reached over the network; `guard proxy` guards such servers
    both: it has both `command` and an address
    list: `command` is not a text
    args: `args` is not a list of texts
    number: `args` is not a list of texts
    none: `command` is missing
    null: the entry is not an object
    empty: `command` is empty
    ours: it starts through the guard already
    other: it starts through another shim
    "#);
    let toml = "mcp_servers = { a.command = \"x\" }";
    let changed = wrap(Client::Codex, toml, Language::Toml, &shim()).unwrap();
    assert_eq!((changed.text, changed.servers[0].status), (None, ServerStatus::Skipped));
}

#[test]
fn invalid_texts_are_errors_with_their_place() {
    for (language, text, message, span) in [
        (Language::Json, "{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}}", "the key `c` appears twice in its object", 23..26),
        (Language::Json, "{\"a\" 1}", "expected colon after the string or word in object property", 5..6),
        (Language::Json, "{a: 1}", "expected string for object property", 1..2),
        (Language::Json, "[1]", "the configuration is not an object", 0..3),
        (Language::Toml, "[a]\nb = 1\nb = 2\n", "duplicate key", 10..11),
        (Language::Toml, "a = \n", "string values must be quoted, expected literal string", 4..4),
    ] {
        let error = parse(text, language).unwrap_err();
        assert_eq!((error.message.as_str(), error.span), (message, span), "{text}");
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse(&deep, Language::Json).is_err());
    assert!(parse(&format!("a = {deep}"), Language::Toml).is_err());
}

fn read(path: &Utf8Path) -> Vec<u8> {
    read_file::read(path, read_file::MAX_SMALL_BYTES).unwrap()
}

/// A value without its place.
fn content(node: &Node) -> String {
    match &node.value {
        NodeValue::Object(object) => {
            let fields = object.properties.iter().map(|it| format!("{:?}: {}", it.name, content(&it.value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        NodeValue::List(items) => format!("[{}]", items.iter().map(content).collect::<Vec<_>>().join(", ")),
        NodeValue::Text(text) => format!("{text:?}"),
        NodeValue::Bool(value) => value.to_string(),
        NodeValue::Other => "other".to_owned(),
    }
}

/// White space and comments of JSON.
fn json_space() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        4 => Just(String::new()), 3 => Just(" ".to_owned()), 2 => Just("\n  ".to_owned()), 1 => Just("\r\n\t".to_owned()),
        1 => Just("// a, \"b\" ]}\n".to_owned()), 1 => Just("/* } // */".to_owned()), 1 => Just("/*,*/ ".to_owned()),
    ];
    prop::collection::vec(pieces, 0..3).prop_map(|pieces| pieces.concat())
}

fn json_text() -> impl Strategy<Value = String> {
    "[ -~é]{0,8}".prop_map(|text| serde_json::Value::from(text).to_string())
}

fn json_list() -> impl Strategy<Value = String> {
    (prop::collection::vec((json_space(), json_text(), json_space()), 0..4), json_space(), any::<bool>()).prop_map(
        |(items, end, trailing)| {
            let items: Vec<String> = items.into_iter().map(|(before, text, after)| before + &text + &after).collect();
            let comma = if trailing && !items.is_empty() { "," } else { "" };
            format!("[{}{comma}{end}]", items.join(","))
        },
    )
}

fn json_object(properties: Vec<(String, String, String, String)>, end: &str, trailing: bool) -> String {
    let mut names = std::collections::HashSet::new();
    let properties: Vec<String> = properties
        .into_iter()
        .filter(|(_, name, _, _)| names.insert(serde_json::from_str::<String>(name).unwrap()))
        .map(|(before, name, middle, value)| format!("{before}{name}{middle}:{middle}{value}{before}"))
        .collect();
    let comma = if trailing && !properties.is_empty() { "," } else { "" };
    format!("{{{}{comma}{end}}}", properties.join(","))
}

fn json_server() -> impl Strategy<Value = String> {
    let property = prop_oneof![
        4 => json_text().prop_map(|text| ("\"command\"".to_owned(), text)),
        4 => json_list().prop_map(|list| ("\"args\"".to_owned(), list)),
        1 => Just(("\"type\"".to_owned(), "\"stdio\"".to_owned())),
        1 => Just(("\"url\"".to_owned(), "\"https://example.com\"".to_owned())),
        1 => json_list().prop_map(|list| ("\"env_vars\"".to_owned(), list)),
        1 => (json_text(), json_text()).prop_map(|(name, value)| ("\"env\"".to_owned(), format!("{{{name}: {value}}}"))),
        1 => Just(("\"disabled\"".to_owned(), "true".to_owned())),
    ];
    let properties = prop::collection::vec((json_space(), property, json_space()), 0..6);
    (properties, json_space(), any::<bool>()).prop_map(|(properties, end, trailing)| {
        let parts = properties.into_iter().map(|(before, (name, value), middle)| (before, name, middle, value));
        json_object(parts.collect(), &end, trailing)
    })
}

fn json_config() -> impl Strategy<Value = String> {
    let servers = prop::collection::vec((json_space(), json_text(), json_space(), json_server()), 0..4);
    (servers, json_space(), json_space(), any::<bool>()).prop_map(|(servers, start, end, trailing)| {
        let servers = json_object(servers, &end, trailing);
        format!("{start}{{\"theme\": 1.50,{end}\"mcpServers\"{start}:{servers}{end}}}{start}")
    })
}

fn toml_config() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[ -~é]{0,8}".prop_map(|text| toml_edit::Value::from(text).to_string()),
        "[ -&(-~]{0,8}".prop_map(|text| format!("'{text}'")),
    ];
    let list = (
        prop::collection::vec(text.clone(), 0..4),
        prop_oneof![Just(", "), Just(",\n  # c, ]\n  "), Just(" ,")],
        any::<bool>(),
    )
        .prop_map(|(items, separator, trailing)| {
            let comma = if trailing && !items.is_empty() { ", # last\n" } else { "" };
            format!("[{}{comma}]", items.join(separator))
        });
    let line_end = prop_oneof![3 => Just("\n"), 1 => Just(" # why = \"x\"\n"), 1 => Just("\n\n"), 1 => Just("\r\n")];
    let server =
        (text.clone(), proptest::option::of(list.clone()), proptest::option::of(list), any::<bool>(), line_end);
    prop::collection::vec(server, 0..4).prop_map(|servers| {
        let mut config = vec!["model = \"o\" # m\n".to_owned()];
        for (index, (command, args, variables, is_inline, end)) in servers.into_iter().enumerate() {
            let args = args.map(|it| format!("args = {it}"));
            let variables = variables.map(|it| format!("env_vars = {it}"));
            let lines: Vec<String> =
                [Some(format!("command = {command}")), args, variables].into_iter().flatten().collect();
            if is_inline {
                let lines: Vec<String> = lines.into_iter().filter(|line| !line.contains('\n')).collect();
                config.push(format!("[mcp_servers]{end}s{index} = {{ {} }}{end}", lines.join(", ")));
                // The table can be opened once only.
                break;
            }
            config.push(format!("[mcp_servers.\"s {index}\"]{end}{}{end}", lines.join(end)));
        }
        config.concat()
    })
}

/// Wraps and unwraps a text, and compares what it means.
fn check(client: Client, language: Language, text: &str) -> Result<(), TestCaseError> {
    let Ok(original) = parse(text, language) else { return Ok(()) };
    let Ok(changed) = wrap(client, text, language, &shim()) else { return Ok(()) };
    let added = changed.added;
    let Some(new) = changed.text else { return Ok(()) };
    let wrapped = parse(&new, language);
    prop_assert!(wrapped.is_ok(), "{text}\n---\n{new}");
    prop_assert_eq!(wrap(client, &new, language, &shim()).unwrap().text, None, "a second import changes nothing");
    let restored = unwrap(client, &new, language, &added).unwrap().text.unwrap();
    let tree = parse(&restored, language);
    prop_assert!(tree.is_ok(), "{text}\n---\n{new}\n---\n{restored}");
    // Lists that did not exist are empty now.
    let without_new = |tree: &Node| content(tree).replace(", \"args\": []", "").replace(", \"env_vars\": []", "");
    prop_assert_eq!(without_new(&tree.unwrap()), without_new(&original), "{}\n---\n{}\n---\n{}", text, new, restored);
    if !text.contains("env_vars")
        && original.as_object().is_some_and(|_| new.matches("\"args\"").count() == text.matches("\"args\"").count())
        && client != Client::Codex
    {
        prop_assert_eq!(&restored, text, "without new lists, the bytes are the same");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_json_is_wrapped_and_unwrapped(text in json_config()) {
        prop_assert!(parse(&text, Language::Json).is_ok(), "{text}");
        check(Client::Cursor, Language::Json, &text)?;
        check(Client::Codex, Language::Json, &text)?;
    }

    #[test]
    fn any_toml_is_wrapped_and_unwrapped(text in toml_config()) {
        prop_assert!(parse(&text, Language::Toml).is_ok(), "{text}: {:?}", parse(&text, Language::Toml));
        check(Client::Codex, Language::Toml, &text)?;
    }

    #[test]
    fn no_text_makes_the_parsers_fail(text in "\\PC{0,60}") {
        for language in [Language::Json, Language::Toml] {
            check(Client::VsCode, language, &text)?;
        }
    }
}

proptest! {
    // Fewer cases: every file is synced.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_file_has_the_same_bytes_after_an_import_and_a_restoration(
        json in json_config(), toml in toml_config(), has_mark in any::<bool>(), is_windows in any::<bool>(),
    ) {
        for (name, mut text) in [("mcp.json", json), ("config.toml", toml)] {
            if is_windows {
                text = text.replace("\r\n", "\n").replace('\n', "\r\n");
            }
            let bytes = if has_mark { format!("\u{feff}{text}") } else { text }.into_bytes();
            let folder = tempfile::tempdir().unwrap();
            let config = Utf8Path::from_path(folder.path()).unwrap().join(name);
            write(&config, &bytes, Durability::Cached).unwrap();
            let options = ImportOptions { client: Client::Codex, config: &config, shim: shim(), mode: Mode::Write };
            let is_changed = import(&options).unwrap().is_changed;
            prop_assert_eq!(read(&config) != bytes, is_changed);
            let options = RestoreOptions { client: Client::Codex, config: &config, discards_edits: false, mode: Mode::Write };
            let restored = restore(&options).unwrap().restored;
            prop_assert_eq!(restored, if is_changed { RestoreOutcome::Original } else { RestoreOutcome::Nothing });
            prop_assert_eq!(read(&config), bytes);
            prop_assert_eq!(folder.path().read_dir().unwrap().count(), 1, "no other file is left");
        }
    }
}
