//! `counterproof validate`: checks files against the contract and prints the findings.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_cases::Problem;
use counterproof_store::read_file;
use counterproof_validation::{Code, Excerpt, Finding, Report, validate_path};
use serde_json::Value;

use crate::command_error::CommandError;
use crate::config::Config;
use crate::config_file::ConfigFile;
use crate::findings::{self, Format};
use crate::layers;
use crate::streams::Streams;
#[cfg(test)]
use crate::working_copies::WorkingCopies;

/// Validate files: documents, run folders, folders that contain them, cases files, or the configuration.
///
/// Each document is checked against its JSON Schema and against the rules that a schema cannot express: IDs match file names,
/// links stay in their folder and lead to the recorded file, evidence resolves, and the counts of the run add up. All findings are
/// listed, not only the first.
///
/// A folder with a run.json is a run folder. In any other folder, all documents and run folders below it are validated; other JSON
/// files are skipped and counted. A cases file and a configuration (`.toml`) are validated if they are named.
///
/// Exit code 0: all files are valid. 1: there are findings. 2: a path contains nothing to validate. 3: a path does not exist or cannot be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, run folders, or folders that contain them; also in a bucket, such as `s3://BUCKET/runs/new/ID`
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<Utf8PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub(crate) fn run(args: &Args, check: &clap::Command, streams: &mut Streams) -> Result<Exit, CommandError> {
    let (mut report, mut errors) = (Report::default(), Vec::new());
    for path in &args.paths {
        match streams.copies.tree(path).and_then(|path| validate(&path, check)) {
            Ok(found) => report.merge(found),
            Err(error) => errors.push(error),
        }
    }
    // Findings of the readable paths come before the errors. Machine formats always print a document; a person gets no
    // "valid" line if nothing was checked.
    if errors.is_empty() || report.files > 0 || args.format != Format::Human {
        streams.print_document(&findings::render(&report, args.format))?;
    }
    let codes = errors.iter().map(|error| error.report(streams));
    if let Some(worst) = codes.max_by_key(|exit| exit.code()) {
        return Ok(worst);
    }
    Ok(if report.findings.is_empty() { Exit::Done } else { Exit::Findings })
}

/// Validates one path. Rejects a path without anything to validate. `check` has the options that `[run]` names.
fn validate(path: &Utf8Path, check: &clap::Command) -> Result<Report, CommandError> {
    if path.is_file() && path.extension() == Some("toml") {
        return validate_config(path, check);
    }
    if looks_like_cases(path) {
        return validate_cases(path);
    }
    let found = validate_path(path)
        .map_err(|error| CommandError::io(error).hint("check that the path exists and is readable"))?;
    if found.files == 0 {
        // A check of nothing must not look like a check that passed.
        return Err(CommandError::usage(format!("nothing to validate in `{path}`"))
            .hint("pass a document, a run folder, or a folder that contains some"));
    }
    Ok(found)
}

fn validate_config(path: &Utf8Path, check: &clap::Command) -> Result<Report, CommandError> {
    let text = read_file::read_text_argument(path, read_file::MAX_SMALL_BYTES)
        .map_err(|error| CommandError::io(format!("failed to read `{path}`: {error}")))?;
    let parsed = ConfigFile::parse(path.to_owned(), text.clone()).and_then(|file| {
        layers::validate_run(&file, check)?;
        Config::parse(&file)
    });
    let finding = parsed.err().map(|error| {
        let position = error.position(&text);
        let excerpt = error.span.clone().zip(position).map(|(span, at)| Excerpt::around(text.as_bytes(), span, at));
        let code = Code::InvalidConfiguration;
        Finding {
            code,
            file: path.to_owned(),
            pointer: String::new(),
            position,
            excerpt,
            message: error.message,
            expected: "a key and a value of the configuration".to_owned(),
            remedy: code.remedy().to_owned(),
        }
    });
    Ok(Report { findings: finding.into_iter().collect(), files: 1, ..Report::default() })
}

fn validate_cases(path: &Utf8Path) -> Result<Report, CommandError> {
    // A warning is a finding: a misspelt expectation is not checked.
    let problems = match counterproof_cases::load(path) {
        Ok(suite) => suite.warnings,
        Err(error) if error.problems().is_empty() => return Err(CommandError::io(error)),
        Err(error) => error.problems().iter().chain(error.warnings()).cloned().collect(),
    };
    let finding = |problem: &Problem| {
        let case = problem.case_id.as_ref().map(|id| format!("case `{id}`: ")).unwrap_or_default();
        Finding {
            code: Code::InvalidCase,
            file: problem.file.clone(),
            pointer: problem.pointer.clone(),
            position: problem.position,
            excerpt: None,
            message: format!("{case}{}", problem.message),
            expected: "a case that can be run and judged".to_owned(),
            remedy: problem.remedy.clone(),
        }
    };
    Ok(Report { findings: problems.iter().map(finding).collect(), files: 1, ..Report::default() })
}

