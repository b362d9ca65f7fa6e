//! File operations from the edits that tool calls state: texts, hunks, and the patch format `*** Begin Patch`.

use counterproof_artifact::Sha256Digest;
use serde_json::Value;

use crate::event::{FileChange, FileOperation};

/// Returns an operation without digests and patch.
pub(super) fn operation(operation: FileChange, path: String) -> FileOperation {
    FileOperation { operation, path, from_path: None, before_sha256: None, after_sha256: None, patch: None }
}

/// Returns the creation of a file with this text. `mask` is the text that replaces secrets: a digest of a masked text would
/// not be the digest of the file.
pub(super) fn creation(path: String, text: &str, mask: &str) -> FileOperation {
    let after_sha256 = (!text.contains(mask)).then(|| Sha256Digest::from_bytes(text.as_bytes()));
    let patch = Some(format!("--- /dev/null\n+++ b/{path}\n{}", hunk("", text)));
    FileOperation { after_sha256, patch, ..operation(FileChange::Create, path) }
}

/// Returns a unified diff of hunks `{oldStart, oldLines, newStart, newLines, lines}`.
pub(super) fn patch_from_hunks(path: &str, hunks: &[Value]) -> Option<String> {
    let mut patch = header(path);
    for hunk in hunks {
        let number = |name: &str| hunk.get(name).and_then(Value::as_u64);
        let (old, old_lines) = (number("oldStart")?, number("oldLines")?);
        let (new, new_lines) = (number("newStart")?, number("newLines")?);
        patch.push_str(&format!("@@ -{old},{old_lines} +{new},{new_lines} @@\n"));
        for line in hunk.get("lines")?.as_array()? {
            patch.push_str(line.as_str()?);
            patch.push('\n');
        }
    }
    (!hunks.is_empty()).then_some(patch)
}

/// Returns a diff of replaced texts, whose place in the file is not known: all hunks begin at line 1.
pub(super) fn patch_from_texts<'a>(path: &str, edits: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    edits.into_iter().fold(header(path), |patch, (old, new)| patch + &hunk(old, new))
}

/// Completes a unified diff of hunks with the lines that name the file.
pub(super) fn patch_with_header(path: &str, diff: &str) -> String {
    if diff.starts_with("---") { diff.to_owned() } else { header(path) + diff }
}

fn header(path: &str) -> String {
    format!("--- a/{path}\n+++ b/{path}\n")
}

