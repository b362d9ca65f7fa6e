//! Copies of a report in one file each. An archive has the whole folder. A page has the index and the pages of the worst cases, each
//! reached by its address without a script: they are taken as they were written, and only their ids and links are rewritten.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use counterproof_store::read_file;
use counterproof_store::write::{AtomicFile, Durability};
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::folder::ReportError;
use crate::site::encode_path;

/// Which copies are written next to the folder of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copies {
    /// `OUT.html`: the index and the worst cases.
    pub html: bool,
    /// `OUT.zip`: the whole folder.
    pub zip: bool,
}

/// The maximum number of pages of cases, and of bytes of all pages as they were written. Prefixes of ids make them a fifth longer at
/// most, so that the file has at most 20 MB.
pub(crate) const MOST_PAGES: usize = 200;
pub(crate) const MOST_BYTES: usize = 16_000_000;

/// What shows one page at a time: that of the address, or else the first.
const ONE_PAGE: &str = "
.page { display: none; }
.page.first, .page:target, .page:has(:target) { display: block; }
body:has(.page:not(.first):target) .page.first, body:has(.page:not(.first) :target) .page.first { display: none; }
.page .chips, .page #find { display: none; }
@media print { .page { display: block !important; } }
";

/// A file under construction.
#[derive(Debug)]
pub(crate) struct SingleFile {
    title: String,
    style: String,
    body: String,
    /// The prefix of the ids of each page, by its path in links.
    prefixes: HashMap<String, String>,
}

impl SingleFile {
    /// Starts a file with the paths of the pages that it will hold: first the index. Links to other files are dropped.
    pub(crate) fn new(style: &str, paths: impl IntoIterator<Item = String>) -> Self {
        let prefixes = paths.into_iter().enumerate().map(|(index, path)| (encode_path(&path), format!("p{index}")));
        let style = format!("{style}{ONE_PAGE}");
        Self { title: String::new(), style, body: String::new(), prefixes: prefixes.collect() }
    }

    /// Adds a page.
    pub(crate) fn add(&mut self, path: &str, html: &str) {
        let Some(prefix) = self.prefixes.get(&encode_path(path)) else { return };
        let is_first = self.body.is_empty();
        if is_first {
            between(html, "<title>", "</title>").unwrap_or_default().clone_into(&mut self.title);
        }
        let content = between(html, "<body>", "</body>").unwrap_or_default();
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let rewritten = self.rewrite(content, prefix, folder);
        let class = if is_first { "page first" } else { "page" };
        let _ = write!(self.body, "<div class=\"{class}\" id=\"{prefix}\">\n{rewritten}</div>\n");
    }

    /// Returns the whole file.
    pub(crate) fn finish(self) -> String {
        let hash = STANDARD.encode(Sha256::digest(self.style.as_bytes()));
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta \
             name=\"referrer\" content=\"no-referrer\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
            self.title, self.style, self.body
        )
    }

    /// Rewrites the tags of a page: its ids get the prefix of the page, and links lead to pages of this file. Texts have no angle
    /// brackets, because every page escapes them.
    fn rewrite(&self, html: &str, prefix: &str, folder: &str) -> String {
        let mut written = String::with_capacity(html.len() + html.len() / 8);
        let mut rest = html;
        while let Some(start) = rest.find('<') {
            written.push_str(&rest[..start]);
            let end = rest[start..].find('>').map_or(rest.len(), |end| start + end + 1);
            self.tag(&rest[start..end], prefix, folder, &mut written);
            rest = &rest[end..];
        }
        written.push_str(rest);
        written
    }

    fn tag(&self, tag: &str, prefix: &str, folder: &str, written: &mut String) {
        let mut rest = tag;
        // Attributes are written with double quotes, which are escaped within values.
        while let Some((before, after)) = rest.split_once("=\"") {
            let Some((value, behind)) = after.split_once('"') else { break };
            let (head, name) = before.rsplit_once(' ').unwrap_or(("", before));
            match name {
                "href" => {
                    if let Some(link) = self.link(value, prefix, folder) {
                        let _ = write!(written, "{head} href=\"{link}\"");
                    } else {
                        written.push_str(head);
                    }
                }
                "id" | "for" | "aria-labelledby" | "form" => {
                    let _ = write!(written, "{before}=\"{prefix}-{value}\"");
                }
                "data-find" | "data-shards" => written.push_str(head),
                _ => {
                    let _ = write!(written, "{before}=\"{value}\"");
                }
            }
            rest = behind;
        }
        written.push_str(rest);
    }

    /// The link to the same target within this file; `None` for a file that only the folder has.
    fn link(&self, href: &str, prefix: &str, folder: &str) -> Option<String> {
        if let Some(id) = href.strip_prefix('#') {
            return Some(format!("#{prefix}-{id}"));
        }
        let (path, id) = href.split_once('#').unwrap_or((href, ""));
        let target = match path.strip_prefix("../") {
            Some(path) => path.to_owned(),
            None if folder.is_empty() => path.to_owned(),
            None => format!("{folder}/{path}"),
        };
        let page = self.prefixes.get(&target)?;
        Some(if id.is_empty() { format!("#{page}") } else { format!("#{page}-{id}") })
    }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.rsplit_once(end).map(|(inner, _)| inner)
}

/// Writes the files of a report into an archive. They are below one folder with the name of the report.
pub(crate) fn write_archive(report: &Utf8Path, archive: &Utf8Path) -> Result<(), ReportError> {
    let failed = |source: io::Error| ReportError::Folder { path: archive.to_owned(), source };
    let name = report.canonicalize_utf8().map_err(failed)?.file_name().unwrap_or("report").to_owned();
    let mut writer = ZipWriter::new_stream(AtomicFile::create(archive)?);
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for path in files(report).map_err(failed)? {
        let within = path.strip_prefix(report).unwrap_or(&path);
        writer.start_file(format!("{name}/{within}"), options).map_err(|error| failed(error.into()))?;
        let (mut content, _) = read_file::open(&path).map_err(failed)?;
        io::copy(&mut content, &mut writer).map_err(failed)?;
    }
    let file = writer.finish().map_err(|error| failed(error.into()))?.into_inner();
    Ok(file.commit(Durability::Synced)?)
}

/// The files below a folder, sorted. Links are not followed.
fn files(folder: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for entry in folder.read_dir_utf8()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files.extend(self::files(entry.path())?);
        } else if kind.is_file() && !entry.file_name().starts_with('.') {
            files.push(entry.path().to_owned());
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_within_the_file_and_ids_are_apart() {
        let mut file = SingleFile::new("", ["index.html".to_owned(), "cases/a b.html".to_owned()]);
        let index = "<title>T</title><body><a class=\"case\" href=\"cases/a%20b.html#x\">a</a> \
                     <a href=\"summary.md\">m</a> <h1 id=\"x\">1 &#60; 2</h1></body>";
        let case = "<body><a href=\"../index.html\">up</a><p id=\"x\"><a href=\"#x\">here</a></p></body>";
        file.add("index.html", index);
        file.add("cases/a b.html", case);
        let whole = file.finish();
        for expected in [
            "<title>T</title>",
            "<a class=\"case\" href=\"#p1-x\">a</a> <a>m</a> <h1 id=\"p0-x\">1 &#60; 2</h1>",
            "<div class=\"page\" id=\"p1\">\n<a href=\"#p0\">up</a><p id=\"p1-x\"><a href=\"#p1-x\">here</a></p></div>",
        ] {
            assert!(whole.contains(expected), "{expected}: {whole}");
        }
        assert!(!whole.contains("unsafe-inline") && !whole.contains("<script"));
    }
}
