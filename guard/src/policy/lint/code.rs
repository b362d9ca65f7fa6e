//! The list of warnings: each with a stable code, its meaning and its remedy. A test compares `docs/policy.md` with it.

macro_rules! codes {
    ($($variant:ident $code:literal $meaning:literal $remedy:literal)*) => {
        /// The warnings, by their stable codes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LintCode {
            $(#[doc = $meaning] $variant,)*
        }

        impl LintCode {
            /// All warnings.
            pub const ALL: &[LintCode] = &[$(LintCode::$variant,)*];

            /// The stable kebab-case code.
            pub const fn as_str(self) -> &'static str {
                match self { $(LintCode::$variant => $code,)* }
            }

            /// What the warning means.
            pub const fn meaning(self) -> &'static str {
                match self { $(LintCode::$variant => $meaning,)* }
            }

            /// What to do.
            pub const fn remedy(self) -> &'static str {
                match self { $(LintCode::$variant => $remedy,)* }
            }
        }
    };
}

codes! {
    ShadowedRule "shadowed-rule"
        "The rule never decides, because an earlier rule decides about all of its calls."
        "move the rule up, or remove it"
    AllowsEverything "allows-everything"
        "A rule without conditions allows every call, so that no later deny or budget rule decides."
        "move the rule to the end, or add a `match`"
    UnknownRiskClass "unknown-risk-class"
        "No tag rule above the rule adds the risk class, so that the rule never matches."
        "add a tag rule above, or correct the risk class"
    UnanchoredRegex "unanchored-regex"
        "A regular expression with a branch that is not anchored by `^` and `$` matches parts of names."
        "write the expression as `^(?:…)$`"
    UnguardedArgument "unguarded-argument"
        "An expression in CEL reads an argument that a call may not have, so that the rule is undecided for such calls."
        "test that the call has the argument, such as with `has(…) && …`"
    NeverAllows "never-allows"
        "One call costs more than the limit, so that the rule refuses every call."
        "raise the limit, or lower the cost"
    UnusedField "unused-field"
        "The action of the rule does not use the field."
        "remove the field, or change the action"
    VersionsDiffer "versions-differ"
        "The fields `version` and `policy_version` differ, and only `policy_version` is used."
        "remove one of the two"
    OnlyObserves "only-observes"
        "The mode `observe` enforces no rule."
        "set the mode to `guardrails` or `control` when the observed decisions are right"
    NoRules "no-rules"
        "The policy has no rule that is enabled, so that it allows every call."
        "add rules, or use the mode `observe`"
}
