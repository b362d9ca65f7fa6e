//! Selectors: the runs that a policy is for.

use std::collections::BTreeMap;
use std::fmt;

use counterproof_ledger::event::Workload;

use crate::identity::RunIdentity;

/// The runs that a policy is for. All lists that are given must contain the value of the run; letter case is ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selectors {
    /// Environments.
    pub env: Option<Vec<String>>,
    pub agent_id: Option<Vec<String>>,
    pub client: Option<Vec<String>>,
    /// Facts about the job.
    pub workload: WorkloadSelectors,
}

/// Facts about the job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadSelectors {
    pub namespace: Option<Vec<String>>,
    pub service_account: Option<Vec<String>>,
    /// Repositories.
    pub repo: Option<Vec<String>>,
    pub branch: Option<Vec<String>>,
    pub labels: BTreeMap<String, LabelSelector>,
}

/// The values that a label may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector(pub Vec<String>);

/// A selector that a run does not meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmetSelector {
    /// Its name, such as `workload.repo`.
    pub name: String,
    /// The values that meet it.
    pub allowed: Vec<String>,
    /// The value of the run.
    pub value: Option<String>,
}

impl fmt::Display for UnmetSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allowed: Vec<String> = self.allowed.iter().map(|value| format!("`{value}`")).collect();
        let value = self.value.as_ref().map_or_else(|| "none".to_owned(), |value| format!("`{value}`"));
        write!(f, "`{}` needs {}, and the run has {value}", self.name, allowed.join(" or "))
    }
}

impl Selectors {
    /// Returns the first selector that the run does not meet.
    pub fn unmet(&self, run: &RunIdentity) -> Option<UnmetSelector> {
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
        let unmet = |name: String, allowed: &[String], value: Option<&str>| {
            let is_unmet = !contains(allowed, value);
            is_unmet.then(|| UnmetSelector { name, allowed: allowed.to_owned(), value: value.map(str::to_owned) })
        };
        let mut lists = lists.into_iter();
        lists.find_map(|(name, list, value)| unmet(name.to_owned(), list.as_ref()?, value)).or_else(|| {
            let label = |name: &str| {
                // Exact names come first, in case two names differ only in letter case.
                let same = |(key, _): &(&String, &String)| lower(key) == lower(name);
                job.labels.get(name).or_else(|| job.labels.iter().find(same).map(|(_, value)| value))
            };
            let mut labels = select.labels.iter();
            labels.find_map(|(name, allowed)| {
                unmet(format!("workload.labels.{name}"), &allowed.0, label(name).map(String::as_str))
            })
        })
    }
}

fn contains(list: &[String], value: Option<&str>) -> bool {
    value.is_some_and(|value| list.iter().any(|item| lower(item) == lower(value)))
}

fn lower(text: &str) -> String {
    text.to_lowercase()
}
