//! Whether any rule of a policy can apply to the calls of one server in one run.

use super::names::NameMatch;
use super::policy::Policy;
use super::rule::RuleKind;
use super::selectors::UnmetSelector;
use crate::identity::RunIdentity;

/// Why no rule of a policy can apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NeverApplies {
    /// The policy is for other runs.
    #[error("selector {0}")]
    Selector(UnmetSelector),
    /// The rules are for other servers.
    #[error("its rules have patterns for the names of other servers in `server_name`")]
    ServerName,
}

impl Policy {
    /// Returns why no rule can apply to the calls of a server. A policy whose rules only add tags, or that has none, guards nothing
    /// on purpose.
    pub fn never_applies(&self, run: &RunIdentity, server_name: &str) -> Option<NeverApplies> {
        let mut rules = self.rules.iter().filter(|rule| rule.is_enabled && rule.kind() != RuleKind::Tag).peekable();
        rules.peek()?;
        if let Some(unmet) = self.selectors.unmet(run) {
            return Some(NeverApplies::Selector(unmet));
        }
        let matched = self.server_names.matches(server_name);
        let is_other = |patterns| matched.of(patterns) == NameMatch::No;
        rules.all(|rule| is_other(rule.conditions.server_name.as_ref())).then_some(NeverApplies::ServerName)
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    #[test]
    fn a_policy_for_other_runs_or_servers_never_applies() {
        let lookup = |name: &str| (name == "SUB_CLIENT").then(|| "custom".to_owned());
        let (run, _) = RunIdentity::from_environment(lookup);
        for (policy, expected) in [
            ("rules: []", None),
            ("selectors: {client: [claude]}\nrules: []", None),
            ("rules: [{rule_id: a, kind: deny}]", None),
            (
                "selectors: {client: [claude, codex]}\nrules: [{rule_id: a, kind: deny}]",
                Some("selector `client` needs `claude` or `codex`, and the run has `custom`"),
            ),
            (
                "selectors: {workload: {labels: {team: pay}}}\nrules: [{rule_id: a, kind: deny}]",
                Some("selector `workload.labels.team` needs `pay`, and the run has none"),
            ),
            (
                "rules: [{rule_id: a, kind: deny, match: {server_name: {glob: [git*]}}}, {rule_id: t, kind: tag, effect: {tag: {add_risk_class: [x]}}}]",
                Some("its rules have patterns for the names of other servers in `server_name`"),
            ),
            ("rules: [{rule_id: a, kind: deny, match: {server_name: {glob: [git*, files]}}}]", None),
            (
                "rules: [{rule_id: a, kind: deny, match: {server_name: {glob: [git]}}}, {rule_id: b, kind: deny, enabled: false}]",
                Some("its rules have patterns for the names of other servers in `server_name`"),
            ),
        ] {
            let text = format!("policy_id: p\nversion: '1'\nmode: guardrails\n{policy}");
            let loaded = Policy::parse(Utf8Path::new("p.yaml"), text.as_bytes()).unwrap();
            let reason = loaded.never_applies(&run, "files").map(|reason| reason.to_string());
            assert_eq!(reason.as_deref(), expected, "{policy}");
        }
    }
}
