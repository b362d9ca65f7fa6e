//! Draws a dependency graph: layers from left to right with few crossings, as boxes and curves with whole coordinates.
//!
//! The method is by Sugiyama: a dependency over several layers gets a waypoint in each layer between, the order in each layer
//! follows the average place of the neighbours, and the heights follow their average height. The same graph gives the same
//! places.

use std::fmt::Write as _;

use counterproof_contracts::graph::{Edge, Graph};

use super::control_room_page::StateView;

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

#[derive(Debug)]
pub(super) struct BoxView {
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
    // Limited before the layout, because a few dependencies over many layers have thousands of waypoints.
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
                    // Straight through the layer, so that the curve does not cross a box.
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

const SWEEPS: usize = 12;

/// A place in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// A contract, by its index.
    Node(usize),
    /// A waypoint of a dependency, by the index of the dependency.
    Waypoint(usize),
}

/// A slot with the middle of its height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Placed {
    pub(super) slot: Slot,
    pub(super) middle: f64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Heights {
    pub(super) node: f64,
    pub(super) waypoint: f64,
    pub(super) gap: f64,
}

#[derive(Debug)]
pub(super) struct Layout {
    /// The slots of each layer, from top to bottom.
    pub(super) layers: Vec<Vec<Placed>>,
    /// For each dependency, its places in the order of its layers: layer and index in the layer.
    pub(super) routes: Vec<Vec<(usize, usize)>>,
}

/// The number of slots of a layout, without making it.
pub(super) fn slot_count(graph: &Graph) -> usize {
    let nodes = graph.nodes();
    let waypoints = |edge: &Edge| nodes[edge.dependent].depth - nodes[edge.dependency].depth - 1;
    nodes.len() + graph.edges().iter().map(waypoints).sum::<usize>()
}

/// Two neighbouring slots of a route: in one layer and in the next one.
type Segment = (usize, usize);

/// The slots of the layers, and the segments between each layer and the next one.
#[derive(Debug, Clone)]
struct Layered {
    slots: Vec<Vec<Slot>>,
    segments: Vec<Vec<Segment>>,
}

impl Layout {
    pub(super) fn new(graph: &Graph, heights: &Heights) -> Self {
        let mut layered = Layered::new(graph);
        layered.reduce_crossings();
        let middles = layered.middles(heights);
        let mut routes = vec![Vec::new(); graph.edges().len()];
        let mut places = vec![(0, 0); graph.nodes().len()];
        for (layer, slots) in layered.slots.iter().enumerate() {
            for (place, slot) in slots.iter().enumerate() {
                match *slot {
                    Slot::Node(node) => places[node] = (layer, place),
                    Slot::Waypoint(edge) => routes[edge].push((layer, place)),
                }
            }
        }
        for (route, edge) in routes.iter_mut().zip(graph.edges()) {
            route.insert(0, places[edge.dependency]);
            route.push(places[edge.dependent]);
        }
        let layers = layered.slots.into_iter().zip(middles).map(|(slots, middles)| {
            slots.into_iter().zip(middles).map(|(slot, middle)| Placed { slot, middle }).collect()
        });
        Self { layers: layers.collect(), routes }
    }
}

