//! Imports into the configurations of clients, and back.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_guard::importer::{
    Client, ImportError, ImportOptions, ImportReport, Mode, RestoreOptions, RestoreOutcome, RestoreReport,
    ServerStatus, ShimCommand, import, restore,
};
use counterproof_store::write::{Durability, write};

use crate::kit::folder;

fn fixture(client: Client) -> (Utf8PathBuf, String) {
    let extension = if client == Client::Codex { "toml" } else { "json" };
    let path = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/clients/{client}.{extension}"));
    (Utf8PathBuf::from(format!("config.{extension}")), std::fs::read_to_string(path).unwrap())
}

fn write_config(path: &Utf8Path, text: &str) {
    write(path, text.as_bytes(), Durability::Cached).unwrap();
}

fn run_import(client: Client, config: &Utf8Path, mode: Mode) -> Result<ImportReport, ImportError> {
    let options = vec!["--policy".to_owned(), "/etc/policy.yaml".to_owned()];
    let shim = ShimCommand { program: "/opt/counterproof".to_owned(), options };
    import(&ImportOptions { client, config, shim, mode })
}

fn run_restore(client: Client, config: &Utf8Path) -> RestoreReport {
    restore(&RestoreOptions { client, config, discards_edits: false, mode: Mode::Write }).unwrap()
}

