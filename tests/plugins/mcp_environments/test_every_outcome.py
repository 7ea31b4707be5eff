"""Outcomes of the twenty environments: the documented codes are those of the code, and writers are never empty."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.environments import StatefulEnvironment
from callwright_plugins import mcp_environments

_KINDS = {"warn": "partial", "Refused": "refused"}
#: Codes that are not written where they are used: those that the named function may mean.
_NAMED = {"wrong": {"BAD_PIN", "BAD_OTP"}, "problems[0].code": {""}, "denied[0].code": {""}}


def in_the_source() -> set[tuple[str, str, str]]:
    found = set()
    folder = Path(str(mcp_environments.__file__)).parent
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _KINDS:
                code = node.args[0]
                codes = {code.value} if isinstance(code, ast.Constant) else _NAMED[ast.unparse(code)]
                found |= {(path.parent.name, str(one), _KINDS[name]) for one in codes}
    return found


def in_the_documentation() -> list[tuple[str, str, str, list[str]]]:
    page = Path(__file__).parents[3] / "docs" / "outcomes.md"
    row = re.compile(r"^\| `(\w+)` \| (.+?) \| `(partial|refused)` \| (.+?) \|", re.MULTILINE)
    lines = row.findall(page.read_text(encoding="utf-8"))
    return [
        (name, code.strip("`") if code.startswith("`") else "", kind, re.findall(r"`(\w+)`", tools))
        for name, code, kind, tools in lines
    ]


def test_the_documentation_has_the_kind_of_every_code_that_there_is() -> None:
    documented = in_the_documentation()
    assert {(name, code, kind) for name, code, kind, _ in documented} == in_the_source()
    assert len({(name, code) for name, code, _, _ in documented}) == len(documented), "a code with two kinds"
    for name, code, _, tools in documented:
        assert tools
        environment = cw.environment(name)
        for tool in tools:
            assert tool in environment.tools, f"{name} has no tool {tool} ({code})"
            assert not (code.startswith("BAD_") and environment.tools[tool].read_only)


def returning_items() -> list[tuple[str, str, bool]]:
    """Tools whose results are no pages and have a list of items, and whether they only read."""
    found = []
    for name in mcp_environments.TOOLS:
        for tool, spec in cw.environment(name).tools.items():
            properties = (spec.result or {}).get("properties", {})
            if "items" in properties and "next_cursor" not in properties:
                found.append((name, tool, spec.read_only))
    return found


def test_objects_with_items_are_no_pages() -> None:
    found = returning_items()
    writers = [(name, tool) for name, tool, reads in found if not reads]
    assert ("food_delivery", "start_basket") in writers
    assert len(found) >= 14


def test_a_new_basket_is_no_empty_result() -> None:
    environment = cw.environment("food_delivery")
    assert isinstance(environment, StatefulEnvironment)
    session = environment.open()
    address = session.call("list_addresses", {}).value["items"][0]["address_id"]
    restaurants = session.call("search_restaurants", {"limit": 100}).value["items"]
    calls = [{"restaurant_id": one["restaurant_id"], "address_id": address} for one in restaurants]
    outcomes = [session.fork().call("start_basket", call) for call in calls]
    started = [outcome for outcome in outcomes if outcome.executed]
    assert started
    for outcome in started:
        assert outcome.kind == "ok"
        assert outcome.value["items"] == []


def test_a_view_of_an_empty_cart_is_a_value() -> None:
    session = cw.environment("shopping").open()
    outcome = session.call("clear_cart", {})
    assert outcome.kind in ("ok", "execution_error")
    viewed = session.call("view_cart", {})
    assert viewed.kind == "ok"
    assert viewed.value["items"] == []


@pytest.mark.parametrize(("name", "tool", "reads"), returning_items())
def test_none_of_them_is_ever_empty(name: str, tool: str, reads: bool) -> None:
    from callwright.environments.calling import is_nothing

    properties: dict[str, Any] = dict((cw.environment(name).tools[tool].result or {})["properties"])
    assert not is_nothing(dict.fromkeys(properties) | {"items": []})
