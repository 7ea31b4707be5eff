"""``callwright plugins list | show | check``."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.plugin_checks import HowToCheck, check_plugin
from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.plugins import PluginInfo, load_plugins

Invoke = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[str]"]


def test_list(invoke: Invoke) -> None:
    rows = {row["name"]: row for row in json.loads(invoke("plugins", "list", "--json").stdout)}
    assert set(rows) == {"json-ir", "report", "scripted-samplers", "fakes"}
    assert rows["report"]["events"] == ["callwright_run_finished"]
    assert {"kind": "parser", "name": "json"}.items() <= rows["json-ir"]["components"][0].items()
    drawn = invoke("plugins", "list").stdout
    assert "4 samplers" in drawn
    assert "run_finished" in drawn


def test_show_a_plugin(invoke: Invoke) -> None:
    drawn = invoke("plugins", "show", "scripted-samplers").stdout
    assert "noisy-gold" in drawn
    found = json.loads(invoke("plugins", "show", "scripted-samplers", "--json").stdout)
    assert found["plugin"]["module"] == "callwright_plugins.scripted_samplers"


def test_show_a_component_with_its_options(invoke: Invoke) -> None:
    drawn = invoke("plugins", "show", "noisy-gold").stdout
    assert "p = 0.9" in drawn
    assert "registry" not in drawn
    (found,) = json.loads(invoke("plugins", "show", "sums-v1", "--json").stdout)["components"]
    assert found["options"] == {"count": "12", "data": "''"}
    assert found["kind"] == "corpus"


def test_show_says_where_a_component_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "corner_shop.py").write_text(
        "import callwright as cw\n\n\ndef shop():\n    return cw.environment('shop', tools=[])\n\n\n"
        "@cw.hookimpl\ndef callwright_environments():\n    yield cw.Lazy('shop', shop, summary='a shop')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    app = App(registry=load_plugins(extra={"corner": importlib.import_module("corner_shop")}, entry_points=False))
    shown = CliRunner().invoke(root_command, ["plugins", "show", "shop"], obj=app, catch_exceptions=False)
    assert "of the plugin corner, corner_shop:shop\n" in shown.stdout


def test_show_something_unknown(invoke: Invoke) -> None:
    result = invoke("plugins", "show", "noisy-golt")
    assert result.exit_code == 2
    assert "Did you mean 'noisy-gold'?" in result.stderr


def test_check_finds_nothing_wrong_with_plugins_that_work(invoke: Invoke) -> None:
    result = invoke("plugins", "check", "json-ir", "report", "scripted-samplers")
    assert result.exit_code == 0, result.stdout
    assert "0 errors" in result.stdout
    assert invoke("plugins", "check", "--quick").exit_code == 0
    assert invoke("plugins", "check", "nobody").exit_code == 2


def test_each_check_is_shown_by_name_with_what_it_took(invoke: Invoke) -> None:
    shown = invoke("plugins", "check", "json-ir", "--checks").stdout
    assert "check_round_trip" in shown
    assert "check_linear" in shown
    found = json.loads(invoke("plugins", "check", "json-ir", "--again", "--json").stdout)
    (parser,) = [one for one in found if one["what"] == "parser json"]
    assert all(one["steady"] is True and one["seconds"] >= 0 for one in parser["checks"])


FICKLE = """
import callwright as cw
from callwright.testing.sample import SampleForm

class Fickle(SampleForm):
    name = "fickle"
    asked = 0

    def parse(self, text):
        type(self).asked += 1
        if type(self).asked > 400 and type(self).asked % 7 == 0:
            raise ValueError(f"number {type(self).asked}")
        return super().parse(text)

@cw.hookimpl
def callwright_parsers():
    yield cw.Lazy("fickle", "fickle_plugin:Fickle", "fails now and then")