fn hunk(old: &str, new: &str) -> String {
    let (old_lines, new_lines) = (old.lines().count(), new.lines().count());
    let start = |lines: usize| usize::from(lines > 0);
    let mut hunk = format!("@@ -{},{old_lines} +{},{new_lines} @@\n", start(old_lines), start(new_lines));
    for (sign, text) in [('-', old), ('+', new)] {
        for line in text.split_inclusive('\n') {
            hunk.push(sign);
            hunk.push_str(line);
            if !line.ends_with('\n') {
                hunk.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    hunk
}

/// Returns the text of a patch within a command or an argument.
pub(super) fn find_patch(text: &str) -> Option<&str> {
    let start = text.find(BEGIN)?;
    let end = text[start..].rfind(END)?;
    Some(&text[start..start + end])
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";

/// Returns the operations of a patch `*** Begin Patch`, in which hunks begin with `@@` and have no line numbers.
pub(super) fn patch_operations(patch: &str, cwd: Option<&str>, mask: &str) -> Vec<FileOperation> {
    let mut sections: Vec<(FileChange, &str, Option<&str>, String)> = Vec::new();
    for line in patch.lines() {
        let begin = |start: &str| line.strip_prefix(start).map(str::trim);
        if let Some(path) = begin("*** Add File: ") {
            sections.push((FileChange::Create, path, None, String::new()));
        } else if let Some(path) = begin("*** Update File: ") {
            sections.push((FileChange::Modify, path, None, String::new()));
        } else if let Some(path) = begin("*** Delete File: ") {
            sections.push((FileChange::Delete, path, None, String::new()));
        } else if let Some(section) = sections.last_mut() {
            if let Some(path) = begin("*** Move to: ") {
                section.2 = Some(path);
            } else if !line.starts_with("*** ") {
                section.3.push_str(line);
                section.3.push('\n');
            }
        }
    }
    let made = sections.into_iter().map(|(change, path, target, body)| {
        let path = relative(path, cwd);
        match change {
            FileChange::Create => {
                let text: String =
                    body.split_inclusive('\n').map(|line| line.strip_prefix('+').unwrap_or(line)).collect();
                creation(path, &text, mask)
            }
            FileChange::Modify => modification(path, target.map(|target| relative(target, cwd)), Some(&body)),
            _ => operation(change, path),
        }
    });
    made.collect()
}

/// Returns the change of a file, which may get another path.
pub(super) fn modification(path: String, target: Option<String>, diff: Option<&str>) -> FileOperation {
    let name = target.as_deref().unwrap_or(&path);
    let patch = diff.filter(|diff| !diff.is_empty()).map(|diff| patch_with_header(name, diff));
    match target.filter(|target| *target != path) {
        Some(target) => FileOperation { from_path: Some(path), patch, ..operation(FileChange::Rename, target) },
        None => FileOperation { patch, ..operation(FileChange::Modify, path) },
    }
}

/// Returns a path relative to the working directory, with forward slashes. A path outside of it stays absolute.
pub(super) fn relative(path: &str, cwd: Option<&str>) -> String {
    let has_drive = |text: &str| text.as_bytes().get(1) == Some(&b':');
    // On other systems, a backslash is a character of a name.
    let is_windows = has_drive(path) || cwd.is_some_and(has_drive);
    let slashes = |text: &str| if is_windows { text.replace('\\', "/") } else { text.to_owned() };
    let path = slashes(path);
    let below = cwd.map(slashes).and_then(|cwd| {
        let rest = path.strip_prefix(cwd.trim_end_matches('/'))?.strip_prefix('/')?;
        Some(rest.to_owned())
    });
    let path = below.unwrap_or(path);
    path.strip_prefix("./").map(str::to_owned).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_working_directory() {
        assert_eq!(relative("/w/a/b.rs", Some("/w")), "a/b.rs");
        assert_eq!(relative("/wide/b.rs", Some("/w")), "/wide/b.rs");
        assert_eq!(relative("./b.rs", None), "b.rs");
        assert_eq!(relative(r"C:\w\a\b.rs", Some(r"C:\w\")), "a/b.rs");
        assert_eq!(relative(r"/w/a\b", Some("/w")), r"a\b");
    }

    #[test]
    fn a_patch_has_an_operation_for_each_file() {
        let patch = "*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n*** Update File: /w/old.txt\n*** Move to: /w/moved.txt\n\
                     @@ fn main\n-a\n+b\n*** Delete File: gone.txt\n*** End Patch";
        let found = patch_operations(find_patch(patch).unwrap(), Some("/w"), "[REDACTED]");
        let summary: Vec<_> =
            found.iter().map(|it| (it.operation, it.path.as_str(), it.from_path.as_deref())).collect();
        assert_eq!(
            summary,
            [
                (FileChange::Create, "new.txt", None),
                (FileChange::Rename, "moved.txt", Some("old.txt")),
                (FileChange::Delete, "gone.txt", None),
            ]
        );
        assert_eq!(found[0].after_sha256, Some(Sha256Digest::from_bytes(b"one\ntwo\n")));
        assert_eq!(found[0].patch.as_deref(), Some("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"));
        assert_eq!(found[1].patch.as_deref(), Some("--- a/moved.txt\n+++ b/moved.txt\n@@ fn main\n-a\n+b\n"));
    }

    #[test]
    fn a_masked_text_has_no_digest() {
        assert_eq!(creation("a".into(), "k=[REDACTED]", "[REDACTED]").after_sha256, None);
    }
}
