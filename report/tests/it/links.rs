//! The links of a report: every one of them must lead to a file of the folder and to an id in it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

/// Every file of a folder, by its path within it.
pub(crate) fn files(folder: &Utf8Path) -> BTreeMap<Utf8PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in next.read_dir_utf8().unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path().to_owned());
            } else {
                let name = entry.path().strip_prefix(folder).unwrap().to_owned();
                found.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// The pages of a report, by their path within it.
pub(crate) fn pages(report: &Utf8Path) -> BTreeMap<Utf8PathBuf, String> {
    let html = files(report).into_iter().filter(|(name, _)| name.extension() == Some("html"));
    html.map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect()
}

/// The tags of a page, without their brackets: neither a text nor a value of an attribute holds one that is not escaped.
pub(crate) fn tags(page: &str) -> impl Iterator<Item = &str> {
    page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap())
}

/// The values of an attribute on a page, with the character references that the pages use undone.
pub(crate) fn attributes(page: &str, name: &str) -> Vec<String> {
    let pattern = format!(" {name}=\"");
    let values = tags(page).flat_map(|tag| tag.split(&pattern).skip(1).map(|rest| rest.split('"').next().unwrap()));
    values.map(|value| value.replace("&#38;", "&").replace("&#39;", "'")).collect()
}

/// Asserts that every link of every page leads somewhere within the folder, and returns how many there are.
pub(crate) fn assert_whole(report: &Utf8Path) -> usize {
    let pages = pages(report);
    let mut count = 0;
    for (name, page) in &pages {
        let ids: Vec<_> = attributes(page, "id");
        let unique: BTreeSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{name}: an id stands there twice: {ids:?}");
        for link in attributes(page, "href").into_iter().chain(attributes(page, "src")) {
            count += 1;
            let (path, fragment) = link.split_once('#').unwrap_or((&link, ""));
            assert!(!path.contains(':') && !path.starts_with('/'), "{name}: {link} leads out");
            let target = if path.is_empty() { name.clone() } else { join(name, &decode(path)) };
            assert!(report.join(&target).is_file(), "{name}: {link} leads to nothing ({target})");
            if !fragment.is_empty() {
                assert!(attributes(&pages[&target], "id").contains(&fragment.to_owned()), "{name}: no id for {link}");
            }
        }
    }
    count
}

/// A link, followed from a page; climbing out of the folder is a failure.
fn join(page: &Utf8Path, link: &str) -> Utf8PathBuf {
    let mut path = page.parent().unwrap().to_owned();
    for segment in link.split('/') {
        match segment {
            ".." => assert!(path.pop(), "{page}: {link} leaves the report"),
            segment => path.push(segment),
        }
    }
    path
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(&after[..2]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap()
}
