//! The documentation lists what is left out, with the reason.

use counterproof_sessions::import::{Format, left_out};

#[test]
fn the_documentation_lists_what_is_left_out() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/session-import.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (format, heading) in [
        (Format::ClaudeCode, "### Claude Code"),
        (Format::Codex, "### Codex"),
        (Format::Otlp, "### OpenTelemetry"),
        (Format::Openinference, "### OpenInference"),
        (Format::Atif, "### ATIF"),
    ] {
        let section = page.split("\n## Left out").nth(1).and_then(|part| part.split(heading).nth(1)).expect(heading);
        let section = section.split("\n### ").next().unwrap().split("\n## ").next().unwrap();
        let rows: Vec<(&str, &str)> = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "))
            .collect();
        assert_eq!(rows, left_out(format), "{heading}");
    }
}