"""


def test_a_check_that_comes_to_something_else_the_second_time_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fickle_plugin.py").write_text(FICKLE)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = load_plugins(extra={"fickle": importlib.import_module("fickle_plugin")}, entry_points=False)
    found = findings(registry, "fickle", again=True)
    assert any("made again it is" in message for _, _, message in found)


def test_expected_failures_stand_in_a_file_and_have_to_be_true(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"

    def check(text: str) -> Result:
        file.write_text(text)
        return invoke("plugins", "check", "json-ir", "--expected", str(file))

    passes = check('["parser json"]\ncheck_total = "it is not total"\n')
    assert passes.exit_code == 1
    assert "check_total passes, though it is expected to fail: it is not total" in passes.stdout
    unknown = check('["parser jsn"]\ncheck_total = "x"\n')
    assert unknown.exit_code == 2
    assert "Did you mean 'parser json'?" in unknown.stderr
    assert check("x = 1").exit_code == 2
    assert check('["parser json"]\nchek_total = "x"\n').exit_code == 2
    assert check("[").exit_code == 2


BROKEN = """
import callwright as cw

@cw.hookimpl
def callwright_parsers():
    yield cw.Lazy("gone", "no_such_module:Parser", "gone")
    yield cw.Lazy("misnamed", "broken_plugin:Misnamed", "has another name")
    yield cw.Lazy("raises", "broken_plugin:Raises", "raises")
    yield cw.Lazy("silent", "broken_plugin:Silent")
    yield cw.Lazy("demanding", "broken_plugin:Demanding", "needs an option")
    yield cw.Lazy("heavy", "broken_plugin.inner:Parser", "needs an extra", extra="vllm")

@cw.hookimpl
def callwright_commands():
    yield cw.Lazy("no-command", "broken_plugin:Silent", "no command")

def callwright_samplers():
    return []

class Misnamed:
    name = "other"

class Raises:
    def __init__(self):
        raise RuntimeError("broken")

class Silent:
    name = "silent"

class Demanding:
    def __init__(self, where): ...
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "broken_plugin.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("broken_plugin")
    del sys.modules["broken_plugin"]


def findings(registry: cw.Registry, name: str = "broken", **options: Any) -> set[tuple[str, str, str]]:
    info = next(info for info in registry.plugins if info.name == name)
    return {(one.level, one.what, one.message) for one in check_plugin(registry, info, HowToCheck(**options))}


def test_check_finds_what_is_wrong(broken: ModuleType) -> None:
    registry = load_plugins(extra={"broken": broken}, entry_points=False)
    found = findings(registry)
    errors = {what: message for level, what, message in found if level == "error"}
    assert errors["hook callwright_samplers"] == "is not marked with @callwright.hookimpl, so it is never called"
    assert "no_such_module" in errors["parser gone"]
    assert errors["parser misnamed"] == "calls itself 'other'; it must have its registered name"
    assert errors["parser raises"] == "making it raised RuntimeError: broken"
    assert errors["command no-command"] == "is type, not a click.Command"
    assert ("warning", "parser silent", "has no summary") in found
    skipped = {what: message for level, what, message in found if level == "skipped"}
    assert "needs the option 'where'" in skipped["parser demanding"]
    assert ("ok", "hook callwright_parsers", "") in found
    quick = {what for level, what, _ in findings(registry, quick=True) if level == "error"}
    assert quick == {"hook callwright_samplers", "parser gone", "command no-command", "parser heavy"}


MISDESCRIBED = '''
import callwright as cw

@cw.tool(read_only=True)
def count(text: str) -> int:
    """How many words a text has.

    Args:
        words: What to count.
    """
    return len(text.split())

def words():
    return cw.environment("words", tools=[count])

TOOLS = [count]

@cw.hookimpl
def callwright_toolsets():
    yield cw.Lazy("counting", "misdescribed:TOOLS", summary="counts")

@cw.hookimpl
def callwright_environments():
    yield cw.Lazy("words", "misdescribed:words", summary="counts")
'''