fn read(path: &Utf8Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn files(folder: &Utf8Path) -> Vec<String> {
    let mut names: Vec<_> = folder.read_dir_utf8().unwrap().map(|it| it.unwrap().file_name().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn imp_001_the_restored_configuration_has_the_same_bytes_for_every_client() {
    for client in Client::ALL {
        let (name, text) = fixture(client);
        let windows = text.replace('\n', "\r\n");
        for text in [text.clone(), format!("\u{feff}{text}"), windows.clone(), windows.trim_end().to_owned()] {
            let (_guard, folder) = folder();
            let config = folder.join(&name);
            write_config(&config, &text);
            std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o640)).unwrap();
            let report = run_import(client, &config, Mode::Write).unwrap();
            let wrapped: Vec<_> = report.servers.iter().filter(|it| it.status == ServerStatus::Wrapped).collect();
            assert!(!wrapped.is_empty() && report.is_changed, "{client}: {report:?}");
            let imported = read(&config);
            for server in wrapped {
                assert!(imported.contains(&format!("--server-name={}\"", server.name)), "{imported}");
            }
            assert_eq!(imported.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
            let breaks =
                |text: &str| (text.matches("\r\n").count() == text.matches('\n').count(), text.ends_with('\n'));
            assert_eq!(breaks(&imported), breaks(&text), "{client}");
            let backup = report.backup.unwrap();
            assert_eq!(read(&backup), text);
            for path in [&config, &backup] {
                assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o640, "{path}");
            }
            assert_eq!(run_restore(client, &config).restored, RestoreOutcome::Original);
            assert_eq!(read(&config), text);
            assert_eq!(config.metadata().unwrap().mode() & 0o7777, 0o640);
            assert_eq!(files(&folder), [name.as_str()], "nothing is left");
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "the files before and after are listed whole")]
fn only_the_commands_of_programs_change() {
    let mut diffs = String::new();
    for client in Client::ALL {
        let (name, text) = fixture(client);
        let (_guard, folder) = folder();
        let config = folder.join(&name);
        write_config(&config, &text);
        let report = run_import(client, &config, Mode::DryRun).unwrap();
        let changes = report
            .servers
            .iter()
            .map(|it| format!("{client} {}{}: {:?}\n", it.project.clone().unwrap_or_default(), it.name, it.status));
        diffs.extend(changes);
        let diff = report.diff.unwrap();
        diffs += &diff.lines().skip(2).map(|line| line.trim_end().to_owned() + "\n").collect::<String>();
        assert!(!diff.contains("hunter2") && !diff.contains("abcdefgh"), "{diff}");
        assert_eq!(read(&config), text, "a dry run writes nothing");
        assert_eq!(files(&folder), [name.as_str()]);
    }
    insta::assert_snapshot!(diffs, @r##"
claude-code files: Wrapped
claude-code tickets: Skipped
claude-code /home/ada/shopdatabase: Wrapped
@@ files @@
     "files": {
       "type": "stdio",
-      "command": "npx",
+      "command": "/opt/counterproof",
       "args": [
+        "guard",
+        "shim",
+        "--server-name=files",
+        "--client=claude",
+        "--policy",
+        "/etc/policy.yaml",
+        "--",
+        "npx",
         "-y",
         "@modelcontextprotocol/server-filesystem",
         "${HOME}/notes"
       ],
       "env": {}
     }
@@ database in /home/ada/shop @@
         "database": {
           "type": "stdio",
-          "command": "uvx",
-          "args": [],
+          "command": "/opt/counterproof",
+          "args": ["guard", "shim", "--server-name=database", "--client=claude", "--policy", "/etc/policy.yaml", "--", "uvx"],
           "env": {
             "DATABASE_URL": "[REDACTED]"
           }
         }
claude-desktop memory: Wrapped
claude-desktop clock: Wrapped
@@ memory @@
         "memory": {
-            "command": "C:\\Program Files\\nodejs\\npx.cmd",
-            "args": ["-y", "@modelcontextprotocol/server-memory"]
+            "command": "/opt/counterproof",
+            "args": ["guard", "shim", "--server-name=memory", "--client=claude", "--policy", "/etc/policy.yaml", "--", "C:\\Program Files\\nodejs\\npx.cmd", "-y", "@modelcontextprotocol/server-memory"]
         }
@@ clock @@
-        "clock": { "command": "clock-server" }
+        "clock": { "command": "/opt/counterproof", "args": ["guard", "shim", "--server-name=clock", "--client=claude", "--policy", "/etc/policy.yaml", "--", "clock-server"] }
codex files: Wrapped
codex search: Skipped
codex old one: Wrapped
@@ files @@
-command = "npx"
-args = ["-y", "@modelcontextprotocol/server-filesystem", "/home/ada/notes"]
+command = "/opt/counterproof"
+env_vars = ["SUB_RUN_ID", "SUB_AGENT_ID", "SUB_ENV", "SUB_CLIENT", "SUB_PRINCIPAL", "SUB_WORKLOAD", "COUNTERPROOF_POLICY", "COUNTERPROOF_LEDGER", "COUNTERPROOF_TERMINATION"]
+args = ["guard", "shim", "--server-name=files", "--client=codex", "--policy", "/etc/policy.yaml", "--", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/ada/notes"]
 startup_timeout_sec = 20
@@ old one @@
-command = 'C:\tools\old.exe'
+command = "/opt/counterproof"
+args = ["guard", "shim", "--server-name=old one", "--client=codex", "--policy", "/etc/policy.yaml", "--", 'C:\tools\old.exe']
+env_vars = ["SUB_RUN_ID", "SUB_AGENT_ID", "SUB_ENV", "SUB_CLIENT", "SUB_PRINCIPAL", "SUB_WORKLOAD", "COUNTERPROOF_POLICY", "COUNTERPROOF_LEDGER", "COUNTERPROOF_TERMINATION"]
 enabled = false
cursor lint: Wrapped
cursor docs: Skipped
@@ lint @@
 		"lint": {
-			"command": "${workspaceFolder}/bin/lint",
-			"args": ["--stdio",],
+			"command": "/opt/counterproof",
+			"args": ["guard", "shim", "--server-name=lint", "--client=custom", "--policy", "/etc/policy.yaml", "--", "${workspaceFolder}/bin/lint", "--stdio",],
 			"envFile": "${workspaceFolder}/.env", /* [REDACTED] */
 		}
vscode issues: Wrapped
vscode browser: Wrapped
vscode cloud: Skipped
@@ issues @@
     "issues": {
       "type": "stdio",
-      "command": "docker",
-      "args": ["run", "-i", "--rm", "-e", "TOKEN", "issues-server"],
+      "command": "/opt/counterproof",
+      "args": ["guard", "shim", "--server-name=issues", "--client=custom", "--policy", "/etc/policy.yaml", "--", "docker", "run", "-i", "--rm", "-e", "TOKEN", "issues-server"],
       "env": { "TOKEN": "[REDACTED]" }
     }
@@ browser @@
     "browser": {
       "type": "stdio",
-      "command": "npx"
+      "command": "/opt/counterproof",
+      "args": ["guard", "shim", "--server-name=browser", "--client=custom", "--policy", "/etc/policy.yaml", "--", "npx"]
     }
gemini math: Wrapped
gemini weather: Skipped
@@ math @@
     "math": {
-      "command": "python3",
-      "args": ["-m", "math_server"],
+      "command": "/opt/counterproof",
+      "args": ["guard", "shim", "--server-name=math", "--client=custom", "--policy", "/etc/policy.yaml", "--", "python3", "-m", "math_server"],
       "cwd": "./server",
       "timeout": 30000,
       "trust": false,
       "includeTools": ["add"]
     }
    "##);
}

#[test]
fn a_second_import_changes_no_byte_and_keeps_the_first_backup() {
    let (_guard, folder) = folder();
    let (name, text) = fixture(Client::Cursor);
    let config = folder.join(name);
    write_config(&config, &text);
    let first = run_import(Client::Cursor, &config, Mode::Write).unwrap();
    let imported = read(&config);
    let inode = config.metadata().unwrap().ino();
    let second = run_import(Client::Cursor, &config, Mode::Write).unwrap();
    assert!(!second.is_changed && second.backup == first.backup);
    assert!(second.servers.iter().all(|server| server.status == ServerStatus::Skipped));
    assert_eq!((read(&config), config.metadata().unwrap().ino()), (imported, inode), "the file is not even written");
    assert_eq!(read(&first.backup.unwrap()), text);
    assert_eq!(run_restore(Client::Cursor, &config).restored, RestoreOutcome::Original);
    assert_eq!(read(&config), text);
}

#[test]
fn edits_after_the_import_stay_when_the_servers_are_unwrapped() {
    let (_guard, folder) = folder();
    let (name, text) = fixture(Client::ClaudeCode);
    let config = folder.join(name);
    write_config(&config, &text);
    run_import(Client::ClaudeCode, &config, Mode::Write).unwrap();
    write_config(&config, &read(&config).replace("\"numStartups\": 41", "\"numStartups\": 42"));
    let report = run_restore(Client::ClaudeCode, &config);
    assert_eq!(report.restored, RestoreOutcome::Unwrapped);
    assert_eq!(read(&config), text.replace("41", "42"));
    assert_eq!(read(&report.backup.unwrap()), text, "the original remains");
    assert_eq!(run_restore(Client::ClaudeCode, &config).restored, RestoreOutcome::Nothing);
    // The next import has another original, and does not overwrite the older one.
    let report = run_import(Client::ClaudeCode, &config, Mode::Write).unwrap();
    assert!(report.backup.as_ref().unwrap().as_str().ends_with(".counterproof-backup-2"), "{report:?}");
    assert_eq!(run_restore(Client::ClaudeCode, &config).restored, RestoreOutcome::Original);
    assert_eq!(read(&config), text.replace("41", "42"));
}

#[test]
fn a_server_that_was_added_between_two_imports_stays() {
    let (_guard, folder) = folder();
    let config = folder.join("mcp.json");
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"1\"]}}}\n";
    write_config(&config, text);
    run_import(Client::Cursor, &config, Mode::Write).unwrap();
    let added = ", \"b\": {\"command\": \"y\", \"args\": [\"2\"]}}}\n";
    write_config(&config, &read(&config).replace("}}\n", added));
    run_import(Client::Cursor, &config, Mode::Write).unwrap();
    assert_eq!(run_restore(Client::Cursor, &config).restored, RestoreOutcome::Unwrapped);
    assert_eq!(read(&config), text.replace("}}\n", added));
}

#[test]
fn the_original_replaces_edits_only_on_request() {
    let (_guard, folder) = folder();
    let config = folder.join("mcp.json");
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}\n";
    write_config(&config, text);
    let forced = RestoreOptions { client: Client::Cursor, config: &config, discards_edits: true, mode: Mode::Write };
    assert!(matches!(restore(&forced), Err(ImportError::NoBackup { .. })));
    let backup = run_import(Client::Cursor, &config, Mode::Write).unwrap().backup.unwrap();
    write_config(&config, "{\"mcpServers\": broken");
    let error = restore(&RestoreOptions { discards_edits: false, ..forced.clone() }).unwrap_err();
    assert!(matches!(error, ImportError::Invalid { .. }), "{error}");
    write_config(&backup, "{}");
    assert!(matches!(restore(&forced), Err(ImportError::ChangedBackup { .. })));
    write_config(&backup, text);
    assert_eq!(restore(&forced).unwrap().restored, RestoreOutcome::Original);
    assert_eq!(read(&config), text);
}

#[test]
fn a_configuration_that_was_deleted_is_restored_on_request() {
    let (_guard, folder) = folder();
    let config = folder.join("mcp.json");
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}\n";
    write_config(&config, text);
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o600)).unwrap();
    run_import(Client::Cursor, &config, Mode::Write).unwrap();
    std::fs::remove_file(&config).unwrap();
    let options = RestoreOptions { client: Client::Cursor, config: &config, discards_edits: false, mode: Mode::Write };
    assert!(matches!(restore(&options), Err(ImportError::Missing { .. })));
    let forced = RestoreOptions { discards_edits: true, ..options };
    let dry_run = restore(&RestoreOptions { mode: Mode::DryRun, ..forced.clone() }).unwrap();
    assert!(dry_run.diff.unwrap().contains("@@ a @@\n+"), "the difference to nothing");
    assert!(!config.exists());
    assert_eq!(restore(&forced).unwrap().restored, RestoreOutcome::Original);
    assert_eq!((read(&config).as_str(), config.metadata().unwrap().mode() & 0o777), (text, 0o600));
    assert_eq!(files(&folder), ["mcp.json"]);
    assert!(matches!(
        restore(&RestoreOptions { config: &folder.join("none.json"), ..forced }),
        Err(ImportError::Missing { .. })
    ));
}

