"""The conformance kit itself: named checks, all at once or one by one, expected failures, no need of pytest."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import callwright as cw
from callwright import testing
from callwright.errors import UnknownName
from callwright.plugins import KINDS
from callwright.testing import check_component, check_environment, check_parser, checks_for, parametrize_with_checks
from callwright.testing.sample import SHOP, SampleForm


class Recording:
    """An environment that remembers which scenarios were opened."""

    name, pure, tools = "recording", False, SHOP.tools

    def __init__(self, opened: list[str]) -> None:
        self.opened = opened

    def open(self, scenario: str = "", seed: int = 0) -> cw.Session:
        self.opened.append(scenario)
        return SHOP.open(scenario, seed)


class Lossy(SampleForm):
    """A form with two defects: it forgets thoughts and teaches nothing."""

    def parse(self, text: str) -> cw.Program | cw.ParseFailure:
        found = super().parse(text)
        return cw.Program(found.calls, found.returns) if isinstance(found, cw.Program) else found

    def instructions(self) -> str:
        return ""


DEFECTS = {"check_thought": "forgets thoughts", "check_instructions": "teaches nothing"}


# One test for each check, as the documentation shows it; the two defects are xfailed strictly.
@parametrize_with_checks("parser", expected_failures=DEFECTS)
def test_one_by_one(check: testing.Check) -> None:
    check(Lossy())


def test_all_at_once() -> None:
    check_parser(SampleForm())
    with pytest.raises(ExceptionGroup, match="parser 'sample' does not conform") as caught:
        check_parser(Lossy())
    failures = caught.value.exceptions
    assert [type(failure) for failure in failures] == [AssertionError, AssertionError]
    notes = [failure.__notes__[0] for failure in failures]
    assert notes[0] == "in check_thought: The thought is rendered and read back."
    assert notes[1].startswith("in check_instructions: ")
    assert "a model would not know the form" in str(failures[1])


def test_expected_failures_are_kept_true() -> None:
    check_parser(Lossy(), expected_failures=DEFECTS)
    with pytest.raises(ExceptionGroup) as caught:
        check_parser(SampleForm(), expected_failures={"check_thought": "forgets thoughts"})
    (failure,) = caught.value.exceptions
    assert str(failure) == "check_thought passes, though it is expected to fail: forgets thoughts"
    with pytest.raises(UnknownName, match=r"no check named 'check_thoughts'. Did you mean 'check_thought'"):
        check_parser(Lossy(), expected_failures={"check_thoughts": "x"})
    with pytest.raises(cw.UsageError, match="the expected failure of check_thought needs a reason"):
        parametrize_with_checks("parser", expected_failures={"check_thought": ""})


def test_checks_have_names_and_take_what_they_are_told() -> None:
    checks = checks_for("environment", scenarios=["monday"])
    assert str(checks[0]) == checks[0].name == checks[0].__name__ == "check_attributes"
    opened: list[str] = []

    check_environment(Recording(opened), scenarios=["monday", "tuesday"])
    assert set(opened) == {"monday", "tuesday"}
    with pytest.raises(UnknownName, match=r"no argument of the environment checks named 'scenario'"):
        checks_for("environment", scenario="monday")
    with pytest.raises(UnknownName, match=r"no kind of component named 'parsers'. Did you mean 'parser'"):
        checks_for("parsers")


def test_algorithms_are_checked_by_their_own_checks() -> None:
    pytest.importorskip("torch", reason="algorithms need torch")
    from callwright.testing.algorithms import ALGORITHM_CHECKS

    assert [check.name for check in checks_for("algorithm")] == [
        *(check.__name__ for check in ALGORITHM_CHECKS),
        "check_capabilities",
    ]
    check_component("algorithm", cw.default_registry().create("algorithm", "grpo"))


def test_every_public_name_is_there() -> None:
    for name in testing.__all__:
        assert getattr(testing, name) is not None
    assert testing.__all__ == sorted(testing.__all__)


WITHOUT = """
import sys
for name in ("pytest", "hypothesis", "torch", "numpy", "callwright_plugins"):
    sys.modules[name] = None  # importing it now raises ImportError
import callwright.testing as kit
from callwright.testing.sample import SHOP, SampleForm
kit.check_parser(SampleForm())
kit.check_environment(SHOP)
print(len(kit.checks_for("reward component")))
"""


def test_the_kit_needs_neither_pytest_nor_hypothesis() -> None:
    found = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("11\n", "")


def test_importing_the_kit_imports_nothing_heavy() -> None:
    code = (
        "import sys, callwright.testing; print(sorted({'torch', 'pytest', 'hypothesis', 'numpy'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_the_documentation_lists_every_check(root: Path) -> None:
    page = (root / "docs" / "conformance.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(check_\w+)` \| (.+) \|$", page, re.MULTILINE)
    summaries = [
        (check.name, re.sub(r":class:`(?:callwright\.)?([\w.]+)`", r"`\1`", check.summary).replace("``", "`"))
        for kind in KINDS
        for check in checks_for(kind)
    ]
    assert sorted(documented) == sorted(summaries)


def test_the_code_of_the_documentation_runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (root / "docs" / "conformance.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^(<!-- not run[^\n]*\n)?```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert [bool(note) for note, _ in blocks] == [False, False, True, False, False, True]
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # tools are pickled by the name of their module
    for note, block in blocks:
        if not note:
            exec(compile(block, "docs/conformance.md", "exec"), module.__dict__)
