//! The graph for Mermaid.
//!
//! Mermaid looks for comments, directives and styles in the whole text, before it reads strings. So a summary contains letters,
//! digits and a few harmless characters, and everything else as an entity of Mermaid, such as `#34;`.

use std::fmt::Write as _;

use counterproof_artifact::one_line;

use super::Graph;
use super::dot::colours;
use crate::lifecycle::State;

/// Longest summary in a label, in characters.
const MAX_SUMMARY: usize = 60;

impl Graph {
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        for (index, node) in self.nodes().iter().enumerate() {
            let (state, sign, words) = (node.state, node.state.sign(), node.state.words());
            let summary = if node.summary == node.id.as_str() {
                String::new()
            } else {
                escape(&one_line(&node.summary, MAX_SUMMARY)) + "<br/>"
            };
            // An id consists of harmless characters.
            let _ = writeln!(text, "  n{index}[\"{}<br/>{summary}{sign} {words}\"]:::{state}", node.id);
        }
        for edge in self.edges() {
            let _ = writeln!(text, "  n{} --> n{}", edge.dependency, edge.dependent);
        }
        for state in State::ALL.into_iter().filter(|state| self.nodes().iter().any(|node| node.state == *state)) {
            let (edge, fill) = colours(state);
            // Without a semicolon: Mermaid would take the colours for entities.
            let _ = writeln!(text, "  classDef {state} fill:{fill},stroke:{edge},color:#1b1d20");
        }
        text
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() || matches!(c, ' ' | ',' | '/') {
            escaped.push(c);
        } else {
            let _ = write!(escaped, "#{};", u32::from(c));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::graph::dependency_graph::tests::{acyclic, graph_of};

    #[test]
    fn each_contract_and_each_dependency_is_one_statement() {
        let graph = graph_of(&[vec![], vec![0]], "Refund \"twice\"; %%{init}%% end").unwrap();
        insta::assert_snapshot!(graph.to_mermaid(), @r##"
flowchart LR
  n0["shop/c000<br/>Refund #34;twice#34;#59; #37;#37;#123;init#125;#37;#37; end<br/>○ pending"]:::pending
  n1["shop/c001<br/>Refund #34;twice#34;#59; #37;#37;#123;init#125;#37;#37; end<br/>◔ ready"]:::ready
  n0 --> n1
  classDef pending fill:#f4f5f6,stroke:#5a6068,color:#1b1d20
  classDef ready fill:#f4f5f6,stroke:#5a6068,color:#1b1d20
    "##);
    }

    /// Replaces the entities of a label by their characters. `None` for a `#` that starts no entity.
    fn decoded(label: &str) -> Option<String> {
        let mut parts = label.split('#');
        let mut text = parts.next()?.to_owned();
        for part in parts {
            let (number, rest) = part.split_once(';')?;
            text.push(char::from_u32(number.parse().ok()?)?);
            text.push_str(rest);
        }
        Some(text)
    }

    proptest! {
        #[test]
        fn no_summary_leaves_its_label(dependencies in acyclic(), summary in "(?s)[\\\\\"#;:%`\\[\\]{}\n<>& a-z\u{0}-\u{20}]{1,30}|.{1,40}") {
            let graph = graph_of(&dependencies, &summary).unwrap();
            let mermaid = graph.to_mermaid();
            let lines: Vec<&str> = mermaid.lines().collect();
            let classes = lines.iter().filter(|line| line.starts_with("  classDef ")).count();
            prop_assert_eq!(lines.len(), 1 + graph.nodes().len() + graph.edges().len() + classes);
            for (index, (line, node)) in lines[1..].iter().zip(graph.nodes()).enumerate() {
                let label = line.strip_prefix(&format!("  n{index}[\"")).unwrap();
                let label = label.strip_suffix(&format!("\"]:::{}", node.state)).unwrap();
                prop_assert!(!label.contains(['"', '%', '`', '{', '}', '\n', ':', '[', ']', '&', '\\']), "{label}");
                let label = label.replace("<br/>", "\n");
                prop_assert!(!label.contains(['<', '>']), "{label}");
                let shown = counterproof_artifact::one_line(&summary, super::MAX_SUMMARY);
                prop_assert!(decoded(&label).unwrap().contains(&shown), "{label}");
            }
            for line in &lines[1 + graph.nodes().len()..lines.len() - classes] {
                prop_assert!(line.starts_with("  n") && line.contains(" --> n"));
            }
        }
    }
}
