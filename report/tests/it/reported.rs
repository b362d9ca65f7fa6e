//! Reports of the small pairs of runs of the kit.

use camino::{Utf8Path, Utf8PathBuf};
use counterproof_artifact::evaluation::Evaluation;
use counterproof_report::{ReportError, ReportWriter};

use crate::kit::Pair;

/// A pair of runs whose report can be written.
pub(crate) trait Reported {
    /// Compares the two runs and writes the report into `out`.
    fn report_into(&self, out: &Utf8Path) -> Result<Evaluation, ReportError>;

    /// Compares the two runs and returns the folder of the report.
    fn report(&self) -> Utf8PathBuf;
}

impl Reported for Pair {
    fn report_into(&self, out: &Utf8Path) -> Result<Evaluation, ReportError> {
        let request = self.request();
        let report = ReportWriter::create(out, &request)?;
        let evaluation = counterproof_evaluator::compare(&request, |case| report.write_case(case)).unwrap();
        assert_eq!(report.finish(&evaluation)?, out.join("index.html"));
        Ok(evaluation)
    }

    fn report(&self) -> Utf8PathBuf {
        let out = self.path().join("report");
        self.report_into(&out).unwrap();
        out
    }
}
