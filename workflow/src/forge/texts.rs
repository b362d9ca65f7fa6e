//! The texts of commits and pull requests. Text of the model cannot mention people or link issues in them.

/// What the texts are made of.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChangeTexts<'a> {
    /// The id of the target test, as it was given.
    pub test: Option<&'a str>,
    /// The URL of the CI log that named the test.
    pub ci_log: Option<&'a str>,
    /// The specification of the feature.
    pub specification: Option<&'a str>,
    /// The model's last text: what was wrong and how it was fixed.
    pub explanation: &'a str,
    pub files: &'a [String],
    /// One line each, such as `suite: 12 tests, no new failures`.
    pub results: &'a [String],
    pub flaky: &'a [String],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// At most 72 columns.
    pub subject: String,
    /// The whole message of the commit; begins with the subject.
    pub message: String,
    pub title: String,
    /// Markdown.
    pub body: String,
}

impl ChangeTexts<'_> {
    pub fn texts(&self) -> Texts {
        Texts { subject: String::new(), message: String::new(), title: String::new(), body: String::new() }
    }
}
