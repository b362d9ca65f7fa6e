//! The library as a program uses it that runs several commands: each with its working directory, its environment and its output.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use counterproof_safe_run::{
    CommandStreams, Ending, Input, Io, Options, OutputHead, Record, Signals, StartError, Stream, SupervisedCommand,
    TakenSignals, record,
};
use tempfile::TempDir;

fn options() -> Options {
    Options { supervisor: Some(PathBuf::from(env!("CARGO_BIN_EXE_safe-run"))), ..Options::default() }
}

fn run(command: &[&str], options: &Options) -> Result<Record, StartError> {
    let (signals, received) = Signals::pipe().unwrap();
    let io = Io { input: Input::Inherited, signals, received };
    let command: Vec<_> = command.iter().map(Into::into).collect();
    record(&command, options, io, &mut |_, _, _| {})
}

fn stdout(record: &Record) -> String {
    String::from_utf8(record.head(Stream::Stdout, 1 << 20).unwrap().bytes).unwrap()
}

#[test]
fn commands_with_different_directories_and_environments_run_at_the_same_time() {
    let folders: Vec<TempDir> = (0..4).map(|_| tempfile::tempdir().unwrap()).collect();
    let before = std::env::current_dir().unwrap();
    // Each command waits for the files of all others, so all of them run at the same time.
    let wait = |folder: &TempDir| format!("until [ -e {:?} ]; do sleep 0.01; done; ", folder.path().join("here"));
    let waits = folders.iter().map(wait).collect::<Vec<_>>().concat();
    let script = format!("echo here > here; {waits} pwd -P; echo \"$CONTRACT ${{HOME-unset}}\"");
    thread::scope(|scope| {
        for (index, folder) in folders.iter().enumerate() {
            let script = &script;
            scope.spawn(move || {
                let options = Options {
                    working_directory: Some(folder.path().to_owned()),
                    environment: [("CONTRACT".into(), Some(format!("c{index}").into())), ("HOME".into(), None)].into(),
                    ..options()
                };
                let record = run(&["sh", "-c", script], &options).unwrap();
                let expected = format!("{}\nc{index} unset\n", fs::canonicalize(folder.path()).unwrap().display());
                assert_eq!((record.ending, stdout(&record)), (Ending::Exited(0), expected));
            });
        }
    });
    assert_eq!(std::env::current_dir().unwrap(), before);
}

#[test]
fn a_relative_program_is_in_the_working_directory_and_a_relative_supervisor_is_not() {
    let here = std::env::current_dir().unwrap();
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    // Deeper than this folder, so that the same relative path leads elsewhere.
    let temporary = tempfile::tempdir().unwrap();
    let folder = here.components().skip(1).fold(temporary.path().to_owned(), |folder, name| folder.join(name));
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink("/bin/echo", folder.join("tool")).unwrap();
    let supervisor = up.join(Path::new(env!("CARGO_BIN_EXE_safe-run")).strip_prefix("/").unwrap());
    let options = Options { working_directory: Some(folder), supervisor: Some(supervisor), ..options() };
    assert_eq!(stdout(&run(&["./tool", "found"], &options).unwrap()), "found\n");
}

#[test]
fn a_working_directory_that_cannot_be_entered_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("file")).unwrap();
    for (name, reason) in [("none", "No such file or directory"), ("file", "Not a directory")] {
        let path = folder.path().join(name);
        let options = Options { working_directory: Some(path.clone()), ..options() };
        let error = run(&["true"], &options).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot run a command in the folder `{}`", path.display()));
        let StartError::WorkingDirectory { source, .. } = error else { panic!("{error:?}") };
        assert!(source.to_string().contains(reason), "{source}");
    }
}

#[test]
fn the_path_of_the_command_environment_finds_the_program() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/echo", folder.path().join("only-here")).unwrap();
    let environment = [("PATH".into(), Some(folder.path().into()))].into();
    let record = run(&["only-here", "found"], &Options { environment, ..options() }).unwrap();
    assert_eq!(stdout(&record), "found\n");
}

