"""What a dialogue leaves in tau2's databases: over a small source of the same shape, and over tau2's own where it is.

``CALLWRIGHT_TAU2_SOURCE`` is the repository of tau2-bench, ``CALLWRIGHT_TAU2_PYTHON`` an interpreter of 3.12 that has
its base dependencies. Then references of all given tasks are replayed.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callwright.errors import InfrastructureFailure, UsageError
from callwright_plugins.tau2.scoring import Call, Criteria, score
from callwright_plugins.tau2.source import Left, Tau2Source

#: A source with the parts of tau2's that are asked: tasks, calls, an environment over a database with a table.
SHOP = {
    "__init__.py": "raise ImportError('clients of models are not installed')\n",
    "data_model/__init__.py": "",
    "data_model/tasks.py": """
from pydantic import BaseModel


class Action(BaseModel):
    name: str
    arguments: dict
    requestor: str = "assistant"


class Assertion(BaseModel):
    func_name: str
    arguments: dict


class Criteria(BaseModel):
    actions: list[Action] | None = None
    env_assertions: list[Assertion] | None = None


class State(BaseModel):
    initialization_data: dict | None = None
    initialization_actions: list[Action] | None = None
    message_history: list | None = None


class Task(BaseModel):
    id: str
    initial_state: State | None = None
    evaluation_criteria: Criteria
""",
    "data_model/message.py": """
from pydantic import BaseModel


class ToolCall(BaseModel):
    id: str
    name: str
    arguments: dict
    requestor: str = "assistant"
""",
    "environment/__init__.py": "",
    "environment/environment.py": """
import json
from types import SimpleNamespace


class Environment:
    def __init__(self, tools, user_tools=None):
        self.tools, self.user_tools = tools, user_tools

    def _has_tool(self, name):
        return name in ("buy", "rename", "drop", "count", "stock")

    def _is_mutating_tool(self, name):
        return name != "count"

    def make_tool_call(self, tool_name, requestor="assistant", **arguments):
        return getattr(self.tools, tool_name)(**arguments)

    def get_response(self, call):
        try:
            return SimpleNamespace(content=json.dumps(self.make_tool_call(call.name, **call.arguments)))
        except Exception as error:
            return SimpleNamespace(content=f"Error: {error}")

    def sync_tools(self):
        pass

    def set_state(self, data, actions, history):
        for action in actions or []:
            self.make_tool_call(action.name, **action.arguments)

    def run_env_assertion(self, assertion, raise_assertion_error):
        return getattr(self.tools, assertion.func_name)(**assertion.arguments)
""",
    "domains/__init__.py": "",
    "domains/shop/__init__.py": "",
    "domains/shop/environment.py": """
import os
from pathlib import Path

from pydantic import BaseModel
from tau2.environment.environment import Environment


class Item(BaseModel):
    name: str
    price: float
    options: dict[str, str] = {}


class DB(BaseModel):
    items: dict[str, Item]
    sold: list[str]


class Tools:
    def __init__(self, db):
        self.db = db

    def buy(self, item):
        if item not in self.db.items:
            raise ValueError(f"no {item}")
        self.db.sold.append(item)
        return self.db.items[item].price

    def rename(self, item, name):
        self.db.items[item].name = name
        self.db.items[item].options["was"] = "renamed"

    def drop(self, item):
        return self.db.items.pop(item).name

    def stock(self, item, price):
        self.db.items[item] = Item(name=item, price=price)

    def count(self):
        return len(self.db.items)

    def total(self, expected):
        return sum(item.price for item in self.db.items.values()) == expected


def get_environment(db=None):
    if db is None:
        path = Path(os.environ["TAU2_DATA_DIR"]) / "tau2/domains/shop/db.json"
        with (path.parent / "opened").open("a") as opened:
            opened.write("x")
        db = DB.model_validate_json(path.read_text())
    return Environment(Tools(db))
