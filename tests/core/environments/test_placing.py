"""Whose code runs where: foreign tools in processes, shipped worlds here, and what cannot be moved is said."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

import callwright as cw
import callwright.machines.command_folder as common
from callwright.cli.logging import configure
from callwright.commands.pipelines import make_pipeline
from callwright.environments import clock
from callwright.environments.isolated import placing
from callwright.environments.sessions import is_foreign
from callwright.environments.undeclared import is_shipped
from callwright.language.program import Call, Program, Reference
from callwright.machines import ChunkWork, make_executor
from callwright.pipeline import build_pipeline, open_pipeline
from callwright.recipe_file import load_recipe
from callwright.walk.execution import ExecutionRules, execute

SUPPORT = Path(__file__).parents[1] / "support"
sys.path.append(str(SUPPORT))
wild_tools: Any = importlib.import_module("wild_tools")

WHO = Program((Call(0, "process", {}),))
WILD = cw.environment("wild", tools=wild_tools.TOOLS, state=wild_tools.numbers)
AUTO, NONE, OPEN = ExecutionRules(isolation="auto"), ExecutionRules(isolation="none"), ExecutionRules()


@pytest.fixture(autouse=True)
def nothing_is_known_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv(common.FOLDER, str(tmp_path / "command"))
    structlog.reset_defaults()  # an earlier test of a command may have set the log up
    yield
    structlog.reset_defaults()
    clock._stuck.clear()
    placing._places.clear()
    placing._said.clear()


def runs_here(environment: cw.Environment, rules: ExecutionRules) -> bool:
    found: bool = execute(WHO, environment, environment.tools, rules=rules).returned == (os.getpid(),)
    return found


def test_foreign_tools_are_moved_unless_somebody_says_no() -> None:
    assert not runs_here(WILD, AUTO)
    assert not runs_here(WILD, ExecutionRules(isolation="process"))
    assert runs_here(WILD, NONE)


def test_commands_and_trainers_move_them_and_what_is_asked_for_in_python_runs_here() -> None:
    task = cw.Task("t", "?", WILD.tools, cw.Answer((os.getpid(),)), WILD)
    text = cw.parser("json").render(WHO)
    reward = cw.reward("tier")
    assert reward.score(task, text).total == 1.0
    assert reward.score(task, text, isolation="auto").total < 1.0
    pipelines = {
        "by hand": cw.Pipeline("toolworld-mini-v1"),
        "of a trainer": open_pipeline("tier", "toolworld-mini-v1"),
        "of a command": make_pipeline(cw.default_registry(), "toolworld-mini-v1", {}, reward="tier"),
        "of a recipe": build_pipeline(load_recipe({"corpus": "toolworld-mini-v1"}), cw.default_registry()),
        "of a recipe that says no": build_pipeline(
            load_recipe({"corpus": "toolworld-mini-v1", "isolation": "none"}), cw.default_registry()
        ),
    }
    here = [name for name, made in pipelines.items() if made.score(made.attempt(task, text)).total == 1.0]
    assert here == ["by hand", "of a recipe that says no"]


def test_worlds_that_are_shipped_stay_where_they_are() -> None:
    for name in ("banking", "toolworld-v1", "depthbench-v1"):
        if name in cw.default_registry().names("environment"):
            environment = cw.environment(name)
            assert not is_foreign(environment)
            assert placing.place(environment, "auto", None) is None
    mini = cw.corpus("toolworld-mini-v1")["evaluation"][0].environment
    assert placing.place(mini, "auto", None) is None


def test_what_is_shipped_is_what_the_distribution_brings() -> None:
    assert is_shipped("callwright.environments.world")
    assert is_shipped("callwright_plugins.toolworld.tools")
    assert not is_shipped("callwright_other.tools")
    assert not is_shipped("wild_tools")


def test_what_cannot_be_moved_runs_here_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    @cw.tool
    def process() -> int:
        """Inside of a function."""
        return os.getpid()

    mine = cw.environment("mine", tools=[process])
    for _ in range(3):
        assert runs_here(mine, AUTO)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "process" in said[0]
    assert "no limit can stop them" in said[0]
    with pytest.raises(cw.UsageError, match="process"):
        runs_here(mine, ExecutionRules(isolation="process"))


def place_there(state: Any, chunk: int) -> int:
    """In a worker: what cannot be moved runs there, which somebody has to say."""

    @cw.tool
    def process() -> int:
        """Inside of a function."""
        return os.getpid()

    mine = cw.environment("mine", tools=[process])
    return int(execute(WHO, mine, mine.tools, rules=AUTO).returned == (os.getpid(),))


def test_workers_have_it_said_once_a_command_in_the_log_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(json_lines=True)
    with make_executor("process", 2) as executor:
        assert list(executor.map(ChunkWork(dict, place_there), range(6))) == [1] * 6
    place_there(None, 0)  # and not by the command itself again
    output, errors = capsys.readouterr()
    (line,) = errors.splitlines()
    said = json.loads(line)
    assert said["level"] == "warning"
    assert "no limit can stop them" in said["event"]
    assert output == ""


class Other(cw.environments.FunctionEnvironment):
    """One that is made otherwise elsewhere."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return str, ("no environment",)