#[test]
fn the_original_can_be_restored_after_a_restoration_that_kept_edits() {
    let (_guard, folder) = folder();
    let config = folder.join("mcp.json");
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}\n";
    write_config(&config, text);
    run_import(Client::Cursor, &config, Mode::Write).unwrap();
    write_config(&config, &format!("{}\n// edit\n", read(&config)));
    assert_eq!(run_restore(Client::Cursor, &config).restored, RestoreOutcome::Unwrapped);
    assert_eq!(run_restore(Client::Cursor, &config).restored, RestoreOutcome::Nothing);
    let forced = RestoreOptions { client: Client::Cursor, config: &config, discards_edits: true, mode: Mode::Write };
    assert_eq!(restore(&forced).unwrap().restored, RestoreOutcome::Original);
    assert_eq!(read(&config), text);
    assert_eq!(files(&folder), ["mcp.json"]);
}

#[test]
fn an_import_with_other_options_updates_the_servers_and_restores_the_original() {
    let (_guard, folder) = folder();
    let config = folder.join("config.toml");
    let text = "[mcp_servers.a]\ncommand = \"x\"\n";
    write_config(&config, text);
    run_import(Client::Codex, &config, Mode::Write).unwrap();
    let options = vec!["--policy".to_owned(), "/etc/new.yaml".to_owned()];
    let shim = ShimCommand { program: "/opt/counterproof".to_owned(), options };
    let dry_run = ImportOptions { client: Client::Codex, config: &config, shim, mode: Mode::DryRun };
    let report = import(&dry_run).unwrap();
    let diff = report.diff.unwrap();
    assert!(diff.contains("\n-args = ") && diff.contains("\"--policy\", \"/etc/new.yaml\""), "{diff}");
    let report = import(&ImportOptions { mode: Mode::Write, ..dry_run }).unwrap();
    assert!(report.is_changed && report.servers[0].status == ServerStatus::Updated);
    assert_eq!(run_restore(Client::Codex, &config).restored, RestoreOutcome::Original);
    assert_eq!(read(&config), text);
}