impl Layered {
    fn new(graph: &Graph) -> Self {
        let nodes = graph.nodes();
        // Nodes are sorted by depth.
        let count = nodes.last().map_or(0, |node| node.depth + 1);
        let mut slots: Vec<Vec<Slot>> = vec![Vec::new(); count];
        let mut places = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            places.push(slots[node.depth].len());
            slots[node.depth].push(Slot::Node(index));
        }
        let mut segments: Vec<Vec<Segment>> = vec![Vec::new(); count.saturating_sub(1)];
        for (index, edge) in graph.edges().iter().enumerate() {
            let mut before = places[edge.dependency];
            for layer in nodes[edge.dependency].depth + 1..nodes[edge.dependent].depth {
                segments[layer - 1].push((before, slots[layer].len()));
                before = slots[layer].len();
                slots[layer].push(Slot::Waypoint(index));
            }
            segments[nodes[edge.dependent].depth - 1].push((before, places[edge.dependent]));
        }
        Self { slots, segments }
    }

    /// Orders each layer by the average place of its neighbours in the layer before or after it, and keeps the best order.
    fn reduce_crossings(&mut self) {
        let mut best = self.clone();
        let mut fewest = self.crossings();
        for sweep in 0..SWEEPS {
            if fewest == 0 {
                break;
            }
            for step in 1..self.slots.len() {
                let layer = if sweep % 2 == 0 { step } else { self.slots.len() - 1 - step };
                let places = |count: usize| (0..count).map(|place| place as f64).collect::<Vec<_>>();
                let neighbour = if sweep % 2 == 0 { layer - 1 } else { layer + 1 };
                let wanted = self.averages(layer, neighbour, &places(self.slots[neighbour].len()));
                let mut order: Vec<usize> = (0..self.slots[layer].len()).collect();
                // A stable sort, so that equal averages give the same drawing each time.
                order.sort_by(|&a, &b| {
                    // A slot without neighbours stays where it is.
                    let key = |place: usize| wanted[place].unwrap_or(place as f64);
                    key(a).total_cmp(&key(b))
                });
                self.reorder(layer, &order);
            }
            // A sweep can also add crossings.
            let crossings = self.crossings();
            if crossings < fewest {
                fewest = crossings;
                best = self.clone();
            }
        }
        *self = best;
    }

    /// Returns, for each slot of a layer, the average of the values of its neighbours in an adjacent layer.
    fn averages(&self, layer: usize, neighbour: usize, values: &[f64]) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0_usize); self.slots[layer].len()];
        for &(left, right) in &self.segments[layer.min(neighbour)] {
            let (own, other) = if neighbour < layer { (right, left) } else { (left, right) };
            sums[own].0 += values[other];
            sums[own].1 += 1;
        }
        sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / count as f64)).collect()
    }

    /// Puts the slots of a layer in another order, given as the old places.
    fn reorder(&mut self, layer: usize, order: &[usize]) {
        let mut places = vec![0; order.len()];
        for (place, &old) in order.iter().enumerate() {
            places[old] = place;
        }
        self.slots[layer] = order.iter().map(|&old| self.slots[layer][old]).collect();
        // Segments refer to places, which change on both sides of the layer.
        if let Some(before) = layer.checked_sub(1) {
            for segment in &mut self.segments[before] {
                segment.1 = places[segment.1];
            }
        }
        if let Some(after) = self.segments.get_mut(layer) {
            for segment in after {
                segment.0 = places[segment.0];
            }
        }
    }

    fn crossings(&self) -> usize {
        self.segments.iter().map(|segments| crossings(segments)).sum()
    }

    /// Returns the middle of each slot. The uppermost slot touches 0.
    fn middles(&self, heights: &Heights) -> Vec<Vec<f64>> {
        let height = |slot: &Slot| match slot {
            Slot::Node(_) => heights.node,
            Slot::Waypoint(_) => heights.waypoint,
        };
        // The distance of the middle of each slot from that of the first one, if they are as close as possible.
        let offsets: Vec<Vec<f64>> = self
            .slots
            .iter()
            .map(|slots| {
                let mut end = -slots.first().map_or(0.0, height) / 2.0;
                let mut place = |slot: &Slot| {
                    let middle = end + height(slot) / 2.0;
                    end += height(slot) + heights.gap;
                    middle
                };
                slots.iter().map(&mut place).collect()
            })
            .collect();
        let mut middles = offsets.clone();
        for sweep in 0..SWEEPS {
            for step in 1..self.slots.len() {
                let layer = if sweep % 2 == 0 { step } else { self.slots.len() - 1 - step };
                let neighbour = if sweep % 2 == 0 { layer - 1 } else { layer + 1 };
                let averages = self.averages(layer, neighbour, &middles[neighbour]);
                let wanted: Vec<f64> =
                    averages.iter().zip(&middles[layer]).map(|(average, now)| average.unwrap_or(*now)).collect();
                middles[layer] = closest(&wanted, &offsets[layer]);
            }
        }
        let tops = self
            .slots
            .iter()
            .zip(&middles)
            .filter_map(|(slots, middles)| Some(middles.first()? - height(slots.first()?) / 2.0));
        let top = tops.min_by(f64::total_cmp).unwrap_or(0.0);
        middles.iter_mut().flatten().for_each(|middle| *middle -= top);
        middles
    }
}