""",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tau2Source, Path]]:
    folder = tmp_path_factory.mktemp("tau2")
    for name, text in SHOP.items():
        path = folder / "src/tau2" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    domain = folder / "data/tau2/domains/shop"
    domain.mkdir(parents=True)
    items = {f"i{number}": {"name": f"item {number}", "price": number} for number in range(20)}
    (domain / "db.json").write_text(json.dumps({"items": items, "sold": []}))
    with Tau2Source(folder, folder / "data") as source:
        yield source, domain


def task(*actions: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    made = [{"name": name, "arguments": arguments} for name, arguments in actions]
    return {"id": "a", "evaluation_criteria": {"actions": made, **more.pop("criteria", {})}, **more}


def calls(*made: tuple[str, dict[str, Any]]) -> list[Call]:
    return [Call(name, arguments) for name, arguments in made]


BUY, NAME = ("buy", {"item": "i1"}), ("rename", {"item": "i2", "name": "new"})
DROP, STOCK = ("drop", {"item": "i3"}), ("stock", {"item": "x", "price": 1.0})


@pytest.mark.parametrize(
    ("wanted", "made", "same"),
    [
        ([BUY], [BUY], True),
        ([BUY], [], False),
        ([], [BUY], False),
        ([BUY, NAME], [NAME, BUY], True),
        ([NAME], [("rename", {"item": "i2", "name": "old"}), NAME], True),
        ([NAME], [("rename", {"item": "i2", "name": "old"})], False),
        ([NAME], [("rename", {"item": "i4", "name": "new"})], False),
        ([DROP], [DROP], True),
        ([DROP], [], False),
        ([], [DROP], False),
        ([STOCK], [STOCK], True),
        ([STOCK], [], False),
        ([STOCK], [("stock", {"item": "x", "price": 2.0})], False),
        ([], [STOCK, ("drop", {"item": "x"})], True),
        ([("stock", {"item": "i1", "price": 1.0})], [("stock", {"item": "i1", "price": 1.0})], True),
        ([BUY], [("count", {}), BUY, ("nothing", {})], True),  # reads and unknown tools are not made
        ([BUY], [("buy", {"item": "none"}), BUY], True),  # an error leaves nothing
        ([("buy", {"item": "none"}), BUY], [BUY], True),  # nor does one of the reference
    ],
)
def test_databases_are_compared_by_what_was_changed(
    wanted: Any, made: Any, same: bool, shop: tuple[Tau2Source, Path]
) -> None:
    source, _ = shop
    for _ in range(2):  # the second time over the same parsed database, and with the reference that is kept
        assert source.left("shop", task(*wanted), calls(*made)) == Left(same, True)


def test_the_database_is_parsed_once(shop: tuple[Tau2Source, Path]) -> None:
    source, domain = shop
    for number in range(5):
        source.left("shop", task(("buy", {"item": f"i{number}"})), calls(BUY))
    assert (domain / "opened").read_text() == "x"


def test_a_task_begins_where_it_says_and_its_assertions_are_asked(shop: tuple[Tau2Source, Path]) -> None:
    source, _ = shop
    begun = {"initialization_actions": [{"name": "stock", "arguments": {"item": "y", "price": 100.0}}]}
    asked = {"env_assertions": [{"func_name": "total", "arguments": {"expected": 290.0}}]}
    assert source.left("shop", task(criteria=asked, initial_state=begun), []) == Left(True, True)
    assert source.left("shop", task(criteria=asked), []) == Left(True, False)


def test_a_dialogue_that_gives_other_results_is_none_of_this_version(shop: tuple[Tau2Source, Path]) -> None:
    source, _ = shop
    assert source.left("shop", task(BUY), calls(BUY), ["1.0"]) == Left(True, True)
    assert source.left("shop", task(BUY), calls(BUY), ["1"]) == Left(True, True)  # read as JSON
    with pytest.raises(InfrastructureFailure, match=r"cannot be replayed: buy gave 1\.0 in place of 2"):
        source.left("shop", task(BUY), calls(BUY), ["2"])
    with pytest.raises(InfrastructureFailure, match="tau2's code"):
        source.left("no_such_domain", task(BUY), calls(BUY))


def test_folders_that_are_something_else_are_refused(shop: tuple[Tau2Source, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not the source of tau2-bench"):
        Tau2Source(tmp_path, tmp_path)
    with pytest.raises(UsageError, match="has no tau2/domains"):
        Tau2Source(shop[1].parents[3], tmp_path)


@pytest.mark.parametrize("domain", ["retail", "airline", "telecom"])
def test_references_of_the_given_tasks_are_right(domain: str, official_data: Path, tmp_path: Path) -> None:
    package, python = (os.environ.get(f"CALLWRIGHT_TAU2_{name}") for name in ("SOURCE", "PYTHON"))
    if not package or not python:
        pytest.skip("needs tau2's source and an interpreter for it (CALLWRIGHT_TAU2_SOURCE, CALLWRIGHT_TAU2_PYTHON)")
    held = tmp_path / "tau2/domains" / domain
    held.mkdir(parents=True)
    for path in (official_data / "tau2" / domain).iterdir():
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        name = path.name.removesuffix(".gz").replace("db.rebuilt_from_tau_bench", "db")
        (held / name).write_bytes(data)
    files = sorted(held.glob("tasks*.json"))
    with Tau2Source(package, tmp_path, python) as source:
        for file in files:
            for one in json.loads(file.read_text("utf-8")):
                criteria = Criteria.of(one)
                assert criteria is not None
                made = [
                    Call(call["name"], call["arguments"], call.get("requestor", "assistant"))
                    for call in criteria.actions
                ]
                left = source.left(domain, one, made)
                scored = score(criteria, made, criteria.communicate, db=left.db, assertions=left.assertions)
                assert scored.reward == 1.0, (file.name, one["id"], scored)
                assert set(scored.left_out) <= {"NL_ASSERTION"}
