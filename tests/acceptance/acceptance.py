"""The acceptance tests of the contract for workflows: its two functions as they stand there, and further ones for the rest of it.

`run.py` runs all functions whose names begin with `test_`.
"""

import functools
import json
import os
import subprocess

import client as compymac
from client import (
    fork_from_checkpoint,
    get_checkpoint,
    get_events_between,
    get_events_by_type,
    get_session_overview,
    get_session_timeline,
    list_checkpoints,
    resume_from_checkpoint,
)
from sample_repositories import create_test_repo_for_feature, create_test_repo_with_failing_test, git


def test_workflow_1_fix_failing_test():
    """Test: Fix a failing test in a sample repo."""
    # Setup: Create repo with intentionally failing test
    repo = create_test_repo_with_failing_test()
    
    # Execute workflow
    session = compymac.run_workflow(
        workflow="fix_failing_test",
        repo=repo,
        test="test_example.py::test_should_pass"
    )
    
    # Verify success criteria
    assert session.status == "success"
    assert session.pr_url is not None
    assert session.ci_status == "pass"
    assert session.test_results.target_test == "pass"
    assert len(session.test_results.new_failures) == 0
    
    # Verify capture
    assert session.capture.total_llm_calls > 0
    assert session.capture.total_tool_calls > 0
    assert session.capture.checkpoints > 0
    
    # Verify queryability
    timeline = get_session_timeline(session.session_id)
    assert len(timeline) > 0
    
    overview = get_session_overview(session.session_id)
    assert overview.total_tokens > 0
    
    # Verify checkpoint/resume
    checkpoints = list_checkpoints(session.session_id)
    assert len(checkpoints) > 0
    
    # Can resume from any checkpoint
    for cp in checkpoints:
        resumed = resume_from_checkpoint(cp.checkpoint_id)
        assert resumed is not None


def test_workflow_2_implement_feature():
    """Test: Implement a small feature in a sample repo."""
    # Setup: Create repo needing a feature
    repo = create_test_repo_for_feature()
    
    # Execute workflow
    session = compymac.run_workflow(
        workflow="implement_feature",
        repo=repo,
        spec="Add a function that calculates fibonacci numbers"
    )
    
    # Verify success criteria
    assert session.status == "success"
    assert session.pr_url is not None
    assert session.ci_status == "pass"
    assert session.implementation.tests_added > 0
    
    # Verify capture (same as workflow 1)
    assert session.capture.total_llm_calls > 0
    assert session.capture.checkpoints > 0


FIX = {"workflow": "fix_failing_test", "test": "test_example.py::test_should_pass"}

FEATURE = {"workflow": "implement_feature", "spec": "Add a function that calculates fibonacci numbers"}

# Every fourth checkpoint is resumed, to save time. `run.py --all` resumes all of them.
STRIDE = 4


@functools.cache
def fixed_session():
    """A session that tests read and do not change."""
    before = len(compymac._client.server.requests)
    session = compymac.run_workflow(repo=create_test_repo_with_failing_test(), **FIX)
    session["requests"] = compymac._client.server.requests[before:]
    return session


def pull_request(session):
    """The record of the pull request, and its commit as a list of facts."""
    with open(session.pr_url.removeprefix("file://"), encoding="utf-8") as file:
        return json.load(file)


def test_the_measurable_outputs_have_the_keys_of_the_contract():
    added = {"error", "session", "session_id", "exit_code"}
    common = {"workflow", "status", "pr_url", "ci_status", "capture"}
    capture = {"session_id", "total_llm_calls", "total_tool_calls", "total_tokens", "checkpoints", "duration_seconds"}
    fixed = compymac.run_workflow(repo=create_test_repo_with_failing_test(), **FIX)
    assert set(fixed) - added == common | {"test_results"}, set(fixed)
    assert set(fixed.test_results) == {"target_test", "regression_tests", "new_failures"}
    assert (fixed.workflow, fixed.test_results.regression_tests, fixed.exit_code) == ("fix_failing_test", "pass", 0)
    built = compymac.run_workflow(repo=create_test_repo_for_feature(), **FEATURE)
    assert set(built) - added == common | {"implementation"}, set(built)
    assert built.workflow == "implement_feature"
    assert built.implementation == {
        "files_created": ["fibonacci.py", "test_fibonacci.py"],
        "files_modified": [],
        "tests_added": 3,
        "lines_added": built.implementation.lines_added,
        "lines_removed": 0,
    }
    assert built.implementation.lines_added > 20
    for session in (fixed, built):
        assert set(session.capture) == capture and session.error is None
        overview = get_session_overview(session.session_id)
        assert session.capture.total_llm_calls == overview.total_llm_calls
        assert session.capture.total_tool_calls == overview.total_tool_calls
        assert session.capture.total_tokens == overview.total_tokens
        assert session.capture.checkpoints == overview.checkpoints_available == len(list_checkpoints(session.session_id))
        assert session.capture.duration_seconds > 0


