//! The file of each CI system that `init` writes. docs/ci.md describes them, and tests run their shell steps.

/// A CI system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum CiKind {
    /// GitHub Actions
    Github,
    /// GitLab CI
    Gitlab,
    /// Jenkins
    Jenkins,
    /// Azure Pipelines
    Azure,
    /// Bitbucket Pipelines
    Bitbucket,
    /// Buildkite
    Buildkite,
    /// CircleCI
    Circleci,
    /// No file for a CI system
    #[default]
    None,
}

/// Returns the path and the text of the file of a CI system.
pub(crate) const fn ci_file(kind: CiKind) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        CiKind::Github => (".github/workflows/counterproof.yml", include_str!("ci/github.yml")),
        CiKind::Gitlab => (".gitlab-ci.yml", include_str!("ci/gitlab.yml")),
        CiKind::Jenkins => ("Jenkinsfile", include_str!("ci/Jenkinsfile")),
        CiKind::Azure => ("azure-pipelines.yml", include_str!("ci/azure.yml")),
        CiKind::Bitbucket => ("bitbucket-pipelines.yml", include_str!("ci/bitbucket.yml")),
        CiKind::Buildkite => (".buildkite/pipeline.yml", include_str!("ci/buildkite.yml")),
        CiKind::Circleci => (".circleci/config.yml", include_str!("ci/circleci.yml")),
        CiKind::None => return None,
    })
}
