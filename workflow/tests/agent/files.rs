//! `read`, `write`, `edit` and `search`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use counterproof_sessions::event::FileChange;
use serde_json::{Value, json};

use crate::kit::Kit;

/// Runs a call that must fail, and returns its message.
#[track_caller]
fn refused(kit: &Kit, name: &str, arguments: &Value) -> String {
    let outcome = kit.run(name, arguments);
    assert_eq!(outcome.result.success, Some(false), "{name} {arguments}: {outcome:?}");
    assert!(outcome.message.starts_with("error: "), "{name} {arguments}: {outcome:?}");
    assert_eq!(outcome.result.content.as_deref(), Some(&*outcome.message));
    outcome.message
}

#[track_caller]
fn done(kit: &Kit, name: &str, arguments: &Value) -> String {
    let outcome = kit.run(name, arguments);
    assert_eq!(outcome.result.success, Some(true), "{name} {arguments}: {outcome:?}");
    outcome.message
}

#[test]
fn no_path_leads_out_of_the_workspace_or_into_git() {
    let kit = Kit::new();
    let outside = kit.path("outside");
    fs::write(outside.join("secret"), "secret").unwrap();
    kit.file("folder/file", "text");
    kit.file(".git/hooks/pre-commit.sample", "text");
    let workspace = kit.path("workspace");
    for (link, target) in [
        ("to_outside", "../outside"),
        ("to_secret", "../outside/secret"),
        ("absolute", outside.join("secret").as_str()),
        ("dangling", "../outside/new"),
        ("in_folder", "folder/../../outside/secret"),
        ("loop", "loop"),
        ("to_git", ".git"),
        ("to_hook", ".git/hooks/pre-commit"),
        ("up", ".."),
    ] {
        symlink(target, workspace.join(link)).unwrap();
    }
    symlink("../../outside", workspace.join("folder/middle")).unwrap();
    let long = "a/".repeat(2000);
    let mut paths: Vec<String> = [
        "../outside/secret",
        "folder/../../outside/secret",
        "..",
        "folder/..",
        "/etc/passwd",
        "//etc/passwd",
        "to_outside/secret",
        "to_secret",
        "absolute",
        "dangling",
        "in_folder",
        "loop",
        "up/outside/secret",
        "folder/middle/secret",
        "to_git/config",
        "to_hook",
        ".git",
        ".git/config",
        ".GIT/hooks/pre-commit",
        "./.Git/hooks/pre-commit",
        "folder/.git/config",
        ".git//hooks/pre-commit",
        "",
        "a\0b",
        long.as_str(),
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push(outside.join("secret").into_string());
    paths.push(workspace.join("../outside/secret").into_string());
    paths.push(format!("{workspace}-other/file"));
    for path in paths {
        let message = refused(&kit, "read", &json!({"path": path}));
        assert!(!message.contains("secret\n"), "{message}");
        refused(&kit, "write", &json!({"path": path, "content": "x"}));
        refused(&kit, "edit", &json!({"path": path, "old_string": "secret", "new_string": "x"}));
        let searched = kit.run("search", &json!({"pattern": "secret|text", "path": path}));
        assert_eq!(searched.result.success, Some(false), "{path}: {searched:?}");
    }
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read_dir(workspace.join(".git/hooks")).unwrap().count(), 1);
    // The whole workspace: nothing of it is found through a link.
    assert_eq!(done(&kit, "search", &json!({"pattern": "secret|text"})), "folder/file:1:text");
}

#[test]
fn links_within_the_workspace_are_followed_to_read_only() {
    let kit = Kit::new();
    kit.file("folder/file", "text\n");
    let workspace = kit.path("workspace");
    symlink("folder/file", workspace.join("link")).unwrap();
    symlink("../folder", workspace.join("folder/back")).unwrap();
    for path in ["link", "folder/back/file", "folder/back/back/file"] {
        assert_eq!(done(&kit, "read", &json!({"path": path})), "text\n", "{path}");
        refused(&kit, "write", &json!({"path": path, "content": "x"}));
        refused(&kit, "edit", &json!({"path": path, "old_string": "text", "new_string": "x"}));
    }
    assert_eq!(kit.content("folder/file"), "text\n");
}

