"""The page about the small world tells the truth: its examples run, its tables name what there is."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import attrs
import pytest

from callwright.tools.spec import ToolSpec
from callwright_plugins.toolworld.annotator import Annotator
from callwright_plugins.toolworld.environment import ToolWorld
from callwright_plugins.toolworld.tools import TWINS


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "toolworld.md").read_text("utf-8")


def test_the_examples_run(page: str) -> None:
    parsed = doctest.DocTestParser().get_doctest(page, {}, "docs/toolworld.md", "docs/toolworld.md", 0)
    assert len(parsed.examples) > 10
    report: list[str] = []
    failed, _ = doctest.DocTestRunner().run(parsed, out=report.append)
    assert failed == 0, "".join(report)


def test_the_table_of_tools(page: str, world: ToolWorld) -> None:
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| `[A-Z].*$", page, re.MULTILINE)]

    def row(name: str, spec: ToolSpec) -> list[str]:
        field = [spec.result_field] if spec.result_field else []
        return [name, *TWINS.get(name, ()), *spec.parameters["properties"], *field]

    assert rows == [row(name, spec) for name, spec in world.tools.items()]


def test_the_table_of_mistakes(page: str) -> None:
    rows = dict(re.findall(r"^\| `([a-z]+)` \| ([\d.]+) \|", page, re.MULTILINE))
    defaults = {field.name: field.default for field in attrs.fields(Annotator) if isinstance(field.default, float)}
    assert {name: float(default) for name, default in rows.items()} == {
        name: default for name, default in defaults.items() if name != "simple"
    }
    assert f"`simple` ({defaults['simple']})" in page
