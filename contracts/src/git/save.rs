//! Saves work before a reset discards it.

use super::GitError;
use super::repository::Repository;

/// Where the discarded work is saved.
const REFS: &str = "refs/counterproof/rollback";

/// The largest number of saved states of one name.
const MAX_SAVED: u32 = 100_000;

/// Saves the commit `head` and these paths of the work tree on top of it as a commit. Returns its reference.
pub(super) fn save(repository: &Repository, head: &str, paths: &[String], name: &str) -> Result<String, GitError> {
    let folder = tempfile::Builder::new().prefix("counterproof-index-").tempdir().map_err(GitError::Start)?;
    let index = folder.path().join("index");
    let git = |arguments: &[&str]| repository.git(arguments).with_index(&index).with_author();
    git(&["read-tree", head]).output()?;
    git(&["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]).with_paths(paths).output()?;
    let tree = git(&["write-tree"]).text()?;
    let message = format!("Work of `{name}` before its rollback");
    let commit = git(&["commit-tree", &tree, "-p", head, "-m", &message]).text()?;
    let encoded = encode(name);
    for number in 1..=MAX_SAVED {
        let reference = format!("{REFS}/{encoded}/{number}");
        if repository.git(&["show-ref", "--verify", "--quiet", &reference]).answer()? {
            continue;
        }
        // The empty old value: the reference must not exist.
        repository.git(&["update-ref", &reference, &commit, ""]).output()?;
        return Ok(reference);
    }
    Err(GitError::Output(format!("show-ref {REFS}/{name}")))
}

/// Encodes a name as one segment of a reference: letters, digits, `_` and `-`, and everything else as `%` and its byte.
fn encode(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let part = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(part).collect()
}

/// Returns the name of a branch for a reference under which work was saved, such as `rolled-back-shop-refund-1`.
pub(super) fn branch_name(reference: &str) -> String {
    let (mut name, encoded) = ("rolled-back-".to_owned(), reference.strip_prefix(REFS).unwrap_or(reference));
    let mut characters = encoded.trim_start_matches('/').chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => {
                name.push('-');
                // The two digits of the byte.
                let _ = characters.nth(1);
            }
            '/' => name.push('-'),
            other => name.push(other),
        }
    }
    name
}
