//! Pointers into the artifacts of both sides.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::SidePointer;

use super::align::Row;
use super::output;

pub(crate) fn side_pointer(side: Side, pointer: String) -> SidePointer {
    SidePointer { side, pointer }
}

/// Pointers to the elements of a row of two aligned lists, below the list's pointer.
pub fn row_pointers(list: &str, row: Row) -> Vec<SidePointer> {
    match row {
        Row::Both { baseline, new } => {
            vec![
                side_pointer(Side::Baseline, format!("{list}/{baseline}")),
                side_pointer(Side::New, format!("{list}/{new}")),
            ]
        }
        Row::Removed(index) => vec![side_pointer(Side::Baseline, format!("{list}/{index}"))],
        Row::Added(index) => vec![side_pointer(Side::New, format!("{list}/{index}"))],
    }
}

/// Pointers to the final outputs of both sides.
pub fn output_pointers() -> Vec<SidePointer> {
    Side::BOTH.map(|side| side_pointer(side, output::POINTER.to_owned())).to_vec()
}