def test_one_that_is_made_otherwise_elsewhere_runs_here(caplog: pytest.LogCaptureFixture) -> None:
    assert runs_here(Other("other", wild_tools.TOOLS), AUTO)
    assert "cannot run in a process of its own" in caplog.text


def test_after_the_second_overrun_the_session_moves(caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()
    stuck = [threading.Thread(target=release.wait, args=(300,), daemon=True) for _ in range(2)]
    for thread in stuck:
        thread.start()
    try:
        clock._stuck[:] = [(stuck[0], "sleep")]
        assert runs_here(WILD, OPEN)
        clock._stuck[:] = [(thread, "sleep") for thread in stuck]
        assert not runs_here(WILD, OPEN)
        assert "moves to processes" in caplog.text
        assert runs_here(WILD, NONE)  # whose thread was there before
    finally:
        release.set()


PROGRAMS = [
    Program((Call(0, "add", {"n": 1}), Call(1, "twice", {"values": Reference(0)}), Call(2, "add", {"n": 2}))),
    Program((Call(0, "add", {"n": "x"}), Call(1, "twice", {"values": Reference(0)}), Call(2, "where", {}))),
    Program((Call(0, "nobody", {}), Call(1, "twice", {"values": Reference(7)}))),
    Program((Call(0, "interrupt", {"kind": "exit"}), Call(1, "twice", {"values": Reference(0, ("a",))}))),
    Program((Call(0, "fork", {}), Call(1, "add", {"n": 1}))),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
@pytest.mark.parametrize("rules", [{}, {"unresolved": "literal", "after_failure": "pass", "missing_field": "whole"}])
def test_there_as_here(program: Program, rules: dict[str, Any]) -> None:
    tools = {name: spec for name, spec in WILD.tools.items() if name != "where"}
    here = execute(program, WILD, tools, rules=ExecutionRules(isolation="none", **rules))
    there = execute(program, WILD, tools, rules=ExecutionRules(isolation="auto", **rules))
    if here.masked is None:
        assert there == here
    assert [record.outcome.kind for record in there.records] == [record.outcome.kind for record in here.records]
    assert [record.outcome.undeclared for record in there.records] == [
        record.outcome.undeclared for record in here.records
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "code"), [("fork", {}, "forked"), ("move", {}, "chdir"), ("vary", {}, "environ")]
)
def test_what_can_be_caught_here_is_named_and_undone(tool: str, arguments: dict[str, Any], code: str) -> None:
    folder, variables = str(Path.cwd()), dict(os.environ)
    script = (
        "import importlib, os, sys; sys.path.append(sys.argv[1])\n"
        "import callwright as cw; from callwright.walk.execution import *; from callwright.language.program import *\n"
        "tools = importlib.import_module('wild_tools')\n"
        "env = cw.environment('wild', tools=tools.TOOLS, state=tools.numbers)\n"
        "rules = ExecutionRules(isolation='none')\n"
        "before = dict(os.environ), os.getcwd()\n"
        "trace = execute(Program((Call(0, sys.argv[2], {}),)), env, env.tools, rules=rules)\n"
        "print(trace.records[0].outcome.code, (dict(os.environ), os.getcwd()) == before)\n"
    )
    command = [sys.executable, "-c", script, str(SUPPORT), tool]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout == f"{code} True\n", done.stderr
    assert (str(Path.cwd()), dict(os.environ)) == (folder, variables)


@pytest.mark.parametrize("kind", ["ctrl-c", "generator", "exit"])
def test_what_ends_programs_ends_none(kind: str) -> None:
    for rules in (AUTO, NONE):
        trace = execute(Program((Call(0, "interrupt", {"kind": kind}),)), WILD, WILD.tools, rules=rules)
        outcome = trace.records[0].outcome
        assert (outcome.kind, bool(outcome.undeclared)) == ("execution_error", True)


def script(tmp_path: Path, text: str, *, first: str = "") -> subprocess.CompletedProcess[str]:
    source = tmp_path / "script.py"
    source.write_text(
        "import os, sys\n" + first + "import callwright as cw\nimport wild_tools\n"
        "from callwright.walk.execution import ExecutionRules, execute\n"
        "from callwright.language.program import Call, Program\n"
        "WHO, AUTO = Program((Call(0, 'process', {}),)), ExecutionRules(isolation='auto')\n"
        "print('begun')\n" + text
    )
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    return subprocess.run([sys.executable, str(source)], capture_output=True, text=True, env=environment, timeout=300)


def test_a_script_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        "wild = cw.environment('wild', tools=wild_tools.TOOLS)\n"
        "print(execute(WHO, wild, wild.tools, rules=AUTO).returned != (os.getpid(),))\n",
    )
    assert (done.returncode, done.stdout) == (0, "begun\nTrue\n"), done.stderr


