//! The list of rules: each with a stable code, what it means, and what to do about it. `docs/validate.md` says the same,
//! and a test holds it to that.

use std::fmt;

macro_rules! codes {
    ($($variant:ident $code:literal $meaning:literal $remedy:literal)*) => {
        /// The rules, by their stable codes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            /// All rules, in the order in which they are asked.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The stable kebab-case code.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $code,)* }
            }

            /// What is wrong where the rule is broken.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning,)* }
            }

            /// What to do about it.
            pub const fn remedy(self) -> &'static str {
                match self { $(Code::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    // The file.
    Unreadable "unreadable"
        "The file or folder could not be read."
        "check that it is there and that you may read it"
    FileNameNotUtf8 "file-name-not-utf8"
        "The file's name is not UTF-8, so no JSON document can name it."
        "rename the file"
    EmptyFile "empty-file"
        "The file is empty."
        "record the run again: the file was torn or never written"
    NotUtf8 "not-utf8"
        "The file is not UTF-8 text."
        "save the file as UTF-8"
    ByteOrderMark "byte-order-mark"
        "The file starts with a byte order mark, which JSON forbids."
        "save the file as UTF-8 without a byte order mark"

    // JSON.
    JsonSyntax "json-syntax"
        "The file is not JSON."
        "correct the syntax; a file that ends too early was torn while it was written"
    JsonTooDeep "json-too-deep"
        "The JSON is nested deeper than 127 levels."
        "flatten the value, or keep it as an asset"
    DuplicateKey "duplicate-key"
        "An object has the same key twice, so readers disagree on its value."
        "keep one of the two"

    // Which document it is.
    OlderFormat "older-format"
        "The document has an older shape, from before the contract had versions."
        "record the run again with `counterproof run`, or convert it and add `schema_version`"
    UnknownSchemaVersion "unknown-schema-version"
        "The document's `schema_version` is none that this program knows."
        "correct `schema_version`, or use a program that knows this version"
    WrongDocument "wrong-document"
        "The document is of another kind than its place calls for."
        "move the file to its place, or correct its `schema_version`"

    // The schema.
    MissingField "missing-field"
        "A required field is missing."
        "add the field"
    UnexpectedField "unexpected-field"
        "A field is there that must not stand beside the others."
        "remove the field"
    WrongType "wrong-type"
        "A value has the wrong JSON type; null, too, is allowed only where the contract says so."
        "write a value of the right type, or leave out a field that is not required"
    WrongValue "wrong-value"
        "A value is of the right type, but not one that the contract allows."
        "write one of the allowed values"

    // Ids and names.
    UnsafeCaseId "unsafe-case-id"
        "A case id cannot name a file on every system."
        "rename the case: ASCII letters, digits and `._-+=@,~()[]`, at most 128"
    UnsafeRunId "unsafe-run-id"
        "A run id cannot name a folder on every system."
        "rename the run: ASCII letters, digits and `._-+=@,~()[]`, at most 128"
    FileNameDiffers "file-name-differs"
        "The file's name and its `case_id` differ."
        "name the file `<case_id>.json`"
    SideDiffers "side-differs"
        "The document is of another side than its run or its folder."
        "move the file to the side that it belongs to, or correct `version`"
    RunIdDiffers "run-id-differs"
        "The run's `run_id` and its folder differ."
        "name the folder as the run"
    CaseIdDiffers "case-id-differs"
        "The metadata of a body name another case than the one that links to them."
        "correct the link, or the metadata"
    DuplicateCaseId "duplicate-case-id"
        "Two cases have ids that are equal, or would be on a system that ignores case."
        "rename one of the cases"
    BadTimestamp "bad-timestamp"
        "A time is not written in ISO 8601."
        "write it like 2026-01-31T12:00:00Z"

    // Links.
    AbsolutePath "absolute-path"
        "A path is absolute, so the folder cannot be moved to another machine."
        "write the path relative to the folder that holds the document"
    HrefEscapes "href-escapes"
        "An href or a document leaves its folder, by `..`, as a URL, or through a symbolic link."
        "put the file itself into the folder, an asset under `assets/`, and link to it there"
    HrefNotPortable "href-not-portable"
        "An href is not written in a way that means the same on every system."
        "write plain segments parted by `/`, such as `assets/body.bin`"
    HrefOutsideAssets "href-outside-assets"
        "An href leads to a place in the run folder other than `assets/`."
        "move the file under `assets/` and correct the href"
    AssetMissing "asset-missing"
        "A document links to an asset that is not there."
        "restore the file, or record the run again"
    AssetSizeDiffers "asset-size-differs"
        "An asset is not as large as a document says."
        "restore the file: it was changed or cut after the run"
    AssetDigestDiffers "asset-digest-differs"
        "An asset has another SHA-256 than a document says."
        "restore the file: it was changed after the run"

    // Within an artifact.
    DuplicateCallId "duplicate-call-id"
        "Two tool calls have the same `call_id`."
        "give each call an id of its own"
    DuplicateActionId "duplicate-action-id"
        "Two proposed actions have the same `action_id`."
        "give each action an id of its own"
    ResultWithoutCall "result-without-call"
        "A tool result answers a call that is not among the events."
        "record the `tool_call` too, or correct the `call_id`"
    EvidenceUnresolved "evidence-unresolved"
        "An evidence ref points at nothing."
        "record what the action rests on, or correct the ref"
    SnippetWithoutBody "snippet-without-body"
        "A failure has a snippet of a body, but the whole body is not kept."
        "save the body under `assets/` and name it in `full_body_saved_to`"

    // Within a run folder.
    RunFileMissing "run-file-missing"
        "A run folder has artifacts, but no `run.json`."
        "restore `run.json`, or record the run again"
    CaseFileMissing "case-file-missing"
        "A selected case has no artifact: the run was not finished, or the file is gone."
        "finish the run, or restore the file"
    FileNotRestored "file-not-restored"
        "The journal of a runner that was cut off holds a file that is missing or torn in the folder."
        "resume the run, which restores the file"
    CaseNotSelected "case-not-selected"
        "An artifact is there for a case that the run did not select."
        "remove the file, or add the case to `selected_case_ids`"
    StatsDiffer "stats-differ"
        "The run's stats do not add up with its artifacts."
        "correct the stats: total = selected, failed = runner errors, completed = answers, or all artifacts"
    ManifestEntryMissing "manifest-entry-missing"
        "A file under `assets/` is not in the manifest."
        "add it to `assets/manifest.json`, or remove the file"
    ManifestEntryStale "manifest-entry-stale"
        "The manifest lists a file that is not there."
        "remove the entry, or restore the file"
    DuplicateAsset "duplicate-asset"
        "Two entries of the manifest have the same `asset_id` or the same href."
        "keep one of the two"
    CountsDiffer "counts-differ"
        "The evaluation's counts do not add up with its cases."
        "compare the runs again"

    // The list itself.
    MoreFindings "more-findings"
        "The file has more findings than are listed."
        "correct the ones that are listed, then validate again"
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_kebab_case_and_unique() {
        let mut seen = HashSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.as_str()), "{code} stands twice");
            assert!(
                code.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'8'),
                "{code}"
            );
            assert!(code.meaning().ends_with('.') && !code.remedy().ends_with('.'), "{code}");
        }
    }
}