#[test]
fn a_dry_run_shows_no_secrets() {
    let (_guard, folder) = folder();
    let config = folder.join(".claude.json");
    let text = r#"{"primaryApiKey": "hunter2-a", "oauthAccount": {"emailAddress": "ada@hunter2.example"}, "mcpServers": {"a": {"command": "npx", "args": ["server", "--header=Authorization: Bearer hunter2-b", "--api-key", "hunter2-c", "https://example.com/mcp?token=hunter2-d", "-e", "TOKEN=hunter2-e"], "env": {"X": "hunter2-f"}}, "web": {"url": "https://example.com/?key=hunter2-g"}}, "userID": "hunter2-h"}"#;
    for text in [text.to_owned(), text.replace(", ", ",\n  ")] {
        write_config(&config, &text);
        let diff = run_import(Client::ClaudeCode, &config, Mode::DryRun).unwrap().diff.unwrap();
        assert!(!diff.contains("hunter2") && !diff.contains("primaryApiKey") && !diff.contains("web"), "{diff}");
        assert!(diff.contains("--server-name=a") && diff.contains("[REDACTED]"), "{diff}");
        assert!(!diff.contains("other lines differ"), "{diff}");
    }
    run_import(Client::ClaudeCode, &config, Mode::Write).unwrap();
    write_config(&config, &read(&config).replace("hunter2-h", "hunter2-i"));
    let options =
        RestoreOptions { client: Client::ClaudeCode, config: &config, discards_edits: true, mode: Mode::DryRun };
    let diff = restore(&options).unwrap().diff.unwrap();
    assert!(diff.contains("other lines differ") && !diff.contains("hunter2"), "{diff}");
}

