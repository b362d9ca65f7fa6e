//! The paths that a contract declares to change.

use crate::contract::Contract;
use crate::resources::ResourceRequest;

/// Returns the artifacts of a contract, and the files and folders that its file locks cover: each pattern up to its first name with
/// a special character. `.` is the whole working directory.
pub fn declared_paths(contract: &Contract, resources: &[ResourceRequest]) -> Vec<String> {
    let locked = resources.iter().flat_map(ResourceRequest::locked_paths);
    contract.artifacts().iter().cloned().chain(locked).collect()
}
