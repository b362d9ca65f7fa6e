//! Findings: one place where a document breaks the contract, and the list of them for one file.

use std::ops::Range;

use camino::{Utf8Path, Utf8PathBuf};

use super::Code;
use super::excerpt::Excerpt;
use super::parse::BYTE_ORDER_MARK;
use crate::locate::{self, Position};

/// More findings than this in one file are counted, not listed: a file of a million wrong events has one error, not a million.
pub const MOST_FINDINGS: usize = 1000;

/// One place where a document breaks the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub code: Code,
    /// The file, as the caller named it or as it was found below what the caller named.
    pub file: Utf8PathBuf,
    /// A JSON Pointer into the file; empty for the whole document.
    pub pointer: String,
    /// Line and column, where the file is text.
    pub position: Option<Position>,
    /// The lines around that place, where the file is text.
    pub excerpt: Option<Excerpt>,
    /// What is there.
    pub message: String,
    /// What was expected instead.
    pub expected: String,
    /// What to do about it.
    pub remedy: String,
}

/// The findings of one file.
#[derive(Debug)]
pub(super) struct Findings {
    file: Utf8PathBuf,
    list: Vec<Finding>,
    spans: Vec<Option<Range<usize>>>,
    left_out: usize,
}

impl Findings {
    pub(super) fn of(file: &Utf8Path) -> Self {
        Self { file: file.to_owned(), list: Vec::new(), spans: Vec::new(), left_out: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// True where further findings are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MOST_FINDINGS
    }

    pub(super) fn add(
        &mut self,
        code: Code,
        pointer: impl Into<String>,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.add_with_span(code, pointer, None, message, expected);
    }

    /// Adds a finding at a place that no pointer names, such as a syntax error.
    pub(super) fn add_at(
        &mut self,
        code: Code,
        span: Range<usize>,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.add_with_span(code, "", Some(span), message, expected);
    }

    pub(super) fn add_with_span(
        &mut self,
        code: Code,
        pointer: impl Into<String>,
        span: Option<Range<usize>>,
        message: impl Into<String>,
        expected: impl Into<String>,
    ) {
        if self.is_full() {
            self.left_out += 1;
            return;
        }
        self.list.push(Finding {
            code,
            file: self.file.clone(),
            pointer: pointer.into(),
            position: None,
            excerpt: None,
            message: message.into(),
            expected: expected.into(),
            remedy: code.remedy().to_owned(),
        });
        self.spans.push(span);
    }

    /// Counts findings that were not made, because the list is full.
    pub(super) fn leave_out(&mut self, count: usize) {
        self.left_out += count;
    }

    /// The findings without their places: for documents that are in no file.
    pub(super) fn into_list(mut self) -> Vec<Finding> {
        if self.left_out > 0 {
            let message = format!("{} more findings are not listed", self.left_out);
            let expected = format!("at most {MOST_FINDINGS} findings in a file");
            self.list.push(Finding {
                code: Code::MoreFindings,
                file: self.file,
                pointer: String::new(),
                position: None,
                excerpt: None,
                message,
                expected,
                remedy: Code::MoreFindings.remedy().to_owned(),
            });
        }
        self.list
    }

    /// Looks up the spans that are not known yet. A text that is no JSON has none: its findings came with theirs.
    fn find_spans(&mut self, text: &[u8]) {
        let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let skipped = text.len() - body.len();
        let unknown: Vec<usize> = (0..self.list.len()).filter(|&index| self.spans[index].is_none()).collect();
        let pointers: Vec<&str> = unknown.iter().map(|&index| self.list[index].pointer.as_str()).collect();
        if pointers.is_empty() {
            return;
        }
        let found = std::str::from_utf8(body).map(|body| locate::spans(body, &pointers)).unwrap_or_default();
        for (index, span) in unknown.into_iter().zip(found) {
            self.spans[index] = span.map(|span| span.start + skipped..span.end + skipped);
        }
    }

    /// The findings in the order of the text, with line, column and excerpt. `text` is empty where there is none.
    pub(super) fn into_located(mut self, text: &[u8]) -> Vec<Finding> {
        if self.list.is_empty() || text.is_empty() {
            return self.into_list();
        }
        self.find_spans(text);
        let starts: Vec<usize> = self.spans.iter().map(|span| span.as_ref().map_or(0, |span| span.start)).collect();
        let positions = locate::positions(text, &starts);
        for (finding, ((span, start), position)) in
            self.list.iter_mut().zip(self.spans.iter().zip(&starts).zip(positions))
        {
            finding.position = Some(position);
            let span = span.clone().unwrap_or(*start..*start);
            finding.excerpt = Some(Excerpt::around(text, span, position));
        }
        let list = std::mem::take(&mut self.list);
        let mut rest = self.into_list();
        let mut list: Vec<Finding> = list;
        list.sort_by_key(|finding| (finding.position, finding.code));
        list.append(&mut rest);
        list
    }
}