#[test]
fn a_dry_run_shows_neither_numbers_of_variables_nor_secret_fields_nor_parts_of_commands() {
    let (_guard, folder) = folder();
    let config = folder.join("mcp.json");
    let text = r#"{"mcpServers": {"auth-server": {
  "command": "sh",
  "args": ["-c", "PGPASSWORD=hunter2 exec x --apiKey abc postgres://me:hunter2#x@db", "--config", "{\"token\":\"hunter2\"}"],
  "env": {
    // "OLD": "hunter2", /*
    "PIN": 1234, "IS_ADMIN": true, "NONE": null, /* "B": "hunter2" */
    "LIST": [56, "hunter2"] // hunter2
  },
  "oauth": {"clientSecret": "hunter2", "port": 7890},
  "apiKey": "hunter2", "timeout": 30, "bearer_token_env_var": "TOKEN"
}}}"#;
    write_config(&config, text);
    let diff = run_import(Client::Gemini, &config, Mode::DryRun).unwrap().diff.unwrap();
    let lines: String = diff.lines().skip(2).map(|line| line.trim_end().to_owned() + "\n").collect();
    insta::assert_snapshot!(lines, @r##"
    @@ auth-server @@
     "auth-server": {
    -  "command": "sh",
    -  "args": ["-c", "PGPASSWORD=[REDACTED]", "--config", "{\"token\":\"[REDACTED]\"}"],
    +  "command": "/opt/counterproof",
    +  "args": ["guard", "shim", "--server-name=auth-server", "--client=custom", "--policy", "/etc/policy.yaml", "--", "sh", "-c", "PGPASSWORD=[REDACTED]", "--config", "{\"token\":\"[REDACTED]\"}"],
       "env": {
         /* [REDACTED] */
         "PIN": "[REDACTED]", "IS_ADMIN": "[REDACTED]", "NONE": "[REDACTED]", /* [REDACTED] */
         "LIST": ["[REDACTED]", "[REDACTED]"] /* [REDACTED] */
       },
       "oauth": {"clientSecret": "[REDACTED]", "port": 7890},
       "apiKey": "[REDACTED]", "timeout": 30, "bearer_token_env_var": "TOKEN"
     }
    "##);
}

#[test]
fn a_symbolic_link_to_the_configuration_stays_a_link() {
    let (_guard, folder) = folder();
    let (target, config) = (folder.join("dotfiles.json"), folder.join("mcp.json"));
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
    write_config(&target, text);
    std::os::unix::fs::symlink(&target, &config).unwrap();
    run_import(Client::Cursor, &config, Mode::Write).unwrap();
    assert!(config.is_symlink() && read(&target).contains("guard"));
    run_restore(Client::Cursor, &config);
    assert!(config.is_symlink());
    assert_eq!(read(&target), text);
}

#[test]
fn a_configuration_that_is_not_valid_is_an_error_with_its_place_and_nothing_is_written() {
    let (_guard, folder) = folder();
    let mut lines = String::new();
    for (name, text) in [
        ("a.json", "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"},\n  \"a\": {}}}"),
        ("b.json", "{\"mcpServers\": {\n  \"secret-hunter2\" {}}}"),
        ("c.toml", "[mcp_servers.a]\ncommand = \"hunter2\n"),
        ("d.json", "\u{feff}[]"),
        ("e.json", "{\"mcpServers\": "),
    ] {
        let config = folder.join(name);
        write_config(&config, text);
        let error = run_import(Client::Cursor, &config, Mode::Write).unwrap_err().to_string();
        lines += &error.replace(folder.as_str(), "FOLDER");
        lines.push('\n');
        assert_eq!(read(&config), text);
    }
    write(&folder.join("f.json"), b"{\"a\": \"\xff\"}", Durability::Cached).unwrap();
    lines += &run_import(Client::Cursor, &folder.join("f.json"), Mode::Write).unwrap_err().to_string();
    lines.push('\n');
    lines += &run_import(Client::Cursor, &folder.join("none.json"), Mode::Write).unwrap_err().to_string();
    insta::assert_snapshot!(lines.replace(folder.as_str(), "FOLDER"), @r#"
    the configuration `FOLDER/a.json` is invalid: line 3, column 3: the key `a` appears twice in its object
    the configuration `FOLDER/b.json` is invalid: line 2, column 20: expected colon after the string or word in object property
    the configuration `FOLDER/c.toml` is invalid: line 2, column 19: invalid basic string, expected `"`
    the configuration `FOLDER/d.json` is invalid: line 1, column 2: the configuration is not an object
    the configuration `FOLDER/e.json` is invalid: line 1, column 16: expected value after colon in object property
    the configuration `FOLDER/f.json` is invalid: line 1, column 8: not valid UTF-8
    the configuration `FOLDER/none.json` does not exist
    "#);
    assert_eq!(files(&folder), ["a.json", "b.json", "c.toml", "d.json", "e.json", "f.json"]);
}
