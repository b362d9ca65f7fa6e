//! The graph for Graphviz.
//!
//! A label is a quoted string in which `\` and `"` are escaped, and in which Graphviz reads entities such as `&lt;`.

use std::fmt::Write as _;

use counterproof_artifact::one_line;

use super::Graph;
use crate::lifecycle::State;

/// Longest summary in a label, in characters.
const MAX_SUMMARY: usize = 60;

impl Graph {
    pub fn to_dot(&self) -> String {
        let mut dot = String::from(
            "digraph contracts {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n",
        );
        for node in self.nodes() {
            let summary = if node.summary == node.id.as_str() {
                String::new()
            } else {
                escape(&one_line(&node.summary, MAX_SUMMARY)) + "\\n"
            };
            let (edge, fill) = colours(node.state);
            let width = if node.is_selected { ", penwidth=3" } else { "" };
            let _ = writeln!(
                dot,
                "  \"{id}\" [label=\"{id}\\n{summary}{} {}\", class=\"{}\", color=\"{edge}\", fillcolor=\"{fill}\"{width}];",
                node.state.sign(),
                node.state.words(),
                node.state,
                id = escape(node.id.as_str()),
            );
        }
        for edge in self.edges() {
            let id = |index: usize| escape(self.nodes()[index].id.as_str());
            let _ = writeln!(dot, "  \"{}\" -> \"{}\";", id(edge.dependency), id(edge.dependent));
        }
        dot + "}\n"
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}

/// Returns the colours of the outline and of the area of a state, as the light style of the pages has them.
pub(super) const fn colours(state: State) -> (&'static str, &'static str) {
    match state {
        State::Pending | State::Ready | State::Cancelled => ("#5a6068", "#f4f5f6"),
        State::Claimed | State::Executing | State::Verifying => ("#6a3d9e", "#f3ecfb"),
        State::Completed => ("#17663a", "#e5f3e8"),
        State::Failed => ("#b3261e", "#fbe9e7"),
        State::RollingBack | State::RolledBack => ("#855600", "#fbf3dc"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::graph::dependency_graph::tests::{acyclic, graph_of};

    #[test]
    fn each_contract_and_each_dependency_is_one_statement() {
        let graph = graph_of(&[vec![], vec![0]], "Refund \"twice\" & \\N").unwrap();
        insta::assert_snapshot!(graph.to_dot(), @r##"
digraph contracts {
  rankdir=LR;
  node [shape=box, style="rounded,filled", fontname="Helvetica"];
  "shop/c000" [label="shop/c000\nRefund \"twice\" &amp; \\N\n○ pending", class="pending", color="#5a6068", fillcolor="#f4f5f6"];
  "shop/c001" [label="shop/c001\nRefund \"twice\" &amp; \\N\n◔ ready", class="ready", color="#5a6068", fillcolor="#f4f5f6"];
  "shop/c000" -> "shop/c001";
}
    "##);
    }

    /// Splits a line into the texts between quotes, decoded, and the rest. `None` if a quote is open at its end.
    fn strings(line: &str) -> Option<(String, Vec<String>)> {
        let (mut rest, mut strings, mut open) = (String::new(), Vec::new(), None::<String>);
        let mut characters = line.chars();
        while let Some(c) = characters.next() {
            match (&mut open, c) {
                (None, '"') => open = Some(String::new()),
                (None, c) => rest.push(c),
                (Some(_), '"') => strings.extend(open.take()),
                (Some(text), '\\') => match characters.next()? {
                    'n' => text.push('\n'),
                    c @ ('"' | '\\') => text.push(c),
                    _ => return None,
                },
                (Some(text), c) => text.push(c),
            }
        }
        open.is_none().then_some((rest, strings))
    }

    proptest! {
        #[test]
        fn no_summary_leaves_its_label(dependencies in acyclic(), summary in "(?s)[\\\\\"&;\\[\\]{}\n<> a-z\u{0}-\u{20}]{1,30}|.{1,40}") {
            let graph = graph_of(&dependencies, &summary).unwrap();
            let dot = graph.to_dot();
            let lines: Vec<&str> = dot.lines().collect();
            prop_assert_eq!(lines.len(), 4 + graph.nodes().len() + graph.edges().len());
            for (line, node) in lines[3..].iter().zip(graph.nodes()) {
                let (rest, strings) = strings(line).expect(line);
                prop_assert_eq!(rest, "   [label=, class=, color=, fillcolor=];");
                prop_assert_eq!(&strings[0], node.id.as_str());
                prop_assert!(!strings[1].replace("&amp;", "").contains('&'));
                let shown = counterproof_artifact::one_line(&summary, super::MAX_SUMMARY);
                prop_assert!(strings[1].replace("&amp;", "&").contains(&shown));
            }
            for line in &lines[3 + graph.nodes().len()..lines.len() - 1] {
                prop_assert_eq!(strings(line).expect(line).0, "   -> ;");
            }
        }
    }
}