#[test]
fn a_grace_and_a_drain_time_beyond_the_clock_have_no_end() {
    let (signals, received) = Signals::pipe().unwrap();
    let options = Options { grace: Duration::MAX, drain: Duration::MAX, ..options() };
    let script = "trap 'echo ended; exit 4' TERM; echo ready; while :; do sleep 0.05; done";
    let command = ["sh", "-c", script].map(Into::into);
    let io = Io { input: Input::Inherited, signals: signals.clone(), received };
    let record = record(&command, &options, io, &mut |_, _, bytes| {
        if bytes == b"ready\n" {
            signals.send(15);
        }
    })
    .unwrap();
    assert_eq!((record.ending, stdout(&record).as_str()), (Ending::Exited(4), "ready\nended\n"));
}

#[test]
fn the_start_of_a_stream_is_returned_up_to_a_limit() {
    let record = run(&["sh", "-c", "printf '12345'; seq 1 200000 >&2"], &options()).unwrap();
    let head = |stream, limit| record.head(stream, limit).unwrap();
    assert_eq!(head(Stream::Stdout, 5), OutputHead { bytes: b"12345".into(), is_cut: false });
    assert_eq!(head(Stream::Stdout, 4), OutputHead { bytes: b"1234".into(), is_cut: true });
    assert_eq!(head(Stream::Stdout, 0), OutputHead { bytes: Vec::new(), is_cut: true });
    let all = (1..=200_000).map(|number| format!("{number}\n")).collect::<Vec<_>>().concat();
    assert_eq!(head(Stream::Stderr, u64::MAX), OutputHead { bytes: all.clone().into(), is_cut: false });
    assert_eq!(head(Stream::Stderr, 1_000_000), OutputHead { bytes: all[..1_000_000].into(), is_cut: true });
}

/// A command with pipes of the caller: its standard input and output.
fn piped(script: &str) -> (SupervisedCommand, std::io::PipeWriter, std::io::PipeReader) {
    let (input, to_command) = std::io::pipe().unwrap();
    let (from_command, output) = std::io::pipe().unwrap();
    let streams = CommandStreams {
        stdin: std::os::fd::AsFd::as_fd(&input),
        stdout: output.into(),
        stderr: fs::File::open("/dev/null").unwrap().into(),
    };
    let command = ["sh".into(), "-c".into(), script.into()];
    let command = SupervisedCommand::start(&command, &options(), streams, &TakenSignals::none()).unwrap();
    (command, to_command, from_command)
}

#[test]
fn a_supervised_command_reads_and_writes_the_pipes_of_the_caller() {
    let (command, mut input, mut output) = piped("cat; exit 7");
    input.write_all(b"through").unwrap();
    drop(input);
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert_eq!((&*text, command.wait(), command.finish()), ("through", Ending::Exited(7), 0));
}

#[test]
fn a_supervised_command_ends_by_a_signal_and_its_processes_are_killed() {
    let (command, input, mut output) = piped("trap 'exit 3' TERM; setsid sh -c 'echo ready; exec sleep 60' & wait");
    let mut ready = [0; 6];
    output.read_exact(&mut ready).unwrap();
    command.signals().send(15);
    assert_eq!(command.wait(), Ending::Exited(3));
    assert_eq!(command.finish(), 1, "the process in another session is killed");
    drop(input);
    // Only the end of all processes closes the pipe.
    assert_eq!(output.read(&mut ready).unwrap(), 0);
}

#[test]
fn a_supervised_command_is_killed_when_it_is_dropped() {
    let (command, _input, mut output) = piped("trap '' TERM INT HUP; setsid sleep 60 & sleep 60");
    drop(command);
    assert_eq!(output.read(&mut [0; 6]).unwrap(), 0);
}

#[test]
fn a_supervised_command_that_does_not_exist_is_an_error_with_its_name() {
    let (input, _writer) = std::io::pipe().unwrap();
    let null = || fs::File::open("/dev/null").unwrap().into();
    let streams = CommandStreams { stdin: std::os::fd::AsFd::as_fd(&input), stdout: null(), stderr: null() };
    let error =
        SupervisedCommand::start(&["no-such-program".into()], &options(), streams, &TakenSignals::none()).unwrap_err();
    assert!(matches!(&error, StartError::Command { program, .. } if program == "no-such-program"), "{error}");
}
