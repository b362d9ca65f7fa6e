//! The tree of a transcript: which lines are the session, which are forks of it, and which belong to subagents.
//!
//! All steps take linear time and do not recurse: the lines are those of other programs.

use std::collections::{HashMap, HashSet, VecDeque};

use jiff::Timestamp;

/// A line as far as the tree is concerned.
#[derive(Debug, Clone)]
pub(super) struct TreeLine {
    /// The index of the line that it continues.
    pub(super) parent: Option<usize>,
    pub(super) time: Timestamp,
    /// The subagent, for a line of one. `Some(None)` if it has no name.
    pub(super) agent: Option<Option<String>>,
    /// The number of the model call that the line is a part of.
    pub(super) call: Option<usize>,
    /// True for an answer of the model and a prompt of the user: the newest of them is where the session ends.
    pub(super) is_turn: bool,
}

/// Lines that follow one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lane {
    /// The first line.
    pub(super) head: usize,
    /// The line after which a fork begins.
    pub(super) fork_point: Option<usize>,
    pub(super) is_agent: bool,
}

/// Assigns each line to a lane: the index of the lane by line, and the lanes. The lane of a fork is after that of its parent.
///
/// A branch is a fork only if it has model calls of its own. The results of parallel tool calls, hooks and progress are also
/// branches.
pub(super) fn lanes(lines: &[TreeLine]) -> (Vec<usize>, Vec<Lane>) {
    let parents = without_cycles(lines);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); lines.len()];
    let mut roots = Vec::new();
    for (line, parent) in parents.iter().enumerate() {
        match parent {
            Some(parent) => children[*parent].push(line),
            None => roots.push(line),
        }
    }
    let facts = branch_facts(lines, &children, &roots);
    let mut lane_of = vec![usize::MAX; lines.len()];
    let mut lanes: Vec<Lane> = Vec::new();
    let mut agents: HashMap<&str, usize> = HashMap::new();
    let mut waiting = VecDeque::new();
    for root in roots {
        match &lines[root].agent {
            None => waiting.push_back((root, None)),
            Some(name) => {
                let known = name.as_deref().and_then(|name| agents.get(name).copied());
                let lane = known.unwrap_or_else(|| {
                    lanes.push(Lane { head: root, fork_point: None, is_agent: true });
                    lanes.len() - 1
                });
                name.as_deref().map(|name| agents.insert(name, lane));
                assign(root, lane, &children, &mut lane_of);
            }
        }
    }
    while let Some((head, fork_point)) = waiting.pop_front() {
        let lane = lanes.len();
        lanes.push(Lane { head, fork_point, is_agent: false });
        let mut chain = Vec::new();
        let mut calls = HashSet::new();
        let mut next = Some(head);
        while let Some(line) = next {
            lane_of[line] = lane;
            calls.extend(lines[line].call);
            chain.push(line);
            next = facts[line].newest_child;
        }
        for line in chain {
            for branch in children[line].iter().copied().filter(|it| facts[line].newest_child != Some(*it)) {
                match facts[branch].calls {
                    Calls::None => assign(branch, lane, &children, &mut lane_of),
                    Calls::One(call) if calls.contains(&call) => assign(branch, lane, &children, &mut lane_of),
                    _ => waiting.push_back((branch, Some(line))),
                }
            }
        }
    }
    (lane_of, lanes)
}

/// Assigns a line and all lines below it.
fn assign(line: usize, lane: usize, children: &[Vec<usize>], lane_of: &mut [usize]) {
    let mut stack = vec![line];
    while let Some(line) = stack.pop() {
        lane_of[line] = lane;
        stack.extend(&children[line]);
    }
}

/// What is known about a line and all lines below it.
#[derive(Debug, Clone, Copy)]
struct Branch {
    newest: (Timestamp, usize),
    newest_child: Option<usize>,
    calls: Calls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calls {
    None,
    One(usize),
    Several,
}

impl Calls {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Calls::None, it) | (it, Calls::None) => it,
            (one, other) if one == other => one,
            _ => Calls::Several,
        }
    }
}

