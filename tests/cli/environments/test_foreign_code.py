"""Tools of somebody else that end or block their process, as ``plugins check`` and ``env call`` meet them."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.cli import environment_call
from callwright.cli.environment_call import OneCall, call_once
from callwright.cli.plugin_checks import HowToCheck, check_plugin
from callwright.plugins import Registry, load_plugins

PLUGIN = """
import os
import time

import callwright as cw

@cw.tool
def end(x: int = 0) -> int:
    "Ends the process."
    os._exit(0)

@cw.tool
def block(x: int = 0) -> int:
    "Never returns."
    time.sleep(1000)

@cw.tool
def say(x: int = 0) -> int:
    "Prints."
    print("said by a tool")
    return x

@cw.tool
def grow(n: int) -> int:
    "A long number."
    return 10**n

class Leaves:
    name = "leaves"
    def __init__(self):
        os._exit(3)

def one(name, *tools):
    return cw.Lazy(name, lambda: cw.environment(name, tools=tools), summary="an environment")

@cw.hookimpl
def callwright_environments():
    yield one("blocks-v1", block)
    yield one("ends-v1", end)
    yield one("grows-v1", grow)
    yield one("says-v1", say)

@cw.hookimpl
def callwright_samplers():
    yield cw.Lazy("leaves", "rough_plugin:Leaves", summary="ends the process when it is made")
"""


@pytest.fixture
def rough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A plugin of such environments, in a module that another process can import."""
    (tmp_path / "rough_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "rough_plugin", raising=False)
    return load_plugins(extra={"rough": importlib.import_module("rough_plugin")}, entry_points=False)


def test_the_check_names_what_ends_or_blocks_its_process_and_goes_on_with_the_others(rough: Registry) -> None:
    how = HowToCheck(call_limit=0.5)
    found = {one.what: (one.level, one.message) for one in check_plugin(rough, rough.plugin("rough"), how)}
    blocks, ends, leaves = found["environment blocks-v1"], found["environment ends-v1"], found["sampler leaves"]
    assert blocks[0] == ends[0] == leaves[0] == "error"
    assert blocks[1].startswith("check_same_seed: block({'x': ")
    assert blocks[1].endswith("took more than 0.5 s")
    assert ends[1].startswith("check_same_seed: end({'x': ")
    assert "}) ended its process with status 0. What a plugin runs returns or raises" in ends[1]
    assert leaves[1].startswith("making it ended its process with status 3")
    assert found["environment grows-v1"][0] == "ok"
    assert found["environment says-v1"][0] == "error"
    assert found["environment says-v1"][1].startswith("check_limits: AssertionError: it printed")


def test_the_command_fails_by_the_process_that_was_ended(rough: Registry, invoke: Callable[..., Any]) -> None:
    rough._components["environment"].pop("blocks-v1")  # which would take its half a minute
    result = invoke("plugins", "check", "rough", "--json", plugins=rough)
    assert result.exit_code == 1
    assert "ended its process with status 0" in json.dumps(json.loads(result.stdout))


def test_a_call_that_ends_its_process_did_not_execute(rough: Registry, invoke: Callable[..., Any]) -> None:
    result = invoke("env", "call", "ends-v1", "end", plugins=rough)
    assert result.exit_code == 1
    assert result.stdout == "infrastructure_error exited: end ended its process with status 0\n"
    found = json.loads(invoke("env", "call", "ends-v1", "end", "--json", plugins=rough).stdout)
    assert (found["kind"], found["code"], found["digest"]) == ("infrastructure_error", "exited", "")
    said = invoke("env", "call", "says-v1", "say", "--arg", "x=4", plugins=rough)
    assert (said.exit_code, said.stdout) == (0, "ok\n4\n")


def test_the_shell_goes_on_after_a_tool_that_ends_or_blocks_its_process(
    rough: Registry, invoke: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment_call, "TIME_LIMIT", 0.5)
    for name, tool, said in (("ends-v1", "end", "end ended its process"), ("blocks-v1", "block", "took more than 0.5")):
        done = invoke("env", "shell", name, input=f"{tool}\n{tool} x=2\n:digest\n", plugins=rough)
        assert done.exit_code == 0
        assert done.stdout.count(said) == 2
        assert len(done.stdout.splitlines()[-1]) >= 32  # the digest of the session that began then
        assert done.stderr.count("the session is lost with its process; another one begins") == 2


def test_a_call_of_a_tool_that_no_process_can_make_again_is_made_here(capsys: pytest.CaptureFixture[str]) -> None:
    @cw.tool
    def here() -> int:
        """Lives in this function."""
        return 7

    environment = cw.environment("local-v1", tools=[here])
    assert call_once(environment, "", 0, OneCall("here", {})).outcome.value == 7
    assert "So the tool runs in this process" in capsys.readouterr().err


def test_a_long_number_is_written_with_all_its_digits(rough: Registry, invoke: Callable[..., Any]) -> None:
    drawn = invoke("env", "call", "grows-v1", "grow", "--arg", "n=5000", plugins=rough)
    assert drawn.exit_code == 0
    assert drawn.stdout.replace("\n", "") == "ok1" + "0" * 5000
    whole = invoke("env", "call", "grows-v1", "grow", "--arg", "n=5000", "--json", plugins=rough)
    assert '"value": 1' + "0" * 5000 in whole.stdout
