"""Finding commands, options before a command, plugins that add or break something."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cli_fakes
import click
import pytest
from click.testing import CliRunner, Result

import callwright as cw
import callwright_plugins.json_ir
from callwright.cli.root import CORE
from callwright.cli.root import root as root_command
from callwright.plugins import load_plugins

Invoke = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[str]"]


def registry_with(**hooks: Any) -> cw.Registry:
    plugin = SimpleNamespace(**{name: cw.hookimpl(function) for name, function in hooks.items()})
    return load_plugins(extra={"theirs": plugin}, entry_points=False)


def test_help_lists_every_command_with_its_summary(invoke: Invoke, registry: cw.Registry) -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for lazy in CORE:
        if " " not in lazy.name:
            assert f"  {lazy.name} " in result.stdout
            assert lazy.summary in result.stdout
    for word in ("plugins", "report", "greet", "world"):
        assert f"  {word} " in result.stdout
    assert "record, fail" not in result.stdout  # in the order of names, not of registration
    assert "fail, record" in result.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["score"],
        ["evaluate"],
        ["schema"],
        ["doctor"],
        ["report"],
        ["plugins", "list"],
        ["plugins", "show"],
        ["plugins", "check"],
        ["world", "fail"],
    ],
)
def test_every_command_has_help(invoke: Invoke, words: list[str]) -> None:
    result = invoke(*words, "--help")
    assert result.exit_code == 0
    assert f"callwright {' '.join(words)}" in result.stdout.replace("root", "callwright")


def test_commands_of_plugins_run(invoke: Invoke) -> None:
    assert invoke("greet", "you").stdout == "hello you\n"


def test_a_command_of_two_words_makes_its_group(invoke: Invoke) -> None:
    assert invoke("world", "record").stdout == "json\n"
    assert "record" in invoke("world", "--help").stdout


def test_a_plugin_adds_to_a_group_that_another_registered_whole(invoke: Invoke) -> None:
    group = click.Group("zoo", commands=[click.Command("feed", callback=lambda: click.echo("fed"), help="Feed them.")])

    def commands() -> list[cw.Lazy]:
        return [cw.Lazy("zoo", lambda: None), cw.Lazy("zoo count", "cli_fakes:record", "count them")]

    plugins = registry_with(callwright_commands=commands)
    plugins._components["command"]["zoo"] = cw.Lazy("zoo", group, "animals", plugin="theirs")
    assert invoke("zoo", "feed", plugins=plugins).stdout == "fed\n"
    help_text = invoke("zoo", "--help", plugins=plugins).stdout
    assert "count them" in help_text
    assert "Feed them" in help_text


@pytest.mark.parametrize("name", ["run", "run fast", "plugins", "plugins list"])
def test_a_plugin_cannot_take_a_name_of_the_core(invoke: Invoke, name: str) -> None:
    plugins = registry_with(callwright_commands=lambda: [cw.Lazy(name, "cli_fakes:greet")])
    result = invoke("schema", plugins=plugins)
    assert result.exit_code == 4
    assert result.stderr.startswith(f"error: plugin 'theirs' registers the command {name!r}")
    assert "-p no:theirs" in result.stderr


def test_a_plugin_may_add_to_a_group_of_the_core(invoke: Invoke) -> None:
    plugins = registry_with(callwright_commands=lambda: [cw.Lazy("plugins greet", "cli_fakes:greet", "greets")])
    assert invoke("plugins", "greet", "them", plugins=plugins).stdout == "hello them\n"
    assert "check" in invoke("plugins", "--help", plugins=plugins).stdout


def test_something_that_is_no_command(invoke: Invoke) -> None:
    plugins = registry_with(callwright_commands=lambda: [cw.Lazy("sums", "cli_fakes:Sums")])
    result = invoke("sums", plugins=plugins)
    assert result.exit_code == 4
    assert result.stderr == "error: plugin 'theirs': the command 'sums' is type, not a click.Command\n"


def test_a_command_that_cannot_be_imported_names_its_plugin(invoke: Invoke) -> None:
    plugins = registry_with(callwright_commands=lambda: [cw.Lazy("gone", "no_such_module:command", "gone")])
    assert "gone" in invoke("--help", plugins=plugins).stdout  # nobody imports it to list it
    result = invoke("gone", plugins=plugins)
    assert result.exit_code == 4
    assert result.stderr.startswith("error: plugin 'theirs'")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "meant"), [("scor", "score"), ("plugin", "plugins"), ("reprot", "report"), ("snapshot", "env snapshot")]
)
def test_a_mistyped_command(invoke: Invoke, given: str, meant: str) -> None:
    result = invoke(given)
    assert result.exit_code == 2
    assert f"No such command {given!r}. Did you mean {meant!r}?" in result.stderr


def test_a_word_that_no_command_of_a_group_is_like(invoke: Invoke) -> None:
    result = invoke("plugins", "zzz")
    assert result.exit_code == 2
    assert "No such command 'zzz'. Known: list, show, check" in result.stderr


def test_options_before_the_command_that_mean_nothing(invoke: Invoke) -> None:
    assert invoke("-p", "yes:json-ir", "schema").exit_code == 2
    assert invoke("--no-such-option", "schema").exit_code == 2


def test_version(invoke: Invoke) -> None:
    assert invoke("--version").stdout == f"callwright, version {cw.__version__}\n"


def test_plugins_are_left_out_and_added(start: Start) -> None:
    listed = start("-p", "no:report", "plugins", "list", "--json")
    rows = {row["name"]: row for row in json.loads(listed.communicate()[0])}
    assert rows["report"]["blocked"]
    assert not rows["json-ir"]["blocked"]
    assert {component["name"] for component in rows["cli_fakes"]["components"]} >= {"sums-v1", "greet"}
    help_text = start("-p", "no:report", "--help").communicate()[0]
    assert "  report " not in help_text


@pytest.mark.parametrize(
    ("option", "status", "said"),
    [
        ("no:nobody", 2, "error: There is no plugin named 'nobody'."),
        ("no_such_module", 4, "error: -p no_such_module: the module cannot be imported: ModuleNotFoundError"),
        ("callwright_plugins.json_ir", 4, "already registered, as the plugin 'json-ir'"),
    ],
)
def test_plugins_that_are_not_there(start: Start, option: str, status: int, said: str) -> None:
    process = start("-p", option, "schema")
    _, errors = process.communicate()
    assert process.returncode == status
    assert said in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("source", "status", "said"),
    [
        (
            "import sys\nsys.exit(0)\n",
            4,
            "error: -p mine: the module ends the process when it is imported: sys.exit(0)",
        ),
        (
            "import sys, callwright\n@callwright.hookimpl\ndef callwright_parsers():\n    sys.exit(0)\n",
            4,
            "error: plugin 'mine': callwright_parsers raised SystemExit: 0",
        ),
        (
            "def divide():\n    return 1 / 0\n\ndivide()\n",
            4,
            "error: -p mine: the module cannot be imported: ZeroDivisionError: division by zero (mine.py, line 2)",
        ),
        ("import no_such_thing\n", 4, "error: -p mine: the module cannot be imported: ModuleNotFoundError: No module"),
        ("def callwright_parsers():\n    return ()\n", 2, "error: -p mine: this module is no plugin of Callwright"),
        ("", 2, "error: -p mine: this module is no plugin of Callwright"),
    ],
)
def test_a_module_that_is_no_plugin_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, status: int, said: str
) -> None:
    (tmp_path / "mine.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    result = CliRunner().invoke(root_command, ["-p", "mine", "schema"], catch_exceptions=False)
    assert result.exit_code == status, result.stderr
    assert result.stderr.startswith(said)
    assert len(result.stderr.splitlines()) == 1
    monkeypatch.delitem(sys.modules, "mine", raising=False)


def test_what_a_plugin_prints_when_it_is_loaded_is_no_output_of_a_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hook = "@callwright.hookimpl\ndef callwright_parsers():\n    print('registered')\n    return ()\n"
    (tmp_path / "loud.py").write_text(f"import callwright\nprint('imported')\n{hook}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "loud", raising=False)
    result = CliRunner().invoke(root_command, ["-p", "loud", "plugins", "list", "--json"], catch_exceptions=False)
    assert result.stderr == "imported\nregistered\n"
    assert "loud" in {row["name"] for row in json.loads(result.stdout)}
    monkeypatch.delitem(sys.modules, "loud", raising=False)


def test_hooks_are_traced(invoke: Invoke, gold: Callable[[str], str], write_rows: Callable[..., Any]) -> None:
    seen: list[str] = []

    def scored(attempt: cw.Attempt, reward: cw.Reward) -> None:
        seen.append(attempt.task.id)

    plugins = load_plugins(
        extra={
            "fakes": cli_fakes,
            "json-ir": callwright_plugins.json_ir,
            "watch": SimpleNamespace(callwright_attempt_scored=cw.hookimpl(scored)),
        },
        entry_points=False,
    )
    lines: list[str] = []
    plugins.trace(lines.append)
    rows = write_rows([{"id": 1, "task": "train-1", "completion": gold("train-1")}])
    invoke("score", rows, "--corpus", "sums-v1", "--recipe", "sums", plugins=plugins)
    assert seen == ["train-1"]
    assert any(line.startswith("hook callwright_attempt_scored(") for line in lines)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['callwright', '--help']\n"
        "from callwright.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print(); print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "transformers", "pydantic", "pydantic_core", "rich", "jsonschema_rs", "numpy", "structlog"}
    assert not heavy & set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(("words", "status"), [("--version", 0), ("scroe", 2)])
def test_a_crash_in_the_teardown_of_ray_is_not_the_status_of_the_command(words: str, status: int) -> None:
    code = (
        "import atexit, os, sys, types; from callwright.cli import main\n"
        "class Thread:\n    def __del__(self): os.kill(os.getpid(), 11)\n"
        "sys.modules['ray'] = types.ModuleType('ray'); sys.modules['ray'].thread = Thread()\n"
        "atexit.register(print, 'put away'); sys.argv = ['callwright', *sys.argv[1:]]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code, words], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert done.stdout.endswith("put away\n")


def test_python_dash_m(start: Start) -> None:
    output, _ = start("--help").communicate()
    assert output.startswith("Usage: callwright ")


def test_completion_of_the_shell() -> None:
    command = [sys.executable, "-c", "from callwright.cli import main; main()"]
    environment = {"_CALLWRIGHT_COMPLETE": "bash_complete", "COMP_WORDS": "callwright plug", "COMP_CWORD": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "plain,plugins" in done.stdout
