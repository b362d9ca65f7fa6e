//! The codes of reasons and findings. SARIF rules, the report and `docs/verdicts.md` use this list; reasons about a contract
//! violation have the codes of `counterproof_validation::Code` instead.

use counterproof_artifact::Side;
use counterproof_artifact::evaluation::{Reason, SidePointer};

/// Declares an enum with `ALL`, `as_str`, `meaning` and `parse`. Each line is `Variant "code" "Meaning."`; the meaning is
/// also the documentation of the variant.
macro_rules! code_enum {
    ($(#[$doc:meta])* $vis:vis $name:ident { $($variant:ident $code:literal $meaning:literal)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $(#[doc = $meaning] $variant,)*
        }

        impl $name {
            /// All codes, in the order of the documentation.
            $vis const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The stable kebab-case code, as files contain it.
            $vis const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $code,)* }
            }

            /// What the code means, in one sentence.
            $vis const fn meaning(self) -> &'static str {
                match self { $($name::$variant => $meaning,)* }
            }

            /// Parses a code from a file; `None` for a code that this version does not know.
            $vis fn parse(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == code)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use code_enum;

code_enum! {
    /// The code of a reason for a verdict, or of a finding about the new side.
    pub ReasonCode {
        // Artifacts.
        MoreViolations "more-violations" "An artifact violates the contract in more than 20 places."
        Unreadable "unreadable" "An artifact cannot be read."
        ArtifactAbsent "artifact-absent" "A run selected the case but has no artifact of it."
        OnlyInBaseline "only-in-baseline" "Only baseline has an artifact of the case."
        OnlyInNew "only-in-new" "Only new has an artifact of the case."
        NewCase "new-case" "The case was added after the baseline, and its expectations alone decide."
        InputChanged "input-changed" "The sides were asked with different inputs."
        RunnerFailure "runner-failure" "New has a runner error and baseline has an answer."
        AnswerOutage "answer-outage" "The answer of new is the message of an outage, not an answer of the agent."
        RunnerFailureGone "runner-failure-gone" "Baseline has a runner error and new has an answer."
        RunnerFailureOnBothSides "runner-failure-on-both-sides" "Both sides have a runner error."

        // Expectations and evidence.
        MustUnmet "must-unmet" "New does not meet a hard expectation."
        ExpectationFailed "expectation-failed" "An expectation is met on baseline and not met on new."
        EvidenceFailed "evidence-failed" "The evidence of an action is the result of a call that failed."
        EvidenceLost "evidence-lost" "Evidence of an action resolves on baseline; on new it is missing or does not resolve."
        HighRiskWithoutEvidence "high-risk-without-evidence" "A high-risk action has no evidence that resolves."
        RiskRoseWithoutEvidence "risk-rose-without-evidence" "The risk level of an action rose without evidence that resolves."
        ExpectationMet "expectation-met" "An expectation is not met on baseline and met on new."
        RepeatedCall "repeated-call" "New makes the same tool call many times in a row, far more often than baseline ever does."
        UngroundedArgument "ungrounded-argument" "A tool received a value that appears in nothing the agent received before."
        UnrecordedSource "unrecorded-source" "A tool received a value that is not in what was recorded."

        // Signals.
        SignalInjectionFollowed "signal-injection-followed" "The agent uses a tool or a value that only instructions in a tool result name."
        SignalSecret "signal-secret" "The agent states a secret of a known shape, or passes one to a tool."
        SignalUnknownRecipient "signal-unknown-recipient" "A call with effects outside has a recipient that appears in nothing the agent received before."
        SignalPersonalData "signal-personal-data" "The agent states personal data that the baseline's agent does not state."
        SignalUntrustedUrl "signal-untrusted-url" "The agent uses a URL of an untrusted host."
        ConfirmationSkipped "confirmation-skipped" "New makes a high-risk call without the question to the user that baseline always asks before."
        UnsupportedAmount "unsupported-amount" "The answer states an amount that nothing the agent received supports."
        UnsupportedNumber "unsupported-number" "The answer of a deterministic agent states a number that nothing it received supports."
        AnswerRefusal "answer-refusal" "The answer of a deterministic agent refuses, which the answer of baseline does not."
        AnswerReplaced "answer-replaced" "The answer of a deterministic agent has no word in common with the answer of baseline."
        AnswerLanguage "answer-language" "The answer is in another language than in every run of baseline."
        AnswerCut "answer-cut" "The answer ends within a sentence, which no answer of baseline does."
        SignalInjection "signal-injection" "A tool result contains instructions for the agent."

        // Proposed actions and the output.
        ActionAdded "action-added" "Only new proposes the action."
        ActionRemoved "action-removed" "Only baseline proposes the action."
        ActionParamsChanged "action-params-changed" "The parameters of a proposed action differ."
        RiskChanged "risk-changed" "The risk level of a proposed action differs."
        ActionChanged "action-changed" "Another field of a proposed action differs."
        EvidenceChanged "evidence-changed" "The evidence of a proposed action differs."
        OutputChanged "output-changed" "The final output differs."
        OutputTypeChanged "output-type-changed" "The type of the final output differs."

        // Events.
        ToolCallAdded "tool-call-added" "Only new makes the tool call."
        ToolCallRemoved "tool-call-removed" "Only baseline makes the tool call."
        ToolCallMoved "tool-call-moved" "A tool call is at another position."
        ToolArgsChanged "tool-args-changed" "The arguments of a tool call differ."
        ToolResultChanged "tool-result-changed" "A tool result differs."
        ToolError "tool-error" "A tool call failed on new and not on baseline."
        ToolErrorGone "tool-error-gone" "A tool call failed on baseline and not on new."
        RetrievalChanged "retrieval-changed" "A retrieval was added, removed, moved or changed."
        EventChanged "event-changed" "Another event was added, removed, moved or changed."

        // Several runs per side.
        PassRateFell "pass-rate-fell" "Over several runs, a pass rate fell by more than chance explains."
        PassRateRose "pass-rate-rose" "Over several runs, a pass rate rose by more than chance explains."
        PassRateMayHaveFallen "pass-rate-may-have-fallen" "Over several runs, a pass rate fell, but chance is not ruled out."
        PassRateUndecided "pass-rate-undecided" "Over several runs, a pass rate fell, but the runs are too few to decide."
        BeyondNoise "beyond-noise" "New differs from baseline more than baseline differs from itself."
        DifferenceUndecided "difference-undecided" "New differs from baseline, on too few runs to tell whether by more than chance."
        Noise "noise" "New differs from baseline no more than baseline differs from itself."

        // Limits of the comparison.
        ExpectationUndecided "expectation-undecided" "An expectation could be evaluated on one side only."
        MoreChanges "more-changes" "More than 20 places differ; the others are not listed."
        AlignmentBounded "alignment-bounded" "The lists are too long to be aligned exactly."
    }
}

impl ReasonCode {
    /// Whether a signal outweighs the differences of actions and steps.
    pub(crate) const fn is_urgent_signal(self) -> bool {
        // A secret or data leaves, or someone else directs the agent.
        matches!(self, Self::SignalInjectionFollowed | Self::SignalSecret | Self::SignalUnknownRecipient)
    }

    /// Whether the code is one of a signal.
    pub(crate) fn is_signal(self) -> bool {
        self.as_str().starts_with("signal-")
    }

    /// Whether a reason has the code.
    pub fn is_code_of(self, reason: &Reason) -> bool {
        reason.code == self.as_str()
    }

    pub(crate) fn reason(self, message: String, pointers: Vec<SidePointer>) -> Reason {
        Reason { code: self.as_str().to_owned(), message, pointers }
    }
}

/// The pointers of a reason about one place.
pub(super) fn at(side: Side, place: impl Into<String>) -> Vec<SidePointer> {
    vec![SidePointer::new(side, place)]
}
