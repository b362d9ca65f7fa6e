//! Finds circular dependencies.

use std::collections::{HashMap, HashSet};

use crate::contract::ContractId;

/// Finds a cycle that can be reached from `start`: its ids in order, with the first one again at the end. `dependencies` returns
/// the direct dependencies of a contract.
pub(crate) fn find_cycle(
    start: &[&ContractId],
    mut dependencies: impl FnMut(&ContractId) -> Vec<ContractId>,
) -> Option<Vec<ContractId>> {
    let mut finished: HashSet<ContractId> = HashSet::new();
    for &root in start {
        // A depth-first walk without recursion, because a chain of dependencies may be long. The path is on the stack.
        let mut stack: Vec<(ContractId, std::vec::IntoIter<ContractId>)> = Vec::new();
        let mut on_path: HashMap<ContractId, usize> = HashMap::new();
        let mut next = Some(root.clone());
        loop {
            if let Some(id) = next.take() {
                if let Some(&from) = on_path.get(&id) {
                    let mut cycle: Vec<ContractId> = stack[from..].iter().map(|(id, _)| id.clone()).collect();
                    cycle.push(id);
                    return Some(cycle);
                }
                if !finished.contains(&id) {
                    on_path.insert(id.clone(), stack.len());
                    let below = dependencies(&id).into_iter();
                    stack.push((id, below));
                }
            }
            let Some((_, below)) = stack.last_mut() else { break };
            next = below.next();
            if next.is_none()
                && let Some((id, _)) = stack.pop()
            {
                on_path.remove(&id);
                finished.insert(id);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(number: usize) -> ContractId {
        format!("c{number}").parse().unwrap()
    }

    fn cycle_in(edges: &[Vec<usize>]) -> Option<Vec<ContractId>> {
        let ids: Vec<ContractId> = (0..edges.len()).map(id).collect();
        find_cycle(&ids.iter().collect::<Vec<_>>(), |of| {
            let index: usize = of.as_str()[1..].parse().unwrap();
            edges[index].iter().map(|&to| id(to)).collect()
        })
    }

    #[test]
    fn the_cycle_is_named_from_its_start_to_its_start() {
        assert_eq!(cycle_in(&[vec![1], vec![2], vec![1]]), Some(vec![id(1), id(2), id(1)]));
        assert_eq!(cycle_in(&[vec![0]]), Some(vec![id(0), id(0)]));
        assert_eq!(cycle_in(&[vec![1, 2], vec![2], vec![]]), None);
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let edges: Vec<Vec<usize>> = (0..50_000).map(|it| if it == 49_999 { vec![] } else { vec![it + 1] }).collect();
        assert_eq!(cycle_in(&edges), None);
    }

    proptest! {
        #[test]
        fn a_cycle_is_found_exactly_if_no_order_exists(
            edges in (1_usize..8).prop_flat_map(|count| proptest::collection::vec(proptest::collection::vec(0..count, 0..3), count))
        ) {
            // Kahn's algorithm: remove contracts without dependencies until none is left.
            let mut left: HashSet<usize> = (0..edges.len()).collect();
            while let Some(free) = left.iter().copied().find(|it| edges[*it].iter().all(|to| !left.contains(to))) {
                left.remove(&free);
            }
            let cycle = cycle_in(&edges);
            prop_assert_eq!(cycle.is_some(), !left.is_empty());
            for pair in cycle.unwrap_or_default().windows(2) {
                let index = |it: &ContractId| it.as_str()[1..].parse::<usize>().unwrap();
                prop_assert!(edges[index(&pair[0])].contains(&index(&pair[1])));
            }
        }
    }
}