fn branch_facts(lines: &[TreeLine], children: &[Vec<usize>], roots: &[usize]) -> Vec<Branch> {
    let mut order = roots.to_vec();
    let mut at = 0;
    while at < order.len() {
        order.extend(&children[order[at]]);
        at += 1;
    }
    let mut facts: Vec<Branch> = lines
        .iter()
        .enumerate()
        .map(|(index, line)| Branch {
            newest: (if line.is_turn { line.time } else { Timestamp::MIN }, index),
            newest_child: None,
            calls: line.call.map_or(Calls::None, Calls::One),
        })
        .collect();
    // Children before their parents.
    for line in order.into_iter().rev() {
        let mut branch = facts[line];
        let newest = children[line].iter().copied().max_by_key(|child| facts[*child].newest);
        branch.newest_child = newest;
        for child in &children[line] {
            branch.newest = branch.newest.max(facts[*child].newest);
            branch.calls = branch.calls.join(facts[*child].calls);
        }
        facts[line] = branch;
    }
    facts
}

/// The mark of a line that no walk has reached.
const UNSEEN: usize = usize::MAX;

/// The parents without those that would close a cycle, and those between a subagent and the main agent.
fn without_cycles(lines: &[TreeLine]) -> Vec<Option<usize>> {
    let is_same = |line: usize, parent: usize| lines[line].agent.is_some() == lines[parent].agent.is_some();
    let mut parents: Vec<Option<usize>> = lines
        .iter()
        .enumerate()
        .map(|(line, it)| it.parent.filter(|parent| *parent < lines.len() && is_same(line, *parent)))
        .collect();
    // The walk in which a line was reached first.
    let mut walks = vec![UNSEEN; lines.len()];
    for start in 0..lines.len() {
        let mut line = start;
        while walks[line] == UNSEEN {
            walks[line] = start;
            match parents[line] {
                Some(parent) if walks[parent] == start => parents[line] = None,
                Some(parent) => line = parent,
                None => {}
            }
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(parent: Option<usize>, second: i64, call: Option<usize>) -> TreeLine {
        let time = Timestamp::from_second(second).unwrap();
        TreeLine { parent, time, agent: None, call, is_turn: call.is_some() }
    }

    #[test]
    fn the_newest_answer_ends_the_session_and_other_answers_are_forks() {
        // 0 ─ 1 ─ 2 (older answer)
        //       └ 3 (newer answer) ─ 4 (late result) and 1 ─ 5 (result of a parallel call)
        let lines = [
            line(None, 0, None),
            line(Some(0), 1, Some(0)),
            line(Some(1), 2, Some(1)),
            line(Some(1), 3, Some(2)),
            line(Some(3), 9, None),
            line(Some(1), 9, None),
        ];
        let (lane_of, lanes) = lanes(&lines);
        assert_eq!(lane_of, [0, 0, 1, 0, 0, 0]);
        assert_eq!(lanes[1], Lane { head: 2, fork_point: Some(1), is_agent: false });
    }

    #[test]
    fn blocks_of_one_message_on_several_branches_are_not_forks() {
        let lines = [line(None, 0, Some(0)), line(Some(0), 1, Some(0)), line(Some(0), 2, Some(1))];
        assert_eq!(lanes(&lines).0, [0, 0, 0]);
    }

    proptest! {
        #[test]
        fn every_line_has_a_lane_and_forks_follow_their_parents(
            links in prop::collection::vec((prop::option::of(0_usize..60), 0_i64..9, prop::option::of(0_usize..9), any::<bool>()), 0..60),
        ) {
            let lines: Vec<TreeLine> = links
                .into_iter()
                .map(|(parent, second, call, is_agent)| TreeLine {
                    agent: is_agent.then(|| call.map(|call| call.to_string())),
                    ..line(parent, second, call)
                })
                .collect();
            let (lane_of, lanes) = lanes(&lines);
            for (line, lane) in lane_of.iter().enumerate() {
                prop_assert!(*lane < lanes.len());
                prop_assert_eq!(lanes[*lane].is_agent, lines[line].agent.is_some());
            }
            for (index, lane) in lanes.iter().enumerate() {
                prop_assert_eq!(lane_of[lane.head], index);
                if let Some(point) = lane.fork_point {
                    prop_assert!(lane_of[point] < index);
                }
            }
        }

        #[test]
        fn long_chains_and_cycles_take_no_stack(length in 50_000_usize..60_000, is_cycle in any::<bool>()) {
            let first = is_cycle.then_some(length - 1);
            let lines: Vec<_> = (0..length).map(|at| line(at.checked_sub(1).or(first), 0, Some(at))).collect();
            let (lane_of, lanes) = lanes(&lines);
            prop_assert_eq!(lanes.len(), 1);
            prop_assert!(lane_of.iter().all(|lane| *lane == 0));
        }
    }
}
