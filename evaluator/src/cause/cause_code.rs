//! The codes of root causes. The report and `docs/verdicts.md` use this list.

use crate::judge::code_enum;

code_enum! {
    /// The code of a root cause: what the earliest difference is.
    CauseCode {
        InputChanged "input-changed" "The two sides received different input."
        RetrievalChanged "retrieval-changed" "The same query found other documents."
        ToolResultChanged "tool-result-changed" "The same call returned another result."
        ToolError "tool-error" "A call failed on new and not on baseline."
        ToolChoice "tool-choice" "A call or an action is on one side only, or a step is at another position."
        Arguments "arguments" "A call or a query has other arguments, although everything they came from is the same."
        ArgumentForm "argument-form" "A call or an action has the same values in another form, such as a list written as text."
        UngroundedArgument "ungrounded-argument" "A call or an action has another argument, and its value is ungrounded."
        EvidenceLost "evidence-lost" "An action lost its evidence, and nothing else differs."
        EventChanged "event-changed" "An event of an unknown type differs."
        OutputOnly "output-only" "Only the final output differs."
        RunnerFailure "runner-failure" "A side has a runner error."
        ModelUnexplained "model-unexplained" "An action differs, although everything it is based on is the same."
    }
}
