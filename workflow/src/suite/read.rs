//! Reads test results from the output of a command, line by line.

use super::report::TestReport;

/// Reads the lines of a test command. Memory is bounded, however long the output is.
#[derive(Debug, Default)]
pub struct Reader {
    report: TestReport,
}

impl Reader {
    /// Takes one line of either stream, in the order in which they were read.
    pub fn line(&mut self, line: &[u8]) {
        let _ = (line, &self.report);
    }

    pub fn finish(self, exit_code: Option<i32>, timed_out: bool) -> TestReport {
        TestReport { exit_code, timed_out, ..self.report }
    }
}

/// Reads the whole output of a command that ended.
pub fn read(exit_code: Option<i32>, stdout: &str, stderr: &str) -> TestReport {
    let mut reader = Reader::default();
    for line in stdout.lines().chain(stderr.lines()) {
        reader.line(line.as_bytes());
    }
    reader.finish(exit_code, false)
}