#[test]
fn what_is_not_a_regular_file_is_refused_at_once() {
    let kit = Kit::new();
    let workspace = kit.path("workspace");
    fs::create_dir(workspace.join("folder")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        workspace.join("fifo").as_std_path(),
        rustix::fs::FileType::Fifo,
        0o666.into(),
        0,
    )
    .unwrap();
    let _listener = UnixListener::bind(workspace.join("socket")).unwrap();
    // Only a privileged user may create a device.
    let device = rustix::fs::makedev(1, 5);
    let zero = workspace.join("zero");
    let _ = rustix::fs::mknodat(
        rustix::fs::CWD,
        zero.as_std_path(),
        rustix::fs::FileType::CharacterDevice,
        0o666.into(),
        device,
    );
    kit.file("huge", "");
    fs::File::options().write(true).open(workspace.join("huge")).unwrap().set_len(1 << 40).unwrap();
    kit.file("binary", b"a\0b");
    for path in ["folder", "fifo", "socket", "zero", "huge", "missing", "huge/below"] {
        refused(&kit, "read", &json!({"path": path}));
        refused(&kit, "edit", &json!({"path": path, "old_string": "a", "new_string": "b"}));
    }
    refused(&kit, "read", &json!({"path": "binary"}));
    for path in ["folder", "fifo", "socket", "huge/below"] {
        refused(&kit, "write", &json!({"path": path, "content": "x"}));
    }
    refused(&kit, "write", &json!({"path": "large", "content": "x".repeat((16 << 20) + 1)}));
    assert_eq!(done(&kit, "search", &json!({"pattern": "."})), "no matches");
}

#[test]
fn a_tree_that_changes_during_a_call_gives_nothing_from_outside() {
    let kit = Kit::new();
    let (workspace, outside) = (kit.path("workspace"), kit.path("outside"));
    fs::write(outside.join("file"), "secret").unwrap();
    kit.file("real/file", "text");
    kit.file("folder/file", "text");
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // A folder and a link to the outside change places.
            symlink("../outside", workspace.join("link")).unwrap();
            let exchange = || {
                let path = |name: &str| workspace.join(name).into_std_path_buf();
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(rustix::fs::CWD, path("folder"), rustix::fs::CWD, path("link"), flags)
                    .unwrap();
            };
            while !has_ended.load(Ordering::Relaxed) {
                exchange();
            }
        });
        for _ in 0..500 {
            let read = kit.run("read", &json!({"path": "folder/file"}));
            assert!(!read.message.contains("secret"), "{read:?}");
            kit.run("write", &json!({"path": "folder/new", "content": "text"}));
            let found = kit.run("search", &json!({"pattern": "secret", "path": "folder"}));
            assert!(!found.message.contains(":1:"), "{found:?}");
        }
        has_ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_file_is_read_by_lines() {
    let kit = Kit::new();
    let lines: Vec<String> = (1..=200).map(|number| format!("line {number}\n")).collect();
    kit.file("src/long.txt", lines.concat());
    let whole = kit.run("read", &json!({"path": "./src//long.txt"}));
    let note = "[Output truncated. 64 lines removed. Read on with offset 137.]\n";
    assert_eq!(whole.message, lines[..136].concat() + note);
    assert_eq!((whole.result.content, whole.result.truncated), (Some(lines.concat()), Some(true)));
    let [read] = &whole.reads[..] else { panic!() };
    assert_eq!((read.operation, read.path.as_str()), (FileChange::Read, "src/long.txt"));
    assert!(read.after_sha256.is_some() && read.after_sha256 == read.before_sha256);
    let part = kit.run("read", &json!({"path": "src/long.txt", "offset": 150, "limit": 2}));
    assert_eq!((part.message.as_str(), part.result.truncated), ("line 150\nline 151\n", Some(false)));
    let absolute = kit.path("workspace").join("src/long.txt");
    assert_eq!(done(&kit, "read", &json!({"path": absolute, "offset": 200})), "line 200\n");
    let all = done(&kit, "read", &json!({"path": "src/long.txt", "limit": 1000}));
    assert_eq!(all, lines.concat());
    refused(&kit, "read", &json!({"path": "src/long.txt", "offset": 201}));
    kit.file("empty", "");
    assert_eq!(done(&kit, "read", &json!({"path": "empty"})), "");
    kit.file("latin", b"caf\xe9\n");
    assert!(done(&kit, "read", &json!({"path": "latin"})).starts_with("caf\u{fffd}\n\n[The file is not UTF-8"));
    kit.file("one-line", "é".repeat(150_000));
    let cut = kit.run("read", &json!({"path": "one-line"}));
    assert!(cut.message.ends_with("é\n[Output truncated. 50000 characters removed.]"));
    assert_eq!((cut.result.content.unwrap().chars().count(), cut.result.truncated), (150_000, Some(true)));
}

