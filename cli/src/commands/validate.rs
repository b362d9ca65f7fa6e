//! `counterproof validate`: paths in, findings out.

use camino::Utf8PathBuf;
use counterproof_artifact::Exit;
use counterproof_artifact::check::{self, Report};

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
pub(super) struct Args {
    /// Files, run folders, or folders that hold some
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<Utf8PathBuf>,

    /// How findings are told
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Runs the command.
pub(super) fn run(args: &Args, streams: &mut Streams) -> Result<Exit, CommandError> {
    let mut report = Report::default();
    for path in &args.paths {
        let found = check::path(path).map_err(|error| CommandError::io(error).hint("check the path"))?;
        if found.files == 0 {
            // A check that looks at nothing must not look like one that passed.
            return Err(CommandError::usage(format!("nothing to validate below `{path}`"))
                .hint("name a document, a run folder, or a folder that holds some"));
        }
        report.merge(found);
    }
    streams.print(&findings::render(&report, args.format))?;
    Ok(if report.findings.is_empty() { Exit::Done } else { Exit::Findings })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::Write;
    use std::rc::Rc;

    use camino::Utf8Path;
    use clap::Parser;
    use counterproof_artifact::write::{self, Durability};

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
    fn a_check_of_nothing_does_not_pass() {
        let (exit, printed) = validate(&["empty"], &["--format", "json"]);
        assert_eq!(exit, Exit::Usage);
        assert!(printed.contains("nothing to validate below `DIR/empty`"), "{printed}");
    }
}
