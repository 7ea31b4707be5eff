"""A small source of tau2's shape: a shop, and ``retail``, which is the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from callwright_plugins.tau2.source import Tau2Source

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
import inspect
import json
from types import SimpleNamespace


def definition(function):
    names = [name for name in inspect.signature(function).parameters]
    parameters = {"type": "object", "properties": {name: {} for name in names}, "required": names}
    return SimpleNamespace(
        openai_schema={"type": "function", "function": {"name": function.__name__, "parameters": parameters}}
    )


class Environment:
    def __init__(self, tools, user_tools=None):
        self.tools, self.user_tools = tools, user_tools

    def _has_tool(self, name):
        return name in ("buy", "rename", "drop", "count", "stock", "die")

    def _is_mutating_tool(self, name):
        return name != "count"

    def make_tool_call(self, tool_name, requestor="assistant", **arguments):
        return getattr(self.tools, tool_name)(**arguments)

    def get_response(self, call):
        try:
            found = json.dumps(self.make_tool_call(call.name, **call.arguments))
            return SimpleNamespace(content=found, error=False)
        except Exception as error:
            return SimpleNamespace(content=f"Error: {error}", error=True)

    def sync_tools(self):
        pass

    def get_policy(self):
        return "Sell what there is."

    def get_tools(self):
        return [definition(getattr(self.tools, name)) for name in ("buy", "rename", "drop", "count", "stock", "die")]

    def set_state(self, data, actions, history):
        for action in actions or []:
            self.make_tool_call(action.name, **action.arguments)

    def run_env_assertion(self, assertion, raise_assertion_error):
        return getattr(self.tools, assertion.func_name)(**assertion.arguments)
""",
    "domains/__init__.py": "",
    "domains/retail/__init__.py": "",
    "domains/retail/environment.py": "from tau2.domains.shop.environment import get_environment\n",
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

    def die(self):
        os._exit(1)

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
