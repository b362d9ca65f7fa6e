//! What the files of the report are called, and how a page links to them.

use std::collections::{HashMap, HashSet};

use counterproof_artifact::{CaseId, Href, Sha256Digest};

/// Extensions that a browser shows or saves, and never runs, when somebody opens the file from disk.
///
/// A file of any other name is copied as text: what a browser does not know by its name, it may guess to be HTML.
const HARMLESS_EXTENSIONS: [&str; 9] = ["json", "txt", "bin", "csv", "png", "jpg", "jpeg", "gif", "webp"];

/// Where files go that a browser could run.
const AS_TEXT_FOLDER: &str = "as-text/";

/// Longer names are replaced by their digest: some systems end a name at 255 bytes, and a path at not much more.
const LONGEST_NAME: usize = 180;

/// The pages of the cases, in case order. A page is called after its case, with a suffix where a file system that ignores
/// letter case would take two ids for one.
#[derive(Debug)]
pub(super) struct Pages {
    ids: Vec<CaseId>,
    renamed: HashMap<CaseId, String>,
}

impl Pages {
    /// The pages of these cases.
    pub(super) fn of(ids: Vec<CaseId>) -> Self {
        let mut taken: HashSet<String> = ids.iter().map(CaseId::collision_key).collect();
        let mut seen = HashSet::new();
        let mut renamed = HashMap::new();
        for id in ids.iter().filter(|id| !seen.insert(id.collision_key())) {
            let mut stems = (2..).map(|count: usize| format!("{id}~{count}"));
            if let Some(stem) = stems.find(|stem| taken.insert(stem.to_ascii_lowercase())) {
                renamed.insert(id.clone(), stem);
            }
        }
        Self { ids, renamed }
    }

    /// The name of a case's page, without an extension.
    pub(super) fn stem<'a>(&'a self, id: &'a CaseId) -> &'a str {
        self.renamed.get(id).map_or(id.as_str(), String::as_str)
    }

    /// How many cases there are.
    pub(super) const fn count(&self) -> usize {
        self.ids.len()
    }

    /// The case at a place in the order.
    pub(super) fn at(&self, index: usize) -> Option<&CaseId> {
        self.ids.get(index)
    }
}

/// Where the copy of a linked file goes within its side's folder; no two links share a copy.
pub(super) fn copy_name(href: &Href) -> String {
    let href = href.as_str();
    if href.len() > LONGEST_NAME {
        return format!("{AS_TEXT_FOLDER}{}.txt", Sha256Digest::of(href.as_bytes()));
    }
    if is_harmless(href) && !href.starts_with(AS_TEXT_FOLDER) {
        return href.to_owned();
    }
    // In a folder of its own, so that it cannot take the place of a file that has this very name.
    format!("{AS_TEXT_FOLDER}{href}.txt")
}

fn is_harmless(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| HARMLESS_EXTENSIONS.contains(&extension))
}

/// A path as it stands in a link: every byte but letters, digits, `-._~` and the slashes percent-encoded (RFC 3986).
pub fn encode_path(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                encoded.push('%');
                encoded.push(char::from(DIGITS[usize::from(byte >> 4)]));
                encoded.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(href: &str) -> String {
        copy_name(&href.parse().unwrap())
    }

    #[test]
    fn names_that_a_browser_could_run_get_a_harmless_extension() {
        for (href, expected) in [
            ("assets/a.json", "assets/a.json"),
            ("assets/a.html", "as-text/assets/a.html.txt"),
            ("assets/a.html.txt", "assets/a.html.txt"),
            ("as-text/assets/a.html.txt", "as-text/as-text/assets/a.html.txt.txt"),
            ("assets/a.SVG", "as-text/assets/a.SVG.txt"),
            ("assets/a", "as-text/assets/a.txt"),
            ("assets.html/a.json", "assets.html/a.json"),
        ] {
            assert_eq!(copied(href), expected);
        }
    }

    #[test]
    fn a_name_too_long_for_some_system_becomes_its_digest() {
        let long = format!("assets/{}.html", "é".repeat(100));
        let name = copied(&long);
        assert!(name.len() < 100 && is_harmless(&name), "{name}");
    }

    #[test]
    fn ids_that_differ_only_in_letter_case_get_pages_of_their_own() {
        let ids: Vec<CaseId> = ["a", "A", "b", "A~2"].map(|id| id.parse().unwrap()).to_vec();
        let pages = Pages::of(ids.clone());
        assert_eq!(ids.iter().map(|id| pages.stem(id)).collect::<Vec<_>>(), ["a", "A~3", "b", "A~2"]);
    }

    #[test]
    fn links_are_percent_encoded() {
        assert_eq!(encode_path("cases/t[a,1]~@=+é #?%.html"), "cases/t%5Ba%2C1%5D~%40%3D%2B%C3%A9%20%23%3F%25.html");
    }
}
