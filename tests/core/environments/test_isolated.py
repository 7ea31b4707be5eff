"""Sessions in processes: what a tool does to its process, and how the walk goes on."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.environments.isolated.environment import IsolatedEnvironment, isolated_in
from callwright.environments.isolated.pool import SessionPool
from callwright.language.program import Call, Program
from callwright.walk.execution import ExecutionRules, execute

SUPPORT = Path(__file__).parents[1] / "support"
sys.path.append(str(SUPPORT))  # which processes that are started here are told of
wild_tools: Any = importlib.import_module("wild_tools")

LIMITS = cw.SessionLimits(time=120.0, cpu=1.5, memory=2**30, processes=1)


@pytest.fixture(scope="module")
def wild() -> Iterator[IsolatedEnvironment]:
    made = cw.isolated(cw.environment("wild", tools=wild_tools.TOOLS, state=wild_tools.numbers), LIMITS)
    yield made
    made.close()


def test_a_session_does_what_it_does_in_this_process(wild: IsolatedEnvironment) -> None:
    here = wild.inner.open()
    there = wild.open()
    for tool, arguments in [("add", {"n": 1}), ("add", {"n": "x"}), ("nothing", {}), ("add", {"n": 2})]:
        assert there.call(tool, arguments) == here.call(tool, arguments)
        assert there.digest() == here.digest()
    assert there.call("process", {}).value != os.getpid()
    with pytest.raises(AttributeError, match="not at hand"):
        _ = there.state
    there.close()
    there.close()
    with pytest.raises(cw.UsageError, match="closed"):
        there.call("add", {"n": 1})


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "words"),
    [
        ("leave", {"status": 7}, "exited", "leave ended its process with status 7"),
        ("spin", {}, "cpu", "spin used more than 1.5 s of processor time"),
        ("fork", {}, "forked", "started a copy of its process"),
        ("move", {}, "chdir", "changed the working folder"),
        ("vary", {}, "environ", "changed the environment variables"),
        ("shut", {"what": "output"}, "closed", "closed the standard streams"),
        ("shut", {"what": "handles"}, "closed", "closed the standard streams"),
        ("shut", {"what": "everything"}, "closed", "closed files of its process"),
    ],
)
def test_what_breaks_a_process_is_named_masked_and_survived(
    wild: IsolatedEnvironment, tool: str, arguments: dict[str, object], code: str, words: str
) -> None:
    folder = str(Path.cwd())
    trace = execute(Program((Call(0, tool, arguments), Call(1, "where", {}))), wild, wild.tools)
    assert len(trace.records) == 1
    assert trace.records[0].outcome.kind == "infrastructure_error"
    assert trace.records[0].outcome.code == code
    assert words in str(trace.masked)
    after = execute(
        Program(tuple(Call(at, name, {}) for at, name in enumerate(("shout", "variables", "where")))), wild, wild.tools
    )
    assert [record.outcome.value for record in after.records] == [1, [None, os.environ.get("HOME")], folder]


def test_opening_that_does_such_things_masks_too(wild: IsolatedEnvironment) -> None:
    trace = execute(Program((Call(0, "where", {}),)), wild, wild.tools, scenario="moves")
    assert "opening a session of 'wild' changed the working folder" in str(trace.masked)
    with pytest.raises(cw.InfrastructureFailure, match="changed the working folder"):
        wild.open("moves")


def test_a_call_that_hangs_is_killed() -> None:
    environment = cw.isolated(
        cw.environment("wild", tools=wild_tools.TOOLS, state=wild_tools.numbers), cw.SessionLimits(time=1.0)
    )
    session = environment.open()
    process = session.call("process", {}).value
    outcome = session.call("sleep", {"seconds": 3600.0})
    assert (outcome.kind, outcome.code) == ("infrastructure_error", "timeout")
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    for scenario, words in [("hangs", "took more than 1 s"), ("gone", "ended its process with status 3")]:
        trace = execute(Program((Call(0, "where", {}),)), environment, environment.tools, scenario=scenario)
        assert words in str(trace.masked)
    rules = ExecutionRules(time_limit=120.0)
    assert execute(Program((Call(0, "where", {}),)), environment, environment.tools, rules=rules).executed
    environment.close()


def test_memory_is_bounded_and_the_session_goes_on(wild: IsolatedEnvironment) -> None:
    session = wild.open()
    assert session.call("fill", {"megabytes": 10}).value == 10
    outcome = session.call("fill", {"megabytes": 3000})
    assert (outcome.kind, outcome.code) == ("execution_error", "MemoryError")
    assert outcome.undeclared.startswith("fill raised MemoryError")
    assert session.call("add", {"n": 1}).value == [1]
    assert session.call("wide", {"n": 9_000_000}).code == "result_too_large"


@pytest.mark.parametrize("kind", ["ctrl-c", "generator", "exit"])
def test_what_ends_programs_is_a_failure_of_the_call(wild: IsolatedEnvironment, kind: str) -> None:
    session = wild.open()
    outcome = session.call("interrupt", {"kind": kind})
    assert (outcome.kind, bool(outcome.undeclared)) == ("execution_error", True)
    assert session.call("add", {"n": 1}).value == [1]


def test_what_a_tool_prints_is_not_on_standard_output(tmp_path: Path) -> None:
    script = tmp_path / "shouting.py"
    script.write_text(
        "import callwright as cw\n"
        "import wild_tools\n"
        "if __name__ == '__main__':\n"
        "    wild = cw.environment('wild', tools=wild_tools.TOOLS, isolation='process')\n"
        "    print(wild.open().call('shout', {}).kind)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SUPPORT)}
    )
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert "more noise" in done.stderr


def test_worlds_fork_reset_and_compare_there_as_here() -> None:
    bank = cw.environment("banking", isolation="process")
    assert isinstance(bank, IsolatedEnvironment)
    session, here = bank.open("typical", 3), bank.inner.open("typical", 3)
    assert session.digest() == here.digest()
    tool, arguments = "find_customer", {"query": "berg", "limit": 1}
    assert session.call(tool, arguments) == here.call(tool, arguments)
    other = session.fork()
    assert other.digest() == session.digest()
    assert session.diff(other) == session.diff(since=other) == here.diff(here.fork())
    elsewhere = bank.open("typical", 4)
    with pytest.raises(cw.UsageError, match="lives in another process"):  # where its number is that of `session`
        session.diff(elsewhere)
    assert session.snapshot() == here.snapshot()
    session.reset()
    assert pickle.loads(pickle.dumps(bank)).name == "banking"
    bank.close()


def test_what_no_other_process_can_make_is_refused_in_words() -> None:
    @cw.tool
    def mine() -> int:
        """Inside of a function."""
        return 1

    with pytest.raises(cw.UsageError, match="mine"):
        cw.environment("mine", tools=[mine], isolation="process")
    with pytest.raises(cw.UsageError, match="isolation is"):
        cw.environment("wild", tools=wild_tools.TOOLS, isolation="jail")  # type: ignore[arg-type]
    with pytest.raises(cw.UsageError, match="'time'"):
        cw.SessionLimits(time=0)


def test_every_process_has_its_sessions_and_a_lost_one_takes_only_its_own() -> None:
    wild = cw.isolated(cw.environment("wild", tools=wild_tools.TOOLS), cw.SessionLimits(processes=2))
    first, second = wild.open(), wild.open()
    assert first.call("process", {}).value != second.call("process", {}).value
    assert first.call("leave", {"status": 1}).code == "exited"
    assert second.call("where", {}).kind == "ok"
    with pytest.raises(cw.InfrastructureFailure, match="lost"):
        first.digest()
    first.close()
    assert wild.open().call("where", {}).kind == "ok"
    wild.close()


def test_folders_that_modules_are_found_in_by_now_are_found_in_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = SessionPool(cw.SessionLimits(processes=1), spread=True)
    isolated_in(cw.environment("wild", tools=wild_tools.TOOLS), pool).open().close()
    (tmp_path / "late_tools.py").write_text(
        "import callwright as cw\n\n@cw.tool\ndef late() -> str:\n    'Say so.'\n    return 'late'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    late = importlib.import_module("late_tools")
    try:
        session = isolated_in(cw.environment("late", tools=[late.late]), pool).open()
        assert session.call("late", {}).value == "late"
        session.close()
    finally:
        pool.close()
        del sys.modules["late_tools"]