/// Returns the number of pairs of segments that cross.
fn crossings(segments: &[Segment]) -> usize {
    let mut sorted = segments.to_vec();
    sorted.sort_unstable();
    // Two segments cross if their ends are in the other order than their starts.
    let mut ends: Vec<usize> = Vec::with_capacity(sorted.len());
    let mut crossings = 0;
    for (_, end) in sorted {
        let place = ends.partition_point(|&other| other <= end);
        crossings += ends.len() - place;
        ends.insert(place, end);
    }
    crossings
}

/// Returns the values with the least sum of squared distances from those wanted, of which each is at least as far from the one
/// before as the offsets are. This is an isotonic regression, by pooling of adjacent violators.
fn closest(wanted: &[f64], offsets: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(wanted.len());
    for (wanted, offset) in wanted.iter().zip(offsets) {
        let mut pool = (wanted - offset, 1);
        while let Some(&(mean, count)) = pools.last()
            && mean > pool.0
        {
            pools.pop();
            let both = count + pool.1;
            pool = ((mean * count as f64 + pool.0 * pool.1 as f64) / both as f64, both);
        }
        pools.push(pool);
    }
    let means = pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count));
    means.zip(offsets).map(|(mean, offset)| mean + offset).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::contracts::test_graphs::{acyclic, graph_of};

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

    const HEIGHTS: Heights = Heights { node: 40.0, waypoint: 4.0, gap: 16.0 };

    #[test]
    fn the_order_of_a_layer_avoids_crossings() {
        // Two pairs whose ids are in the opposite order.
        let graph = graph_of(&[vec![], vec![], vec![1], vec![0]], "x").unwrap();
        assert_eq!(Layered::new(&graph).crossings(), 1);
        let mut layered = Layered::new(&graph);
        layered.reduce_crossings();
        assert_eq!(layered.crossings(), 0);
    }

    #[test]
    fn a_chain_is_a_straight_line() {
        let graph = graph_of(&[vec![], vec![0], vec![1], vec![]], "x").unwrap();
        let layout = Layout::new(&graph, &HEIGHTS);
        let middles: Vec<f64> = layout.routes[0]
            .iter()
            .chain(&layout.routes[1])
            .map(|&(layer, place)| layout.layers[layer][place].middle)
            .collect();
        assert!(middles.iter().all(|middle| (middle - middles[0]).abs() < 0.5), "{middles:?}");
    }

    #[test]
    fn values_that_are_too_close_move_apart_by_the_least_sum() {
        assert_eq!(closest(&[5.0, 5.0, 100.0], &[0.0, 10.0, 20.0]), [0.0, 10.0, 100.0]);
    }

    proptest! {
        #[test]
        fn no_two_slots_touch_and_each_route_visits_each_layer_once(dependencies in acyclic()) {
            let graph = graph_of(&dependencies, "x").unwrap();
            let layout = Layout::new(&graph, &HEIGHTS);
            prop_assert_eq!(layout.layers.iter().map(Vec::len).sum::<usize>(), slot_count(&graph));
            let height = |slot| if matches!(slot, Slot::Node(_)) { HEIGHTS.node } else { HEIGHTS.waypoint };
            for layer in &layout.layers {
                prop_assert!(layer[0].middle >= height(layer[0].slot) / 2.0 - 0.01);
                for pair in layer.windows(2) {
                    let room = pair[1].middle - pair[0].middle - f64::midpoint(height(pair[0].slot), height(pair[1].slot));
                    prop_assert!(room >= HEIGHTS.gap - 0.01, "{room}");
                }
            }
            for (route, edge) in layout.routes.iter().zip(graph.edges()) {
                let first = graph.nodes()[edge.dependency].depth;
                let layers: Vec<usize> = route.iter().map(|(layer, _)| *layer).collect();
                prop_assert_eq!(&layers, &(first..=graph.nodes()[edge.dependent].depth).collect::<Vec<_>>());
            }
        }

        #[test]
        fn the_fast_count_of_crossings_is_the_number_of_crossing_pairs(segments in proptest::collection::vec((0_usize..6, 0_usize..6), 0..20)) {
            let pairs = segments.iter().flat_map(|a| segments.iter().map(move |b| (a, b)));
            let slow = pairs.filter(|(a, b)| a.0 < b.0 && a.1 > b.1).count();
            prop_assert_eq!(crossings(&segments), slow);
        }
    }
}
