//! The keychain, and the environment that a server gets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use camino::Utf8Path;
use counterproof_guard::secrets::{
    Bindings, InjectionError, Keychain, KeychainError, SecretRef, SecretSources, SecretStore, SecretValue, resolve,
};
use counterproof_store::write::{Durability, write};

use crate::kit::{folder, supervisor};

fn name(text: &str) -> SecretRef {
    text.parse().unwrap()
}

fn add(store: &SecretStore, key: &str, text: &str) {
    let value = SecretValue::new(text.to_owned()).unwrap();
    store.add(&name(key), &value, "stdin", "2026-01-31T12:00:00Z".parse().unwrap()).unwrap();
}

/// A keychain whose program is a script.
fn keychain(folder: &Utf8Path, script: &str) -> Keychain {
    let path = folder.join("keychain.sh");
    write(&path, script.as_bytes(), Durability::Cached).unwrap();
    Keychain { command: Some(vec!["sh".into(), path.into()]), supervisor: Some(supervisor()), ..Keychain::of_system() }
}

#[test]
fn the_keychain_returns_the_value_of_a_secret_or_nothing() {
    let (_guard, folder) = folder();
    let script = "case $1 in known) printf 'the-value\\n';; two) printf 'one\\ntwo';; none) exit 1;; mac) exit 44;; \
                  empty) exit 0;; *) echo 'no bus' >&2; exit 1;; esac";
    let keychain = keychain(&folder, script);
    let found = |key: &str| keychain.lookup(&name(key)).map(|value| value.map(|value| value.expose().to_owned()));
    assert_eq!(found("known").unwrap().as_deref(), Some("the-value"));
    assert_eq!(found("two").unwrap().as_deref(), Some("one\ntwo"));
    for missing in ["none", "mac", "empty"] {
        assert_eq!(found(missing).unwrap(), None, "{missing}");
    }
    assert_eq!(found("$(touch x)").unwrap_err().to_string(), "`sh` failed with exit code 1: no bus");
    let missing = Keychain { command: Some(vec!["no-such-program".into()]), ..keychain.clone() };
    let error = missing.lookup(&name("a")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read the keychain with `no-such-program`");
    assert!(!folder.join("x").exists(), "no shell reads the name");
}

#[test]
fn a_keychain_that_does_not_answer_is_given_up() {
    let (_guard, folder) = folder();
    let keychain = keychain(&folder, "trap '' TERM; sleep 60; sleep 60");
    let keychain = Keychain { limit: Duration::from_millis(200), ..keychain };
    let error = keychain.lookup(&name("a")).unwrap_err();
    assert!(matches!(error, KeychainError::TimedOut { .. }), "{error}");
}

fn environment(variables: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
    variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn bindings(text: &str) -> Bindings {
    Bindings::parse(Utf8Path::new("b.json"), text.as_bytes()).unwrap()
}

#[test]
fn a_server_receives_its_own_secrets_and_no_variable_that_carries_others() {
    let (_guard, folder) = folder();
    let store = SecretStore::new(folder.join("secrets.json"));
    add(&store, "db", "db-password-value");
    let environment = environment(&[
        ("GITHUB_TOKEN", "token-value-1"),
        ("github_token", "token-value-5"),
        ("WEB_KEY", "token-value-6"),
        ("OTHER_TOKEN", "token-value-2"),
        ("SUB_SECRET_SLACK", "token-value-3"),
        ("SUB_SECRET_UNUSED", "token-value-4"),
        ("SUB_SECRET_BINDINGS", "[]"),
        ("PATH", "/bin"),
    ]);
    let keychain = keychain(&folder, "printf keychain-value");
    let sources = SecretSources { environment: &environment, store: Some(&store), keychain: &keychain };
    let bindings = bindings(
        r#"{"git": [{"inject_as": "TOKEN", "secret_ref": "github_token"}, {"inject_as": "SLACK", "secret_ref": "slack"},
                    {"inject_as": "DB", "secret_ref": "db", "source": "file"},
                    {"inject_as": "KEY", "secret_ref": "k", "source": "keychain", "redact": false}],
            "web": [{"inject_as": "OTHER_TOKEN", "secret_ref": "OTHER_TOKEN"},
                    {"inject_as": "WEB_KEY", "secret_ref": "w", "source": "keychain"}]}"#,
    );
    let git = resolve(&bindings, "git", &sources);
    assert!(git.errors.is_empty() && git.warnings.is_empty(), "{:?}", git.errors);
    let variables = git.environment();
    let text = |value: &'_ OsString| value.to_str().unwrap().to_owned();
    let changes: Vec<_> = variables.iter().map(|(name, value)| (text(name), value.as_ref().map(text))).collect();
    let changes: Vec<_> = changes.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
    assert_eq!(
        changes,
        [
            ("DB", Some("db-password-value")),
            ("GITHUB_TOKEN", None),
            ("KEY", Some("keychain-value")),
            ("OTHER_TOKEN", None),
            ("SLACK", Some("token-value-3")),
            ("SUB_SECRETS_PATH", None),
            ("SUB_SECRET_BINDINGS", None),
            ("SUB_SECRET_BINDINGS_FILE", None),
            ("SUB_SECRET_SLACK", None),
            ("SUB_SECRET_UNUSED", None),
            ("TOKEN", Some("token-value-5")),
            ("WEB_KEY", None),
            ("github_token", None),
        ]
    );
    assert_eq!(
        git.redact.iter().map(SecretValue::expose).collect::<Vec<_>>(),
        ["token-value-5", "token-value-3", "db-password-value"]
    );
    assert!(git.injections.iter().all(|it| it.success) && git.injections.len() == 4);
    let debug = format!("{git:?}");
    for hidden in ["token-value", "db-password", "keychain-value"] {
        assert!(!debug.contains(hidden), "{debug}");
    }
    let web = resolve(&bindings, "web", &sources);
    assert_eq!(web.environment()[&OsString::from("OTHER_TOKEN")], Some("token-value-2".into()));
    assert_eq!(web.environment()[&OsString::from("GITHUB_TOKEN")], None);
}