def test_the_pull_request_says_what_was_wrong_and_names_the_test():
    repo = create_test_repo_with_failing_test()
    before = snapshot(repo)
    session = compymac.run_workflow(repo=repo, **FIX)
    request = pull_request(session)
    assert request["title"] and FIX["test"] in request["body"] and "divided" in request["body"]
    assert request["base"] == "main" and request["base_commit"] == git(repo, "rev-parse", "HEAD").strip()
    assert [run["status"] for run in request["ci"]] == ["pass"] and request["ci"][0]["commit"] == request["head_commit"]
    forge = request["repository"]
    subject, author, body = git(forge, "log", "-1", "--format=%s%n%an <%ae>%n%b", request["head_commit"]).split("\n", 2)
    assert 0 < len(subject) <= 72 and author == "Ada Example <ada@example.org>"
    assert FIX["test"] in subject + body
    changed = git(forge, "diff", "--name-only", request["base_commit"], request["head_commit"]).split()
    assert changed == ["calculator.py"]
    assert snapshot(repo) == before, "the repository of the user is unchanged"


def snapshot(repo):
    """All files of a repository with their contents."""
    found = {}
    for folder, _, names in os.walk(repo):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[path] = (os.stat(path).st_mtime_ns, file.read())
    return found


def test_the_feature_follows_the_conventions_and_its_tests_are_part_of_it():
    session = compymac.run_workflow(repo=create_test_repo_for_feature(), **FEATURE)
    request = pull_request(session)
    assert FEATURE["spec"] in request["body"] and "loop" in request["body"]
    forge, head = request["repository"], request["head_commit"]
    tests = git(forge, "show", f"{head}:test_fibonacci.py")
    assert tests.startswith("from fibonacci import fibonacci\n") and "\ndef test_" in tests


def test_every_operation_is_in_the_timeline():
    session = fixed_session()
    timeline = get_session_timeline(session.session_id)
    assert [event.seq for event in timeline] == list(range(1, len(timeline) + 1))
    assert all(event.timestamp.endswith("Z") and event.event_id for event in timeline)
    types = ("llm_call", "tool_call", "state_transition", "checkpoint", "file_operation", "command")
    by_type = {kind: get_events_by_type(session.session_id, kind) for kind in types}
    assert {event.type for event in timeline} == set(types)
    for kind, events in by_type.items():
        assert events == [event for event in timeline if event.type == kind] and events, kind

    # Full requests and answers.
    for event, body in zip(by_type["llm_call"], session.requests, strict=True):
        request, response = event.request, event.response
        assert request.body == body and request.messages == body["messages"] and request.tools == body["tools"]
        assert set(request) >= {"model", "messages", "tools", "temperature", "max_tokens"}
        assert set(response) >= {"content", "tool_calls", "usage", "finish_reason"}
        assert response.usage.total_tokens == response.usage.prompt_tokens + response.usage.completion_tokens
        assert event.latency_ms >= 0 and event.error is None
    assert sum(event.response.usage.total_tokens for event in by_type["llm_call"]) == session.capture.total_tokens

    # Each call that the model asked for, with its arguments and its whole result.
    asked = [call for event in by_type["llm_call"] for call in event.response.tool_calls]
    assert [call.id for call in asked] == [event.call_id for event in by_type["tool_call"]]
    for call, event in zip(asked, by_type["tool_call"], strict=True):
        assert (event.tool_name, event.arguments) == (call.function.name, json.loads(call.function.arguments))
        assert set(event.result) >= {"success", "content", "truncated", "error"} and event.latency_ms >= 0
        assert event.result.success and event.result.content is not None

    # Reads and writes of files, and commands with their output.
    operations = {(event.operation, event.path) for event in by_type["file_operation"]}
    assert {("read", "calculator.py"), ("read", "test_example.py"), ("modify", "calculator.py")} <= operations
    change = next(event for event in by_type["file_operation"] if event.operation == "modify")
    assert "+    return sum(numbers) / len(numbers)" in change.patch and change.before_sha256 != change.after_sha256
    outputs = [f"{event.stdout}{event.stderr}" for event in by_type["command"]]
    assert any("1 failed" in text for text in outputs) and any("3 passed" in text for text in outputs)
    assert {0, 1} <= {event.exit_code for event in by_type["command"]}

    # The chain of states.
    states = by_type["state_transition"]
    assert states[0].from_state == "created" and states[-1].to_state == "succeeded"
    assert all(last.to_state == state.from_state for last, state in zip(states, states[1:]))
    assert all(state.trigger and isinstance(state.context, dict) for state in states)
    passed = [state.to_state for state in states]
    order = ["checkout", "reproduce", "localise", "understand", "edit", "target_test", "suite", "commit", "push", "pull_request"]
    assert [state for state in passed if state in order] == order, passed


