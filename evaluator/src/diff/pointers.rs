//! Pointers into the artifacts of both sides.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::SidePointer;

use super::align::Row;
use super::output;

pub(crate) fn at(side: Side, pointer: String) -> SidePointer {
    SidePointer { side, pointer }
}

/// The places that a row of two aligned lists names, below the list's pointer.
pub(crate) fn row_pointers(list: &str, row: Row) -> Vec<SidePointer> {
    match row {
        Row::Both { baseline, new } => {
            vec![at(Side::Baseline, format!("{list}/{baseline}")), at(Side::New, format!("{list}/{new}"))]
        }
        Row::Removed(index) => vec![at(Side::Baseline, format!("{list}/{index}"))],
        Row::Added(index) => vec![at(Side::New, format!("{list}/{index}"))],
    }
}

/// The final outputs of both sides.
pub(crate) fn output_pointers() -> Vec<SidePointer> {
    Side::BOTH.map(|side| at(side, output::POINTER.to_owned())).to_vec()
}