#[test]
fn a_missing_secret_is_an_error_unless_it_is_optional() {
    let environment = environment(&[("SHORT", "abc"), ("EMPTY", "")]);
    let (_guard, folder) = folder();
    let store = SecretStore::new(folder.join("secrets.json"));
    let keychain = keychain(&folder, "exit 1");
    let sources = SecretSources { environment: &environment, store: Some(&store), keychain: &keychain };
    let bindings = bindings(
        r#"[{"inject_as": "A", "secret_ref": "empty"}, {"inject_as": "B", "secret_ref": "none", "optional": true},
            {"inject_as": "C", "secret_ref": "none", "source": "file"},
            {"inject_as": "D", "secret_ref": "none", "source": "keychain", "optional": true},
            {"inject_as": "E", "secret_ref": "SHORT", "optional": true},
            {"inject_as": "F", "secret_ref": "short", "redact": false}]"#,
    );
    let resolved = resolve(&bindings, "any", &sources);
    let describe = |list: &[InjectionError]| {
        let lines =
            list.iter().map(|error| format!("{error}: {}", error.source).replace(store.path().as_str(), "STORE"));
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(describe(&resolved.errors), @"
    cannot inject the secret `empty` as `A`: none of these variables is set: empty, EMPTY, SUB_SECRET_EMPTY
    cannot inject the secret `none` as `C`: it is not in `STORE`
    cannot inject the secret `SHORT` as `E`: the value has 3 bytes; a value of fewer than 4 bytes cannot be redacted reliably
    ");
    insta::assert_snapshot!(describe(&resolved.warnings), @"
    cannot inject the secret `none` as `B`: none of these variables is set: none, NONE, SUB_SECRET_NONE
    cannot inject the secret `none` as `D`: it is not in the keychain
    ");
    let success: Vec<_> = resolved.injections.iter().map(|it| (it.inject_as.as_str(), it.success)).collect();
    assert_eq!(success, [("A", false), ("B", false), ("C", false), ("D", false), ("E", false), ("F", true)]);
    assert!(resolved.redact.is_empty());
}

#[test]
fn the_page_on_secrets_has_valid_examples_and_all_formats_of_keys() {
    let page = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guard-secrets.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```json\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let examples: Vec<&str> = blocks.filter(|block| block.contains("inject_as")).collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        let bindings = bindings(example);
        assert_eq!(bindings.of_server("github").count(), 1, "{example}");
    }
    for pattern in counterproof_redaction::BROAD_PATTERNS {
        assert!(page.contains(&format!("| {} |", pattern.looks_like)), "{}", pattern.looks_like);
    }
}