def test_tools_of_the_script_itself_run_here_and_that_is_said(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        "@cw.tool\ndef process() -> int:\n    return os.getpid()\n"
        "mine = cw.environment('mine', tools=[process])\n"
        "print(execute(WHO, mine, mine.tools, rules=AUTO).returned == (os.getpid(),))\n",
    )
    assert (done.returncode, done.stdout) == (0, "begun\nTrue\n"), done.stderr
    assert done.stderr.count("functions of the script that runs here") == 1


def test_a_copy_of_a_process_has_a_pool_of_its_own(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        "wild = cw.environment('wild', tools=wild_tools.TOOLS)\n"
        "first = execute(WHO, wild, wild.tools, rules=AUTO).returned\n"
        "sys.stdout.flush()\n"
        "child = os.fork()\n"
        "again = execute(WHO, wild, wild.tools, rules=AUTO).returned\n"
        "same = again == first\n"
        "if child == 0:\n    os._exit(same)\n"
        "print(same, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n",
    )
    assert (done.returncode, done.stdout) == (0, "begun\nTrue 0\n"), done.stderr


def expect_gone(number: int) -> None:
    """That a process ends soon."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{number}/stat").exists() and ") Z " in Path(f"/proc/{number}/stat").read_text():
            return
        time.sleep(0.05)
    pytest.fail("it goes on")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with the one that made it")
@pytest.mark.parametrize("slow", [False, True], ids=["at-once", "late"])
@pytest.mark.parametrize("isolation", ["none", "auto"])
def test_no_copy_that_a_tool_made_outlives_the_command(tmp_path: Path, isolation: str, slow: bool) -> None:
    """Also one that hangs and therefore never finds out that it is a copy, and one that begins when its maker is gone.

    A copy that outlives the command holds its output, and is waited for here until this fails.
    """
    late = "import time\nos.register_at_fork(after_in_child=lambda: time.sleep(3))\n"
    done = script(
        tmp_path,
        "wild = cw.environment('wild', tools=wild_tools.TOOLS)\n"
        f"rules = ExecutionRules(isolation={isolation!r})\n"
        "lingers = Program((Call(0, 'linger', {}),))\n"
        "print(execute(lingers, wild, wild.tools, rules=rules).records[0].outcome.code)\n",
        first=late if slow else "",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "forked"
    (number,) = [int(line) for line in (done.stdout + done.stderr).splitlines() if line.isdigit()]
    expect_gone(number)


def test_no_process_outlives_who_asked_it(tmp_path: Path) -> None:
    source = (
        "import sys, time; sys.path.append(sys.argv[1])\n"
        "import callwright as cw, wild_tools, threading\n"
        "wild = cw.environment('wild', tools=wild_tools.TOOLS, isolation='process')\n"
        "session = wild.open()\n"
        "print(session.call('process', {}).value, flush=True)\n"
        "session.call('spin', {})\n"
    )
    asking = subprocess.Popen([sys.executable, "-c", source, str(SUPPORT)], stdout=subprocess.PIPE, text=True)
    assert asking.stdout is not None
    number = int(asking.stdout.readline())
    asking.send_signal(signal.SIGKILL)
    asking.wait()
    asking.stdout.close()
    expect_gone(number)
