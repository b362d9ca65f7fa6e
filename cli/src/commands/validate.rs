//! `counterproof validate`: paths in, findings out.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::Exit;
use counterproof_validation::{Report, validate_path};
use serde_json::Value;

use crate::command_error::CommandError;
use crate::findings::{self, Format};
use crate::streams::Streams;

/// Hold files against the contract: single documents, run folders, or whole trees.
///
/// Each document is held against its schema and against the rules that a schema cannot say: ids and file names agree,
/// links stay in their folder and lead to the file that was recorded, evidence resolves, the run's numbers add up. All
/// findings are listed, not only the first.
///
/// A folder is a run folder if it holds a run.json. In any other folder, the documents and run folders below it are
/// validated; JSON files that are none of ours are skipped and counted.
///
/// Exit code 0: everything is valid. 1: there are findings. 3: a path is not there or cannot be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, run folders, or folders that hold some
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<Utf8PathBuf>,

    /// How findings are told
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Runs the command.
pub(crate) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let (mut report, mut errors) = (Report::default(), Vec::new());
    for path in &args.paths {
        match look_at(path) {
            Ok(found) => report.merge(found),
            Err(error) => errors.push(error),
        }
    }
    // What was found below the other paths is told first. A machine gets its document in any case, a person no praise of
    // nothing.
    if errors.is_empty() || report.files > 0 || args.format != Format::Human {
        streams.print(&findings::render(&report, args.format))?;
    }
    let codes = errors.iter().map(|error| error.report(streams));
    if let Some(worst) = codes.max_by_key(|exit| exit.code()) {
        return Ok(worst);
    }
    Ok(if report.findings.is_empty() { Exit::Done } else { Exit::Findings })
}

/// Validates one path, unless there is nothing in it to validate.
fn look_at(path: &Utf8Path) -> Result<Report, CommandError> {
    if looks_like_cases(path) {
        return Err(CommandError::usage(format!("`{path}` looks like a cases file, which is no document of a run"))
            .hint(format_args!("`counterproof run --dry-run --side new --cases {path}` checks those")));
    }
    let found = validate_path(path).map_err(|error| CommandError::io(error).hint("check the path"))?;
    if found.files == 0 {
        // A check that looks at nothing must not look like one that passed.
        return Err(CommandError::usage(format!("nothing to validate below `{path}`"))
            .hint("name a document, a run folder, or a folder that holds some"));
    }
    Ok(found)
}

/// True for a file in a format that only cases have, and for a list of what is asked, alone or in an object.
fn looks_like_cases(path: &Utf8Path) -> bool {
    if !path.is_file() {
        return false;
    }
    if matches!(path.extension(), Some("yaml" | "yml" | "jsonl" | "ndjson")) {
        return true;
    }
    let document: Value = fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let first = document.get("cases").unwrap_or(&document).get(0).unwrap_or(&Value::Null);
    document.get("schema_version").is_none()
        && (first.get("id").is_some() || first.get("case_id").is_some())
        && first.get("input").is_some()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::Write;
    use std::rc::Rc;

    use clap::Parser;
    use counterproof_store::write::{self, Durability};

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// Standard output, kept.
    #[derive(Clone, Default)]
    struct Kept(Rc<RefCell<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Runs the command in a folder with a valid `good.json` and a torn `bad.json`; gives the exit code and what was printed.
    fn validate(names: &[&str], more: &[&str]) -> (Exit, String) {
        let directory = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(directory.path()).unwrap();
        write::create_folder(&folder.join("empty")).unwrap();
        let put =
            |name: &str, text: &str| write::write(&folder.join(name), text.as_bytes(), Durability::Cached).unwrap();
        put("good.json", "{\"schema_version\": \"failure-meta.v1\"}");
        put("bad.json", "{\"schema_version\":");
        put("cases.json", "[{\"case_id\": \"a\", \"input\": {\"user\": \"x\"}}]");
        put("cases.yaml", "- id: a");
        let paths = names.iter().map(|name| folder.join(name).to_string());
        let line = std::iter::once("validate".to_owned()).chain(paths).chain(more.iter().map(|&word| word.to_owned()));
        let kept = Kept::default();
        let mut streams = Streams { out: Box::new(kept.clone()), err: Box::new(kept.clone()) };
        let exit = run(&Line::parse_from(line).args, &mut streams).unwrap_or_else(|error| error.report(&mut streams));
        let printed = String::from_utf8(kept.0.take()).unwrap();
        (exit, printed.replace(folder.as_str(), "DIR"))
    }

    #[test]
    fn a_valid_document_is_praised_in_one_line() {
        assert_eq!(validate(&["good.json"], &[]), (Exit::Done, "1 file is valid\n".to_owned()));
    }

    #[test]
    fn findings_have_an_exit_code_of_their_own_and_name_each_path() {
        let (exit, printed) = validate(&["good.json", "bad.json"], &["--format", "github"]);
        assert_eq!(exit, Exit::Findings);
        assert!(printed.starts_with("::error file=DIR/bad.json,line=1,col=18,title=json-syntax::"), "{printed}");
        assert!(printed.ends_with("\n1 finding in 1 of 2 files\n"), "{printed}");
    }

    #[test]
    fn what_is_not_there_is_an_error_of_input() {
        let (exit, printed) = validate(&["none"], &[]);
        assert_eq!(exit, Exit::Io);
        assert!(printed.starts_with("error: failed to read `DIR/none`\n"), "{printed}");
    }

    #[test]
    fn a_path_that_is_not_there_hides_nothing_of_the_others() {
        let (exit, printed) = validate(&["none", "bad.json"], &["--format", "github"]);
        assert_eq!(exit, Exit::Io);
        assert!(
            printed.contains("::error file=DIR/bad.json") && printed.contains("failed to read `DIR/none`"),
            "{printed}"
        );
        let (exit, printed) = validate(&["none", "good.json"], &["--format", "json"]);
        assert!(exit == Exit::Io && printed.starts_with("{\n  \"schema_version\": \"validation.v1\""), "{printed}");
    }

    #[test]
    fn a_cases_file_is_told_from_a_document() {
        for name in ["cases.json", "cases.yaml"] {
            let (exit, printed) = validate(&[name], &[]);
            assert_eq!(exit, Exit::Usage);
            let expected = format!(
                "error: `DIR/{name}` looks like a cases file, which is no document of a run\n  \
                hint: `counterproof run --dry-run --side new --cases DIR/{name}` checks those\n"
            );
            assert_eq!(printed, expected);
        }
    }

    #[test]
    fn a_check_of_nothing_does_not_pass() {
        let (exit, printed) = validate(&["empty"], &["--format", "json"]);
        assert_eq!(exit, Exit::Usage);
        assert!(printed.contains("nothing to validate below `DIR/empty`"), "{printed}");
    }
}
