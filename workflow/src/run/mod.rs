//! The state machine of a workflow.
