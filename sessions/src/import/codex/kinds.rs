//! The types of lines and response items of a rollout of Codex.

/// The types of lines. A line has its content in `payload`.
pub(crate) const LINE_TYPES: [&str; 9] = [
    "session_meta",
    "response_item",
    "compacted",
    "turn_context",
    "event_msg",
    "token_usage_record",
    "world_state",
    "inter_agent_communication",
    "inter_agent_communication_metadata",
];

/// Response items that a model makes, but for messages.
pub(super) const MODEL_ITEMS: [&str; 10] = [
    "reasoning",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
    "image_generation_call",
    "mcp_call",
    "compaction",
    "context_compaction",
];

/// Response items with the output of a tool.
pub(super) const OUTPUT_ITEMS: [&str; 5] = [
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "mcp_tool_call_output",
    "tool_search_output",
];

/// Types that are left out on purpose, with the reason. `docs/session-import.md` has the same table.
pub(crate) const LEFT_OUT: [(&str, &str); 30] = [
    ("event_msg/agent_message", "a copy of a response item"),
    ("event_msg/agent_reasoning", "a copy of a response item"),
    ("event_msg/agent_reasoning_raw_content", "a copy of a response item"),
    ("event_msg/agent_reasoning_section_break", "a copy of a response item"),
    ("event_msg/background_event", "a message to the user"),
    ("event_msg/context_compacted", "a copy of `compacted`"),
    ("event_msg/entered_review_mode", "a setting of the program"),
    ("event_msg/exec_command_begin", "a copy of a response item"),
    ("event_msg/exited_review_mode", "a setting of the program"),
    ("event_msg/item_completed", "a copy of a response item"),
    ("event_msg/item_started", "a copy of a response item"),
    ("event_msg/mcp_tool_call_begin", "a copy of a response item"),
    ("event_msg/patch_apply_begin", "a copy of a response item"),
    ("event_msg/plan_update", "a copy of a response item"),
    ("event_msg/task_complete", "the end of a turn; its last message is a response item"),
    ("event_msg/task_started", "the start of a turn"),
    ("event_msg/turn_complete", "the end of a turn; its last message is a response item"),
    ("event_msg/turn_diff", "a sum of the patches of a turn"),
    ("event_msg/turn_started", "the start of a turn"),
    ("event_msg/undo_completed", "a command of the user interface"),
    ("event_msg/undo_started", "a command of the user interface"),
    ("event_msg/user_message", "a copy of a response item"),
    ("event_msg/view_image_tool_call", "a copy of a response item"),
    ("event_msg/warning", "a message to the user"),
    ("event_msg/web_search_begin", "a copy of a response item"),
    ("event_msg/web_search_end", "a copy of a response item"),
    ("inter_agent_communication_metadata", "an addition to `inter_agent_communication`"),
    ("response_item/ghost_snapshot", "a backup for undo"),
    ("state", "a position of the recorder in older files"),
    ("world_state", "the environment as the program sees it"),
];
