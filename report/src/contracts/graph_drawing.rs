//! The shapes of a drawing: boxes and curves with whole coordinates.

use std::fmt::Write as _;

use counterproof_contracts::graph::Graph;

use super::graph_layout::{Heights, Layout, Slot, slot_count};
use super::state_view::StateView;

/// The largest graph that is drawn, in contracts. A larger one is hard to read.
const MAX_NODES: usize = 300;

/// The largest drawing, in slots and dependencies.
const MAX_SHAPES: usize = 3_000;

/// Longest id in a box, in characters.
const MAX_ID: usize = 32;

/// The width of a character of an id, and the least width of the text of a box.
const CHARACTER: usize = 8;
const MIN_TEXT: usize = 112;

/// The height of a box, and the distances of its texts from its edges.
const BOX: i64 = 48;
const PADDING: i64 = 12;
const BASELINES: [i64; 2] = [20, 38];

/// The distance between two layers, and the margin around the drawing.
const BETWEEN: i64 = 64;
const MARGIN: i64 = 4;

/// The greatest width of a drawing that is made smaller to fit the page. A wider one would be too small to read.
const SCALED_UP_TO: i64 = 1360;

#[derive(Debug)]
pub(super) struct Drawing {
    /// Whether it may be made smaller.
    pub(super) is_scaled: bool,
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) boxes: Vec<BoxView>,
    /// The curves of the dependencies, as path data.
    pub(super) curves: Vec<String>,
}

/// A contract in a drawing.
#[derive(Debug)]
pub(super) struct BoxView {
    /// Its index in the graph.
    pub(super) index: usize,
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) text_x: i64,
    pub(super) id_y: i64,
    pub(super) state_y: i64,
    /// The id, without its middle if it is long.
    pub(super) label: String,
    pub(super) state: StateView,
    pub(super) is_selected: bool,
}

/// Draws a graph. `None` if it is too large.
pub(super) fn draw(graph: &Graph) -> Option<Drawing> {
    if graph.nodes().len() > MAX_NODES || slot_count(graph) + graph.edges().len() > MAX_SHAPES {
        return None;
    }
    let heights = Heights { node: BOX as f64, waypoint: 4.0, gap: 16.0 };
    let layout = Layout::new(graph, &heights);
    let columns = columns(graph);
    let mut boxes = Vec::with_capacity(graph.nodes().len());
    let mut bottom = 0;
    for (layer, &(x, width)) in layout.layers.iter().zip(&columns) {
        for placed in layer {
            let Slot::Node(index) = placed.slot else { continue };
            let node = &graph.nodes()[index];
            let y = whole(placed.middle) - BOX / 2 + MARGIN;
            bottom = bottom.max(y + BOX);
            boxes.push(BoxView {
                index,
                x,
                y,
                width,
                height: BOX,
                text_x: x + PADDING,
                id_y: y + BASELINES[0],
                state_y: y + BASELINES[1],
                label: shorten(node.id.as_str()),
                state: node.state.into(),
                is_selected: node.is_selected,
            });
        }
    }
    // The keyboard visits the boxes in the order of the graph.
    boxes.sort_unstable_by_key(|it| it.index);
    let width = columns.last().map_or(0, |(x, width)| x + width) + MARGIN;
    let curves = layout.routes.iter().map(|route| curve(route, &layout, &columns)).collect();
    Some(Drawing { is_scaled: width <= SCALED_UP_TO, width, height: bottom + MARGIN, boxes, curves })
}

/// Returns the left edge and the width of each layer.
fn columns(graph: &Graph) -> Vec<(i64, i64)> {
    let mut x = MARGIN;
    let mut columns = Vec::new();
    for layer in graph.layers() {
        let longest = layer.iter().map(|node| node.id.as_str().len().min(MAX_ID)).max().unwrap_or_default();
        let text = i64::try_from((longest * CHARACTER).max(MIN_TEXT)).unwrap_or(i64::MAX / 2);
        let width = text + 2 * PADDING;
        columns.push((x, width));
        x += width + BETWEEN;
    }
    columns
}

/// Returns a curve from the right edge of a box to the left edge of another one, straight through the layers between.
fn curve(route: &[(usize, usize)], layout: &Layout, columns: &[(i64, i64)]) -> String {
    let mut path = String::new();
    let mut before: Option<(i64, i64)> = None;
    for &(layer, place) in route {
        let (x, width) = columns[layer];
        let y = whole(layout.layers[layer][place].middle) + MARGIN;
        match before {
            None => {
                let _ = write!(path, "M{} {y}", x + width);
            }
            Some((from_x, from_y)) => {
                let middle = i64::midpoint(from_x, x);
                let _ = write!(path, "C{middle} {from_y} {middle} {y} {x} {y}");
                if matches!(layout.layers[layer][place].slot, Slot::Waypoint(_)) {
                    let _ = write!(path, "H{}", x + width);
                }
            }
        }
        before = Some((x + width, y));
    }
    path
}

#[expect(clippy::cast_possible_truncation, reason = "the size of a drawing is limited")]
fn whole(value: f64) -> i64 {
    value.round() as i64
}

/// Removes the middle of a long id. Its start names the project, and its end the contract.
fn shorten(id: &str) -> String {
    if id.len() <= MAX_ID {
        return id.to_owned();
    }
    let start = (MAX_ID - 1) / 2;
    // An id is ASCII.
    format!("{}…{}", &id[..start], &id[id.len() - (MAX_ID - 1 - start)..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contracts::test_graphs::graph_of;

    #[test]
    fn boxes_of_a_layer_are_below_each_other_and_curves_go_to_the_right() {
        let graph = graph_of(&[vec![], vec![0], vec![0, 1]], "x").unwrap();
        let drawing = draw(&graph).unwrap();
        let places: Vec<(i64, i64)> = drawing.boxes.iter().map(|it| (it.x, it.width)).collect();
        assert_eq!(places, [(4, 136), (204, 136), (404, 136)]);
        assert_eq!((drawing.width, drawing.curves.len()), (544, 3));
        assert!(
            drawing.curves.iter().any(|curve| curve.contains('H')),
            "a dependency over two layers: {:?}",
            drawing.curves
        );
    }

    #[test]
    fn a_large_graph_is_not_drawn() {
        assert!(draw(&graph_of(&vec![vec![]; 300], "x").unwrap()).is_some());
        assert!(draw(&graph_of(&vec![vec![]; 301], "x").unwrap()).is_none());
        let dense: Vec<Vec<usize>> = (0..60).map(|index| (0..index).collect()).collect();
        assert!(draw(&graph_of(&dense, "x").unwrap()).is_none(), "a chain of 60 with all dependencies");
    }

    #[test]
    fn a_long_id_keeps_its_start_and_its_end() {
        assert_eq!(shorten("shop/refund/001"), "shop/refund/001");
        let short = shorten("a-very-long-project-name/fix-the-memory-leak/001");
        assert_eq!((short.as_str(), short.chars().count()), ("a-very-long-pro…-memory-leak/001", MAX_ID));
    }
}
