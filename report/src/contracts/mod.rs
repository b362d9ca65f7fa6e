//! The pages of contracts: the control room, and the dependency graph with its drawing.

mod control_room_page;
mod graph_drawing;
mod graph_page;
#[cfg(test)]
mod test_graphs;

pub use control_room_page::{RoomLinks, write_control_room};
pub use graph_page::{GraphPageError, write_graph};
