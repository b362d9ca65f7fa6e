//! Tests of the store of secrets and of the redactor.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_redaction::Applied;
use counterproof_store::write::{Durability, write};
use tempfile::TempDir;

use super::*;

const NOW: &str = "2026-01-31T12:00:00Z";

fn folder() -> (TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    (folder, path)
}

fn name(text: &str) -> SecretRef {
    text.parse().unwrap()
}

fn value(text: &str) -> SecretValue {
    SecretValue::new(text.to_owned()).unwrap()
}

fn mode(path: &Utf8Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Utf8Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn add(store: &SecretStore, key: &str, text: &str) -> bool {
    store.add(&name(key), &value(text), "stdin", NOW.parse().unwrap()).unwrap()
}

#[test]
fn secrets_are_added_replaced_listed_and_removed_in_a_private_file() {
    let (_guard, folder) = folder();
    let store = SecretStore::new(folder.join("new/secrets.json"));
    assert_eq!(store.list().unwrap(), []);
    assert!(!add(&store, "b", "first-value") && !add(&store, "a", "other-value") && add(&store, "b", "second-value"));
    assert_eq!((mode(&folder.join("new")), mode(store.path())), (0o700, 0o600));
    assert_eq!(store.value(&name("b")).unwrap().unwrap().expose(), "second-value");
    assert_eq!(store.value(&name("c")).unwrap(), None);
    let list = store.list().unwrap();
    assert_eq!(list.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((list[0].source.as_deref(), list[0].updated_at.as_deref()), (Some("stdin"), Some(NOW)));
    assert!(!serde_json::to_string(&list).unwrap().contains("value"));
    assert!(store.remove(&name("b")).unwrap() && !store.remove(&name("b")).unwrap());
    assert_eq!(store.value(&name("b")).unwrap(), None);
    let files: Vec<_> =
        folder.join("new").read_dir_utf8().unwrap().map(|it| it.unwrap().file_name().to_owned()).collect();
    assert_eq!(files, ["secrets.json"], "no lock and no temporary file is left");
}

#[test]
fn a_file_that_others_can_read_is_refused_with_the_remedy() {
    let (_guard, folder) = folder();
    let store = SecretStore::new(folder.join("secrets.json"));
    add(&store, "a", "some-value");
    for bits in [0o640, 0o604, 0o620, 0o610] {
        set_mode(store.path(), bits);
        let error = store.value(&name("a")).unwrap_err();
        assert!(matches!(error, SecretStoreError::NotPrivate { .. }), "{error}");
        assert_eq!(error.hint().unwrap(), format!("run `chmod 600 {}`", store.path()));
        assert!(store.add(&name("b"), &value("other-value"), "stdin", NOW.parse().unwrap()).is_err());
    }
    set_mode(store.path(), 0o600);
    set_mode(&folder, 0o777);
    let error = store.remove(&name("a")).unwrap_err();
    assert_eq!(error.hint().unwrap(), format!("run `chmod go-w {folder}`"));
}

#[test]
fn an_invalid_file_is_an_error_with_its_place_and_without_its_values() {
    let (_guard, folder) = folder();
    let store = SecretStore::new(folder.join("secrets.json"));
    for (text, expected) in [
        (
            "{\"a\": {\"value\": \"hunter2\"},\n \"a\": {\"value\": \"hunter3\"}}",
            "line 2, column 2: the key `a` appears twice",
        ),
        ("{\"a\": hunter2}", "line 1, column 7: "),
        ("[\"hunter2\"]", "the file is not a JSON object"),
        ("{\"a\": \"hunter2\"}", "`a` has no text in `value`"),
        ("{\"a\": {\"value\": \"\"}}", "the secret `a` in "),
    ] {
        write(store.path(), text.as_bytes(), Durability::Cached).unwrap();
        set_mode(store.path(), 0o600);
        let error = format!("{:?} {0}", store.value(&name("a")).unwrap_err());
        assert!(error.contains(expected) && !error.contains("hunter"), "{text}: {error}");
    }
}

#[test]
fn a_link_to_the_file_stays_a_link_and_unknown_fields_stay() {
    let (_guard, folder) = folder();
    let target = folder.join("target.json");
    write(&target, br#"{"old": {"value": "old-value", "note": 7}}"#, Durability::Cached).unwrap();
    set_mode(&target, 0o600);
    let link = folder.join("secrets.json");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    add(&SecretStore::new(&link), "new", "new-value");
    assert!(link.is_symlink() && mode(&target) == 0o600);
    let text = std::fs::read_to_string(&target).unwrap();
    assert!(text.contains("\"note\": 7") && text.contains("new-value"), "{text}");
}

#[test]
fn a_link_to_a_missing_file_is_refused_and_stays() {
    let (_guard, folder) = folder();
    let link = folder.join("secrets.json");
    std::os::unix::fs::symlink(folder.join("missing/target.json"), &link).unwrap();
    let store = SecretStore::new(&link);
    let error = store.add(&name("new"), &value("new-value"), "stdin", NOW.parse().unwrap()).unwrap_err();
    assert!(matches!(error, SecretStoreError::DanglingLink(_)) && error.hint().is_some(), "{error}");
    assert!(link.is_symlink() && !folder.join("missing").exists());
}

#[test]
fn changes_of_several_processes_lose_nothing() {
    let (_guard, folder) = folder();
    let store = SecretStore::new(folder.join("secrets.json"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                (0..5).for_each(|index| assert!(!add(store, &format!("s{thread}-{index}"), "some-value")));
            });
        }
    });
    assert_eq!(store.list().unwrap().len(), 20);
}

#[test]
fn the_path_of_the_store_follows_the_environment() {
    let path = |variables: &[(&str, &str)]| {
        let lookup = |name: &str| variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned());
        SecretStore::from_environment(lookup).map(|store| store.path().to_string())
    };
    let all = [("SUB_SECRETS_PATH", "/s.json"), ("XDG_CONFIG_HOME", "/config"), ("HOME", "/home/ada")];
    assert_eq!(path(&all).unwrap(), "/s.json");
    assert_eq!(path(&all[1..]).unwrap(), "/config/counterproof/secrets.json");
    assert_eq!(path(&all[2..]).unwrap(), "/home/ada/.config/counterproof/secrets.json");
    assert_eq!(path(&[]), None);
}

#[test]
fn the_redactor_masks_values_in_any_encoding_and_the_reference_strings() {
    let redactor = redactor(&[value("s3cret/value\"x")]).unwrap();
    let text = r#"s3cret/value\"x czNjcmV0L3ZhbHVlIng= sk-secret-key-12345 ghp_github_token_abc password123"#;
    let masked = redactor.text(text, &mut Applied::default());
    assert_eq!(masked, "[REDACTED] [REDACTED]= [REDACTED] [REDACTED] [REDACTED]");
}