#[test]
fn a_write_replaces_a_file_and_keeps_its_mode() {
    let kit = Kit::new();
    let path = kit.path("workspace").join("run.sh");
    kit.file("run.sh", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    fs::hard_link(&path, kit.path("outside").join("hard")).unwrap();
    assert_eq!(done(&kit, "write", &json!({"path": "run.sh", "content": "new"})), "replaced `run.sh` (3 bytes)");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_to_string(kit.path("outside").join("hard")).unwrap(), "old");
    assert_eq!(done(&kit, "write", &json!({"path": "a/b/c.txt", "content": ""})), "created `a/b/c.txt` (0 bytes)");
    assert_eq!(kit.content("a/b/c.txt"), "");
    let names: Vec<_> = fs::read_dir(kit.path("workspace")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn a_masked_secret_is_not_written_into_a_file() {
    let kit = Kit::new();
    kit.file("config.py", "KEY = 'secret'\nMODE = 1\n");
    let masked = "KEY = '[REDACTED]'\nMODE = 2\n";
    refused(&kit, "write", &json!({"path": "config.py", "content": masked}));
    let edit = |old: &str, new: &str| json!({"path": "config.py", "old_string": old, "new_string": new});
    refused(&kit, "edit", &edit("'secret'", "'[REDACTED]'"));
    assert_eq!(done(&kit, "edit", &edit("MODE = 1", "MODE = 2")), "edited `config.py`");
    assert_eq!(kit.content("config.py"), "KEY = 'secret'\nMODE = 2\n");
}

#[test]
fn an_edit_needs_one_place() {
    let kit = Kit::new();
    kit.file("a.txt", "one\r\ntwo\r\naaa\r\n");
    let edit = |old: &str, new: &str| json!({"path": "a.txt", "old_string": old, "new_string": new});
    for (old, new) in [("three", "x"), ("", "x"), ("two", "two"), ("aa", "b"), ("o", "0")] {
        refused(&kit, "edit", &edit(old, new));
    }
    assert_eq!(done(&kit, "edit", &edit("two\r\n", "2\r\n")), "edited `a.txt`");
    assert_eq!(kit.content("a.txt"), "one\r\n2\r\naaa\r\n");
    kit.file("latin", b"caf\xe9 one");
    refused(&kit, "edit", &json!({"path": "latin", "old_string": "one", "new_string": "two"}));
}

#[test]
fn a_search_prints_lines_in_the_order_of_their_paths() {
    let kit = Kit::new();
    for (name, content) in [
        ("b.txt", "x\n\tneedle 1\r\nneedle 2"),
        ("a/deep/er.txt", "needle\n"),
        ("a/z.txt", "NEEDLE\n"),
        ("node_modules/m/index.js", "needle\n"),
        ("target/out.txt", "needle\n"),
        (".hidden/file", "needle\n"),
        ("name\nbreak", "needle\n"),
    ] {
        kit.file(name, content);
    }
    kit.file("binary", b"needle\0");
    let found = done(&kit, "search", &json!({"pattern": "needle"}));
    let expected = ".hidden/file:1:needle\na/deep/er.txt:1:needle\nb.txt:2:\tneedle 1\nb.txt:3:needle 2\n\
                    name break:1:needle";
    assert_eq!(found, expected);
    assert_eq!(done(&kit, "search", &json!({"pattern": "needle", "path": "target"})), "target/out.txt:1:needle");
    assert_eq!(done(&kit, "search", &json!({"pattern": r"(?i)^needle$", "path": "a/z.txt"})), "a/z.txt:1:NEEDLE");
    assert_eq!(done(&kit, "search", &json!({"pattern": "^$", "path": "a"})), "no matches");
    for pattern in ["(", "a{1000}{1000}{1000}", "\\"] {
        refused(&kit, "search", &json!({"pattern": pattern}));
    }
    refused(&kit, "search", &json!({"pattern": "x", "path": "missing"}));
}

#[test]
fn many_matches_are_cut() {
    let kit = Kit::new();
    kit.file("many.txt", "a line of text that matches\n".repeat(2000));
    let found = kit.run("search", &json!({"pattern": "matches"}));
    assert!(found.message.contains("\n[Output truncated. "), "{}", found.message);
    assert!(found.message.ends_with("\n[Stopped after 1000 lines. Use a narrower pattern or path.]"));
    assert_eq!(found.result.truncated, Some(true));
    assert_eq!(found.result.content.unwrap().lines().count(), 1001);
}

#[test]
fn malformed_calls_are_answered() {
    let kit = Kit::new();
    let tools = kit.tools();
    let run = |name: &str, arguments: &str| tools.run(name, arguments, &counterproof_safe_run::Cancellation::default());
    for (name, arguments, expected) in [
        ("read", "{\"path\": ", "error: the arguments are not valid JSON"),
        ("read", "[]", "error: the arguments must be a JSON object"),
        ("read", "", "error: the argument `path` is missing"),
        ("read", "{\"path\": 1}", "error: the argument `path` must be a string"),
        ("read", "{\"path\": \"a\", \"limit\": 0}", "error: the argument `limit` must be a whole number from 1"),
        ("write", "{\"path\": \"a\"}", "error: the argument `content` is missing"),
        ("shell", "{\"command\": \" \"}", "error: `command` is not a command"),
        ("delete", "{}", "error: unknown tool `delete`"),
        ("", "", "error: unknown tool ``"),
    ] {
        let outcome = run(name, arguments);
        assert!(outcome.message.starts_with(expected), "{name} {arguments}: {}", outcome.message);
        assert_eq!(outcome.result.success, Some(false));
        let is_object = !matches!(arguments, "{\"path\": " | "[]");
        assert_eq!(outcome.arguments.is_object(), is_object, "{arguments}");
        assert!(is_object || outcome.arguments == arguments);
    }
}