/// Returns true for a file format that only cases use, and for a JSON list of cases, at the top level or under `cases`.
fn looks_like_cases(path: &Utf8Path) -> bool {
    if !path.is_file() {
        return false;
    }
    // No document of a run has one of these formats.
    if matches!(path.extension(), Some("yaml" | "yml" | "jsonl" | "ndjson")) {
        return true;
    }
    let document: Value = read_file::read(path, read_file::MAX_DOCUMENT_BYTES)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let first = document.get("cases").unwrap_or(&document).get(0).unwrap_or(&Value::Null);
    document.get("schema_version").is_none()
        && (first.get("id").is_some() || first.get("case_id").is_some())
        && (first.get("input").is_some() || first.get("turns").is_some())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::Write;
    use std::rc::Rc;

    use clap::{Args as _, Parser};
    use counterproof_store::write::{self, Durability};

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// A writer whose content can be read back.
    #[derive(Clone, Default)]
    struct Captured(Rc<RefCell<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Runs the command in a folder with a valid `good.json` and a truncated `bad.json`. Returns the exit code and the output.
    fn run_validate(names: &[&str], more: &[&str]) -> (Exit, String) {
        let directory = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(directory.path()).unwrap();
        write::create_folder(&folder.join("empty")).unwrap();
        let put =
            |name: &str, text: &str| write::write(&folder.join(name), text.as_bytes(), Durability::Cached).unwrap();
        put("good.json", "{\"schema_version\": \"failure-meta.v1\"}");
        put("bad.json", "{\"schema_version\":");
        put("cases.json", "[{\"case_id\": \"a\", \"input\": {\"user\": \"x\"}}]");
        put("cases.yaml", "- id: a");
        put("wrong.toml", "[run]\ntimeout = \"soon\"\n");
        let paths = names.iter().map(|name| folder.join(name).to_string());
        let line = std::iter::once("validate".to_owned()).chain(paths).chain(more.iter().map(|&word| word.to_owned()));
        let check = crate::commands::check::Args::augment_args(clap::Command::new("check"));
        let captured = Captured::default();
        let mut streams = Streams {
            out: Box::new(captured.clone()),
            err: Box::new(captured.clone()),
            copies: WorkingCopies::default(),
        };
        let exit =
            run(&Line::parse_from(line).args, &check, &mut streams).unwrap_or_else(|error| error.report(&mut streams));
        let output = String::from_utf8(captured.0.take()).unwrap();
        (exit, output.replace(folder.as_str(), "DIR"))
    }

    #[test]
    fn a_valid_document_gets_one_line() {
        assert_eq!(run_validate(&["good.json"], &[]), (Exit::Done, "1 file is valid\n".to_owned()));
    }

    #[test]
    fn findings_exit_with_1_and_name_the_path() {
        let (exit, output) = run_validate(&["good.json", "bad.json"], &["--format", "github"]);
        assert_eq!(exit, Exit::Findings);
        assert!(output.starts_with("::error file=DIR/bad.json,line=1,col=18,title=json-syntax::"), "{output}");
        assert!(output.ends_with("\n1 finding in 1 of 2 files\n"), "{output}");
    }

    #[test]
    fn a_missing_path_is_an_io_error() {
        let (exit, output) = run_validate(&["none"], &[]);
        assert_eq!(exit, Exit::Io);
        assert!(output.starts_with("error: failed to read `DIR/none`\n"), "{output}");
    }

    #[test]
    fn a_missing_path_does_not_hide_findings_of_other_paths() {
        let (exit, output) = run_validate(&["none", "bad.json"], &["--format", "github"]);
        assert_eq!(exit, Exit::Io);
        assert!(
            output.contains("::error file=DIR/bad.json") && output.contains("failed to read `DIR/none`"),
            "{output}"
        );
        let (exit, output) = run_validate(&["none", "good.json"], &["--format", "json"]);
        assert!(exit == Exit::Io && output.starts_with("{\n  \"schema_version\": \"validation.v1\""), "{output}");
    }

    #[test]
    fn a_cases_file_is_validated() {
        assert_eq!(run_validate(&["cases.json"], &[]), (Exit::Done, "1 file is valid\n".to_owned()));
        let (exit, output) = run_validate(&["cases.yaml"], &["--format", "github"]);
        assert_eq!(exit, Exit::Findings);
        assert!(output.contains("::error file=DIR/cases.yaml,line=1,col="), "{output}");
        assert!(output.contains("title=invalid-case::case `a`: "), "{output}");
    }

    #[test]
    fn a_configuration_is_validated() {
        let (exit, output) = run_validate(&["wrong.toml"], &["--format", "github"]);
        assert_eq!(exit, Exit::Findings);
        let expected = "::error file=DIR/wrong.toml,line=2,col=11,title=invalid-configuration::`run.timeout`: expected a number \
                        with a unit, such as 15s or 500ms; ";
        assert!(output.starts_with(expected), "{output}");
    }

    #[test]
    fn a_folder_without_documents_is_an_error() {
        let (exit, output) = run_validate(&["empty"], &["--format", "json"]);
        assert_eq!(exit, Exit::Usage);
        assert!(output.contains("nothing to validate in `DIR/empty`"), "{output}");
    }
}
