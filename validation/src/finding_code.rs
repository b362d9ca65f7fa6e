//! The list of rules: each with a stable code, its meaning and its remedy. A test compares `docs/validate.md` with it.

use std::fmt;

macro_rules! codes {
    ($($variant:ident $code:literal $meaning:literal $remedy:literal)*) => {
        /// The rules, by their stable codes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            /// All rules, in the order in which they are checked.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The stable kebab-case code.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $code,)* }
            }

            /// What a finding of this rule means.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning,)* }
            }

            /// How to fix it.
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
        "check that it exists and that you have permission to read it"
    FileNameNotUtf8 "file-name-not-utf8"
        "The file name is not UTF-8, and JSON documents cannot refer to it."
        "rename the file"
    EmptyFile "empty-file"
        "The file is empty."
        "record the run again: the file was truncated or never written"
    NotUtf8 "not-utf8"
        "The file is not UTF-8 text."
        "save the file as UTF-8"
    ByteOrderMark "byte-order-mark"
        "The file starts with a byte order mark, which JSON forbids."
        "save the file as UTF-8 without a byte order mark"

    // JSON.
    JsonSyntax "json-syntax"
        "The file is not JSON."
        "correct the syntax; a file that ends too early was truncated while it was written"
    YamlSyntax "yaml-syntax"
        "The file is not YAML that JSON can express."
        "correct the YAML at this position"
    JsonTooDeep "json-too-deep"
        "The JSON is nested deeper than 127 levels."
        "flatten the value, or store it as an asset"
    DuplicateKey "duplicate-key"
        "An object has the same key twice, and readers disagree on its value."
        "remove one of the two"

    // Which document it is.
    OlderFormat "older-format"
        "The document has an older format, from before the contract had versions."
        "record the run again, or convert the document and add `schema_version`"
    UnknownSchemaVersion "unknown-schema-version"
        "The `schema_version` of the document is unknown to this program."
        "correct `schema_version`, or use a newer version of the program"
    WrongDocument "wrong-document"
        "The kind of the document does not match its path."
        "move the file, or correct its `schema_version`"

    // The schema.
    MissingField "missing-field"
        "A required field is missing."
        "add the field"
    UnexpectedField "unexpected-field"
        "A field is present that the schema does not allow, or that the other fields exclude."
        "remove the field"
    WrongType "wrong-type"
        "A value has the wrong JSON type. Null is allowed only where the schema allows it."
        "write a value of the right type, or remove an optional field"
    WrongValue "wrong-value"
        "A value has the right type, but the contract does not allow it."
        "write one of the allowed values"
    InvalidExpression "invalid-expression"
        "A text is not a valid CEL expression."
        "correct the expression at this position"

    // Ids and names.
    UnsafeCaseId "unsafe-case-id"
        "A case id is not a valid file name on every system."
        "rename the case: ASCII letters, digits and `._-+=@,~()[]`, at most 128"
    UnsafeRunId "unsafe-run-id"
        "A run id is not a valid folder name on every system."
        "rename the run: ASCII letters, digits and `._-+=@,~()[]`, at most 128"
    FileNameDiffers "file-name-differs"
        "The file name and the `case_id` differ."
        "name the file `<case_id>.json`"
    SideDiffers "side-differs"
        "The side of the document differs from the side of its run or its folder."
        "move the file to the folder of its side, or correct `version`"
    RunIdDiffers "run-id-differs"
        "The `run_id` and the name of the run folder differ."
        "rename the folder to the `run_id`"
    CaseIdDiffers "case-id-differs"
        "The metadata of a body name a different case than the one that links to them."
        "correct the link, or the metadata"
    DuplicateCaseId "duplicate-case-id"
        "Two case ids are equal, or equal on a case-insensitive file system."
        "rename one of the cases"
    BadTimestamp "bad-timestamp"
        "A time is not in ISO 8601."
        "write it like 2026-01-31T12:00:00Z"

    // Links.
    AbsolutePath "absolute-path"
        "A path is absolute, and breaks when the folder is moved to another machine."
        "write the path relative to the folder that holds the document"
    HrefEscapes "href-escapes"
        "An href or a document leaves its folder: by `..`, as a URL, or through a symbolic link."
        "copy the file into the folder (assets under `assets/`) and correct the href"
    HrefNotPortable "href-not-portable"
        "An href does not mean the same on every system."
        "write plain segments separated by `/`, such as `assets/body.bin`"
    HrefOutsideAssets "href-outside-assets"
        "An href names a file in the run folder that is not under `assets/`."
        "move the file under `assets/` and correct the href"
    AssetMissing "asset-missing"
        "A document links to an asset that does not exist."
        "restore the file, or record the run again"
    AssetSizeDiffers "asset-size-differs"
        "The size of an asset differs from the recorded size."
        "restore the file: it was changed or truncated after the run"
    AssetDigestDiffers "asset-digest-differs"
        "The SHA-256 of an asset differs from the recorded one."
        "restore the file: it was changed after the run"

    // Within an artifact.
    DuplicateCallId "duplicate-call-id"
        "Two tool calls have the same `call_id`."
        "give each call a unique id"
    DuplicateActionId "duplicate-action-id"
        "Two proposed actions have the same `action_id`."
        "give each action a unique id"
    ResultWithoutCall "result-without-call"
        "A tool result refers to a call that is not in the events."
        "record the `tool_call` too, or correct the `call_id`"
    EvidenceUnresolved "evidence-unresolved"
        "An evidence ref does not resolve."
        "record the evidence of the action, or correct the ref"
    SnippetWithoutBody "snippet-without-body"
        "A failure has a snippet of a body, but the complete body is not saved."
        "save the body under `assets/` and name it in `full_body_saved_to`"

    // Within a run folder.
    RunFileMissing "run-file-missing"
        "A run folder has artifacts, but no `run.json`."
        "restore `run.json`, or record the run again"
    CaseFileMissing "case-file-missing"
        "A selected case has no artifact: the run did not finish, or the file was removed."
        "resume the run, or restore the file"
    CaseNotSelected "case-not-selected"
        "An artifact belongs to a case that the run did not select."
        "remove the file, or add the case to `selected_case_ids`"
    StatsDiffer "stats-differ"
        "The stats of the run do not match its artifacts."
        "correct the stats: total = selected, failed = runner errors, completed = answers, or all artifacts"
    ManifestEntryMissing "manifest-entry-missing"
        "A file under `assets/` is not in the manifest."
        "add it to `assets/manifest.json`, or remove the file"
    ManifestEntryStale "manifest-entry-stale"
        "The manifest lists a file that does not exist."
        "remove the entry, or restore the file"
    DuplicateAsset "duplicate-asset"
        "Two entries of the manifest have the same `asset_id` or the same href."
        "remove one of the two"
    CountsDiffer "counts-differ"
        "The counts of the evaluation do not match its cases."
        "compare the runs again"

    // The files of a project.
    InvalidCase "invalid-case"
        "A cases file has a case that cannot be run or judged as it is written."
        "correct the field; docs/cases.md describes the format"
    InvalidConfiguration "invalid-configuration"
        "The configuration has a wrong key or value."
        "correct the key or the value; docs/configuration.md lists them"

    // The list itself.
    MoreFindings "more-findings"
        "The file has more findings than are listed."
        "correct the listed findings, then validate again"
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
            assert!(seen.insert(code.as_str()), "{code} occurs twice");
            assert!(
                code.as_str().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte == b'8'),
                "{code}"
            );
            assert!(code.meaning().ends_with('.') && !code.remedy().ends_with('.'), "{code}");
        }
    }
}