def test_check_warns_of_parameters_that_only_a_docstring_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "misdescribed.py").write_text(MISDESCRIBED)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = load_plugins(extra={"misdescribed": importlib.import_module("misdescribed")}, entry_points=False)
    found = findings(registry, "misdescribed")
    told = "the docstring of tool 'count' describes 'words', which is no parameter of it"
    assert {(level, what) for level, what, message in found if message == told} == {
        ("warning", "toolset counting"), ("warning", "environment words"),
    }  # fmt: skip
    assert "error" not in {level for level, _, _ in found}


WITHOUT_RENDER = """
import callwright as cw

class Half:
    name = "half"
    instructions = "write a call"

    def parse(self, text, tools=None):
        return cw.Program(())

@cw.hookimpl
def callwright_parsers():
    yield cw.Lazy("half", "without_render:Half", summary="half a parser")
"""


def test_what_fails_many_checks_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "without_render.py").write_text(WITHOUT_RENDER)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = load_plugins(extra={"without_render": importlib.import_module("without_render")}, entry_points=False)
    found = [message for level, _, message in findings(registry, "without_render") if level == "error"]
    (told,) = (message for message in found if "no attribute 'render'" in message)
    assert "(the same in check_" in told
    assert "check_round_trip" in told


@pytest.mark.parametrize(
    ("text", "what", "message"),
    [
        (
            "import callwright as cw\n@cw.hookimpl\ndef callwright_prompt(task, mesages): ...",
            "hook callwright_prompt",
            "there is no argument 'mesages'. Did you mean 'messages'? The hook has: task, messages",
        ),
        (
            "import callwright as cw\n@cw.hookimpl\ndef callwright_promt(task): ...",
            "hook callwright_promt",
            "there is no such hook. Did you mean callwright_prompt?",
        ),
        (
            "import callwright as cw\n@cw.hookimpl\ndef callwright_prompt(task, messages=None): ...",
            "hook callwright_prompt",
            "the argument 'messages' has a default, so it is never passed",
        ),
        ("import no_such_module", "import", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_check_says_what_does_not_fit_the_hooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, what: str, message: str
) -> None:
    (tmp_path / "misfit_plugin.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "misfit_plugin", raising=False)
    info = PluginInfo("misfit", module="misfit_plugin", error="plugin 'misfit' is broken")
    found = [one for one in check_plugin(load_plugins(entry_points=False), info) if one.level == "error"]
    assert [(one.what, one.message) for one in found] == [(what, message)]


def test_a_broken_plugin_warns_and_names_itself(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution whose plugin cannot be imported: the other commands work, with one line about it."""
    information = tmp_path / "acme-0.3.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 0.3\n")
    (information / "entry_points.txt").write_text("[callwright]\nacme = acme_plugin\n")
    (tmp_path / "acme_plugin.py").write_text("1 / 0\n")
    environment = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parent / 'support'}"}
    warning = (
        "plugin 'acme' (acme 0.3) is broken: ZeroDivisionError: division by zero. "
        "Run without it: callwright -p no:acme …"
    )
    process = start("greet", "you", env=environment)
    assert process.communicate() == ("hello you\n", f"warning: {warning}\n")
    # What was found is the same in this process, which has imported everything.
    monkeypatch.syspath_prepend(tmp_path)

    def here(*words: str) -> Result:
        return CliRunner().invoke(root_command, ["-p", "cli_fakes", *words], obj=App(), catch_exceptions=False)

    done = here("greet", "you")
    assert (done.stdout, done.stderr) == ("hello you\n", f"warning: {warning}\n")
    done = here("-p", "no:acme", "greet", "you")
    assert (done.stdout, done.stderr) == ("hello you\n", "")
    assert here("plugins", "show", "weather").exit_code == 2
    done = here("score", "x", "--corpus", "weather")
    assert done.exit_code == 2
    assert "There is no corpus named 'weather'" in done.stderr.splitlines()[-1]
    assert "ZeroDivisionError" in done.stderr.splitlines()[-1]
    done = here("doctor", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["problems"] == [warning]
    done = here("plugins", "check", "acme")
    assert done.exit_code == 1
    assert done.stdout.startswith("error: acme: import: ZeroDivisionError: division by zero\n")