def sortable(time):
    seconds, _, fraction = time.removesuffix("Z").partition(".")
    return seconds, fraction.ljust(9, "0")


def test_events_are_found_by_time():
    session = fixed_session()
    timeline = get_session_timeline(session.session_id)
    times = sorted({event.timestamp for event in timeline}, key=sortable)
    middle, late = times[len(times) // 3], times[2 * len(times) // 3]
    expected = [event for event in timeline if sortable(middle) <= sortable(event.timestamp) < sortable(late)]
    assert get_events_between(session.session_id, middle, late) == expected and expected
    assert get_events_between(session.session_id, middle, middle) == []


def test_the_overview_has_the_sums_and_the_milestones():
    session = fixed_session()
    overview = get_session_overview(session.session_id)
    timeline = get_session_timeline(session.session_id)
    assert overview.status == "completed" and overview.duration_seconds > 0 and overview.errors == []
    by_tool = {}
    for event in timeline:
        if event.type == "tool_call":
            by_tool[event.tool_name] = by_tool.get(event.tool_name, 0) + 1
    assert overview.tool_calls_by_tool == by_tool and by_tool["edit"] == 1
    assert overview.files_changed == ["calculator.py"]
    kinds = {milestone.kind for milestone in overview.milestones}
    assert {"tests", "commit", "push", "pull_request"} <= kinds, kinds
    listed = next(it for it in compymac._client.list_sessions() if it.session_id == session.session_id)
    assert (listed.origin, listed.workflow, listed.status) == ("workflow", "fix_failing_test", "completed")


def test_a_checkpoint_has_the_messages_of_the_next_request():
    session = fixed_session()
    last, compared = None, 0
    for event in get_session_timeline(session.session_id):
        if event.type == "checkpoint":
            last = event
        if event.type == "llm_call" and last is not None:
            assert last.state.message_history == event.request.messages
            compared += 1
    assert compared > 2
    for listed in list_checkpoints(session.session_id):
        record = get_checkpoint(listed.checkpoint_id)
        assert record.type == "checkpoint" and record.checkpoint_id == listed.checkpoint_id
        assert set(record.state) == {"message_history", "current_step", "workspace", "tool_state"}
        assert (record.resumable, record.state.current_step, record.seq) == (listed.resumable, listed.current_step, listed.seq)
        assert listed.resumable and isinstance(record.state.workspace, dict) and isinstance(record.state.tool_state, dict)


def test_every_checkpoint_leads_to_the_same_result():
    session = compymac.run_workflow(repo=create_test_repo_with_failing_test(), **FIX)
    content = head_files(session)
    checkpoints = list_checkpoints(session.session_id)
    for checkpoint in [*checkpoints[:-1:STRIDE], checkpoints[-1]]:
        resumed = resume_from_checkpoint(checkpoint.checkpoint_id)
        assert resumed.status == "success" and resumed.test_results == session.test_results
        assert head_files(resumed) == content
        if checkpoint == checkpoints[-1]:
            assert resumed.session_id == session.session_id and resumed.pr_url == session.pr_url
        else:
            # From an older checkpoint it is a fork with a pull request of its own.
            assert resumed.session_id != session.session_id and resumed.pr_url != session.pr_url
    assert len(list_checkpoints(session.session_id)) == len(checkpoints), "forks do not change their parent"


def head_files(session):
    request = pull_request(session)
    return git(request["repository"], "ls-tree", "-r", request["head_commit"])


def test_a_fork_is_a_session_of_its_own():
    session = compymac.run_workflow(repo=create_test_repo_with_failing_test(), **FIX)
    checkpoints = list_checkpoints(session.session_id)
    middle = checkpoints[len(checkpoints) // 2]
    fork = fork_from_checkpoint(middle.checkpoint_id)
    assert fork.parent == {"session_id": session.session_id, "checkpoint_id": middle.checkpoint_id}
    first = list_checkpoints(fork.session_id)[0]
    history = get_checkpoint(middle.checkpoint_id).state.message_history
    assert get_checkpoint(first.checkpoint_id).state.message_history == history
    resumed = resume_from_checkpoint(fork.session_id)
    assert (resumed.session_id, resumed.status) == (fork.session_id, "success")
    assert fork_from_checkpoint(first.checkpoint_id).parent.session_id == fork.session_id, "a fork of a fork"


def test_a_model_with_errors_and_a_red_check_reaches_the_same_result():
    for model in ("scripted:errors", "scripted:cut", "scripted:malformed", "scripted:wrong", "scripted:regress"):
        client = compymac._client.with_model(model)
        session = client.run_workflow(repo=create_test_repo_with_failing_test(), **FIX)
        assert session.status == "success", (model, session.error)
        events = client.get_session_timeline(session.session_id)
        failed = [event for event in events if event.type == "llm_call" and event.error is not None]
        assert bool(failed) == (model in ("scripted:errors", "scripted:cut")), model
        states = [event.to_state for event in events if event.type == "state_transition"]
        is_red = model in ("scripted:wrong", "scripted:regress")
        assert (states.count("localise") > 1) == is_red, (model, states)


def test_a_failure_has_a_kind_and_all_keys():
    cases = {
        "scripted:cheat": "test_tampered",
        "scripted:lazy": "target_still_fails",
        "scripted:refuse": "model",
    }
    for model, kind in cases.items():
        client = compymac._client.with_model(model)
        session = client.run_workflow(repo=create_test_repo_with_failing_test(), options=["--max-iterations", "2"], **FIX)
        assert (session.status, session.error.kind, session.exit_code) == ("failure", kind, 1), (model, session.error)
        assert session.pr_url is None and session.ci_status is None
        assert set(session.test_results) == {"target_test", "regression_tests", "new_failures"}
    client = compymac._client.with_model("scripted:loop")
    session = client.run_workflow(repo=create_test_repo_with_failing_test(), options=["--max-turns", "5"], **FIX)
    assert (session.error.kind, session.capture.total_llm_calls) == ("budget_turns", 5)
    passing = compymac.run_workflow(repo=create_test_repo_for_feature(), **FIX)
    assert (passing.error.kind, passing.capture.total_llm_calls) == ("test_passes_already", 0)
    missing = {**FIX, "test": "test_example.py::test_missing"}
    session = compymac.run_workflow(repo=create_test_repo_with_failing_test(), **missing)
    assert (session.error.kind, session.test_results.target_test) == ("test_not_found", None)


def test_a_paused_run_goes_on():
    client = compymac._client.with_model("scripted:slow")
    known = {session.session_id for session in client.list_sessions()}
    command = client.command(*client.run_arguments(repo=create_test_repo_with_failing_test(), **FIX))
    run = subprocess.Popen(command, env=client.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    # The first request shows that the session runs.
    client.server.wait_for_request("scripted:slow")
    (session_id,) = {session.session_id for session in client.list_sessions()} - known
    client.pause_session(session_id)
    output, _ = run.communicate()
    document = json.loads(output)
    assert (run.returncode, document["error"]["kind"]) == (4, "paused")
    listed = next(it for it in client.list_sessions() if it.session_id == session_id)
    assert listed.status == "paused"
    resumed = compymac.resume_from_checkpoint(client.list_checkpoints(session_id)[-1].checkpoint_id)
    assert (resumed.session_id, resumed.status) == (session_id, "success")
    try:
        client.pause_session(session_id)
    except compymac.CommandFailed as error:
        assert error.code == 2
    else:
        raise AssertionError("a session that does not run cannot be paused")
