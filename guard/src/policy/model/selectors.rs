//! Selectors: the runs that a policy is for.

use std::collections::BTreeMap;

use counterproof_ledger::event::Workload;

use crate::identity::RunIdentity;

/// The runs that a policy is for. All lists that are given must contain the value of the run; letter case is ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selectors {
    /// Environments.
    pub env: Option<Vec<String>>,
    /// Ids of agents.
    pub agent_id: Option<Vec<String>>,
    /// Kinds of client.
    pub client: Option<Vec<String>>,
    /// Facts about the job.
    pub workload: WorkloadSelectors,
}

/// Facts about the job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadSelectors {
    /// Kubernetes namespaces.
    pub namespace: Option<Vec<String>>,
    /// Kubernetes service accounts.
    pub service_account: Option<Vec<String>>,
    /// Repositories.
    pub repo: Option<Vec<String>>,
    /// Branches.
    pub branch: Option<Vec<String>>,
    /// Labels, by name.
    pub labels: BTreeMap<String, LabelSelector>,
}

/// The values that a label may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector(pub Vec<String>);

impl Selectors {
    /// Returns the first selector that the run does not meet.
    pub fn unmet(&self, run: &RunIdentity) -> Option<String> {
        let none = Workload::default();
        let (job, select) = (run.workload.as_ref().unwrap_or(&none), &self.workload);
        let lists = [
            ("env", &self.env, Some(run.env.name())),
            ("agent_id", &self.agent_id, Some(run.agent_id.as_str())),
            ("client", &self.client, Some(run.client.name())),
            ("workload.namespace", &select.namespace, job.namespace.as_deref()),
            ("workload.service_account", &select.service_account, job.service_account.as_deref()),
            ("workload.repo", &select.repo, job.repo.as_deref()),
            ("workload.branch", &select.branch, job.branch.as_deref()),
        ];
        let unmet =
            lists.into_iter().find(|(_, list, value)| list.as_ref().is_some_and(|list| !contains(list, *value)));
        unmet.map(|(name, ..)| name.to_owned()).or_else(|| {
            let label = |name: &str| {
                // Exact names come first, in case two names differ only in letter case.
                let same = |(key, _): &(&String, &String)| lower(key) == lower(name);
                job.labels.get(name).or_else(|| job.labels.iter().find(same).map(|(_, value)| value))
            };
            let mut labels = select.labels.iter();
            let unmet = labels.find(|(name, allowed)| !contains(&allowed.0, label(name).map(String::as_str)));
            unmet.map(|(name, _)| format!("workload.labels.{name}"))
        })
    }
}

fn contains(list: &[String], value: Option<&str>) -> bool {
    value.is_some_and(|value| list.iter().any(|item| lower(item) == lower(value)))
}

fn lower(text: &str) -> String {
    text.to_lowercase()
}
