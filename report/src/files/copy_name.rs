//! Names of copied run files. No browser executes a file with such a name.

use counterproof_artifact::{Href, Sha256Digest};

/// Extensions that a browser displays or saves, and never executes, when a user opens the file from disk.
///
/// A file with any other extension is copied as `.txt`, because a browser may guess that an unknown type is HTML.
const HARMLESS_EXTENSIONS: [&str; 9] = ["json", "txt", "bin", "csv", "png", "jpg", "jpeg", "gif", "webp"];

/// The folder for files that a browser could execute under their own name.
const AS_TEXT_FOLDER: &str = "as-text/";

/// Longer names are replaced by their digest: some systems limit a name to 255 bytes and a path to little more.
const LONGEST_NAME: usize = 180;

/// Returns the path of the copy of a linked file within the folder of its run. No two links share a copy.
pub(crate) fn copy_name(href: &Href) -> String {
    let href = href.as_str();
    if href.len() > LONGEST_NAME {
        return format!("{AS_TEXT_FOLDER}{}.txt", Sha256Digest::from_bytes(href.as_bytes()));
    }
    if is_harmless(href) && !href.starts_with(AS_TEXT_FOLDER) {
        return href.to_owned();
    }
    // A separate folder, so that the copy cannot collide with a file that has this name already.
    format!("{AS_TEXT_FOLDER}{href}.txt")
}

fn is_harmless(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| HARMLESS_EXTENSIONS.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(href: &str) -> String {
        copy_name(&href.parse().unwrap())
    }

    #[test]
    fn names_that_a_browser_could_execute_get_a_harmless_extension() {
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
    fn a_name_that_is_too_long_for_some_systems_becomes_its_digest() {
        let long = format!("assets/{}.html", "é".repeat(100));
        let name = copied(&long);
        assert!(name.len() < 100 && is_harmless(&name), "{name}");
    }
}
