"""Runs in tau2's own interpreter, beside its source: what dialogues leave in a domain's databases.

A domain's databases are parsed once. Each evaluation forks them: rows are shared until somebody takes one, and then
that one is copied. To compare two forks is to compare the rows that either of them took.

Nothing of Callwright can be imported here. What is named by a leading ``tau2.`` is the source that the user points at.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib
import importlib.machinery
import json
import pickle
import sys
import types
from typing import Any

_domains: dict[str, Any] = {}
#: Environments as the references of tasks leave them, by domain and task; nobody changes them. The oldest go first.
_references: dict[tuple[str, str], Any] = {}
_MOST_REFERENCES = 1024
#: Dialogues that are led at the moment, by number: the domain's parsed databases, and their environment.
_sessions: dict[int, tuple[Any, Any]] = {}


class Rows(dict[Any, Any]):
    """A table that shares its rows with the parsed one until they are taken."""

    def __init__(self, rows: Any, packed: dict[Any, bytes]) -> None:
        super().__init__(rows)
        self.taken: set[Any] = set()
        #: Rows that were taken before, by any fork, packed: to unpack one is quicker than to copy it.
        self._packed = packed

    def __getitem__(self, key: Any) -> Any:
        row = super().__getitem__(key)
        if key not in self.taken:
            self.taken.add(key)
            packed = self._packed.get(key)
            if packed is None:
                packed = self._packed[key] = _packed(row)
            row = pickle.loads(packed)
            super().__setitem__(key, row)
        return row

    def __setitem__(self, key: Any, row: Any) -> None:
        self.taken.add(key)
        super().__setitem__(key, row)

    def get(self, key: Any, default: Any = None) -> Any:
        """The row, taken."""
        try:
            return self[key]
        except KeyError:
            return default

    def values(self) -> Any:
        """All rows, taken."""
        return [self[key] for key in self]

    def items(self) -> Any:
        """All rows with their keys, taken."""
        return [(key, self[key]) for key in self]

    def pop(self, key: Any, *default: Any) -> Any:
        """The row, taken out."""
        self.get(key)
        return super().pop(key, *default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The row, taken, or put there."""
        if key not in self:
            self[key] = default
        return self[key]

    def __deepcopy__(self, memo: Any) -> Any:
        return {key: copy.deepcopy(row, memo) for key, row in self.items()}


def _packed(value: Any) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


class Parsed:
    """A database as it was parsed, which nobody changes, and which of its fields are tables of models."""

    def __init__(self, db: Any) -> None:
        self.db = db
        self.fields = {name: getattr(db, name) for name in type(db).model_fields}
        self.tables = {
            name
            for name, value in self.fields.items()
            if isinstance(value, dict) and all(hasattr(type(row), "model_fields") for row in value.values())
        }

        self.packed: dict[str, dict[Any, bytes]] = {name: {} for name in self.tables}
        self.whole = {name: _packed(value) for name, value in self.fields.items() if name not in self.tables}

    def holds(self, name: str, key: Any, rows: Rows) -> bool:
        """Whether a row of a fork is the one that was parsed; also one that neither has."""
        first = self.fields[name]
        if key not in rows or key not in first:
            return key not in rows and key not in first
        return bool(dict.__getitem__(rows, key) == first[key])

    def fork(self) -> Any:
        """A database of its own that shares its rows until they are taken."""
        forked = self.db.model_copy()
        for name, value in self.fields.items():
            table = name in self.tables
            forked.__dict__[name] = Rows(value, self.packed[name]) if table else pickle.loads(self.whole[name])
        return forked


def evaluate(domain: str, task: dict[str, Any], calls: list[Any]) -> dict[str, Any]:
    """Whether the databases are those that the reference leaves, and whether the task's assertions hold.

    ``calls`` are ``[by, name, arguments, content]`` in their order, with the text that the dialogue recorded as the
    result (``None``: it is not compared). ``{"replayed": …}`` says which call gave another result: then the official
    program ends with an exception, and nothing is known.
    """
    made, models = _domain(domain), sys.modules["tau2.data_model.tasks"]
    key = domain, json.dumps(task, sort_keys=True)
    if key not in _references:
        while len(_references) >= _MOST_REFERENCES:
            del _references[next(iter(_references))]
        read = models.Task.model_validate(task)
        _references[key] = read, _reference(made, read), {}
    read, gold, texts = _references[key]
    if read.evaluation_criteria.actions is None and read.evaluation_criteria.env_assertions is None:
        return {"db": True, "assertions": True}  # nothing is asked of the databases
    predicted = _opened(made, read.initial_state)
    for by, name, arguments, content in calls:
        told = _replay(predicted, by, name, arguments, content)
        if told:
            return {"replayed": told}
    predicted.sync_tools()
    same = _same(predicted.tools, gold.tools, texts) and _same(predicted.user_tools, gold.user_tools, texts)
    asked = read.evaluation_criteria.env_assertions or []
    held = [predicted.run_env_assertion(one, raise_assertion_error=False) for one in asked]
    return {"db": same, "assertions": all(held)}


def evaluate_all(asked: list[Any]) -> list[dict[str, Any]]:
    """As :func:`evaluate`, of several ``[domain, task, calls]``. One that cannot be evaluated is ``{"raised": …}``."""
    found = []
    for one in asked:
        try:
            found.append(evaluate(*one))
        except Exception as error:
            found.append({"raised": f"{type(error).__name__}: {error}"})
    return found


# Dialogues that are led -----------------------------------------------------------------------------------------------


def describe(domain: str) -> dict[str, Any]:
    """The policy of a domain, and the tools of its agent and of its user as function definitions."""
    environment = _domain(domain)[0]
    theirs = [] if environment.user_tools is None else environment.get_user_tools()
    return {
        "policy": environment.get_policy(),
        "tools": [one.openai_schema for one in environment.get_tools()],
        "user_tools": [one.openai_schema for one in theirs],
    }


def begin(number: int, domain: str, task: dict[str, Any]) -> dict[str, Any]:
    """Open a dialogue in the state in which a task begins: ``{"digest"}``."""
    made = _domain(domain)
    read = sys.modules["tau2.data_model.tasks"].Task.model_validate(task)
    environment = _opened(made, read.initial_state)
    environment.sync_tools()
    _sessions[number] = made, environment
    return {"digest": _digest(made, environment)}


def call(number: int, by: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Make a call in a dialogue: ``{"content", "error", "digest"}``; ``{}`` for one that this process does not know."""
    if number not in _sessions:
        return {}
    made, environment = _sessions[number]
    calls = sys.modules["tau2.data_model.message"]
    answer = environment.get_response(calls.ToolCall(id="", name=name, arguments=arguments, requestor=by))
    environment.sync_tools()
    return {"content": answer.content, "error": bool(answer.error), "digest": _digest(made, environment)}


def end(number: int) -> None:
    """Forget a dialogue."""
    _sessions.pop(number, None)


def _digest(made: Any, environment: Any) -> str:
    """A hash of what both databases hold: of rows, those that are not as they were parsed."""
    _, parsed, user_parsed = made
    found = hashlib.sha256()
    for kit, known in ((environment.tools, parsed), (environment.user_tools, user_parsed)):
        if kit is None or known is None or kit.db is None:
            continue
        for name in type(kit.db).model_fields:
            value = getattr(kit.db, name)
            if isinstance(value, Rows):
                held = {
                    str(key): _text(_dumped(value, key) if key in value else None)
                    for key in value.taken | (known.fields[name].keys() - value.keys())
                    if not known.holds(name, key, value)
                }
                found.update(f"{name}{json.dumps(held, sort_keys=True)}".encode())
            else:
                found.update(f"{name}{_text(kit.db.model_dump(include={name}))}".encode())
    return found.hexdigest()[:32]


# Databases ------------------------------------------------------------------------------------------------------------


def _reference(made: Any, task: Any) -> Any:
    """The environment as the actions of the reference leave it. Its two sides are not told of one another between them,
    as in the official program.
    """
    gold = _opened(made, task.initial_state)
    gold.set_state(None, None, getattr(task.initial_state, "message_history", None) or [])
    for action in task.evaluation_criteria.actions or []:
        if gold._has_tool(action.name) and not gold._is_mutating_tool(action.name):
            continue  # reads leave nothing behind
        try:
            gold.make_tool_call(tool_name=action.name, requestor=action.requestor, **action.arguments)
        except Exception:  # some references hold calls that return errors
            continue
    return gold


def _domain(name: str) -> Any:
    """The module of a domain, and its databases as they are parsed."""
    if name not in _domains:
        _import_bare()
        module = importlib.import_module(f"tau2.domains.{name}.environment")
        for one in ("tau2.data_model.message", "tau2.data_model.tasks"):
            importlib.import_module(one)
        opened = getattr(module, "get_environment", None) or module.get_environment_manual_policy
        first = opened()
        user_db = first.user_tools.db if first.user_tools is not None else None
        _domains[name] = (first, Parsed(first.tools.db), Parsed(user_db) if user_db is not None else None)
    return _domains[name]


def _import_bare() -> None:
    """tau2 without what its package imports first: the clients of models, voices and tables are not needed here."""
    if "tau2" in sys.modules:
        return
    found = importlib.machinery.PathFinder.find_spec("tau2")
    if found is None or found.submodule_search_locations is None:
        raise ImportError("there is no package tau2 in this folder: name the folder src of its repository")
    package = types.ModuleType("tau2")
    package.__path__ = list(found.submodule_search_locations)
    sys.modules["tau2"] = package
    with contextlib.suppress(ImportError):
        importlib.import_module("loguru").logger.remove()  # which would write of every call


def _opened(made: Any, state: Any) -> Any:
    """A fresh environment in the task's initial state."""
    first, db, user_db = made
    environment = copy.copy(first)  # to construct another one is to read its policy again
    environment.tools = copy.copy(first.tools)
    environment.tools.db = db.fork()
    if user_db is not None:
        environment.user_tools = copy.copy(first.user_tools)
        environment.user_tools.db = user_db.fork()
    if state is not None:
        environment.set_state(state.initialization_data, state.initialization_actions, [])
    return environment


def _replay(environment: Any, by: str, name: str, arguments: Any, content: str | None) -> str:
    """Make a call of a dialogue again, if it changes anything; what is another result than the recorded one."""
    if not environment._has_tool(name) or not environment._is_mutating_tool(name):
        return ""
    calls = sys.modules["tau2.data_model.message"]
    response = environment.get_response(calls.ToolCall(id="", name=name, arguments=arguments, requestor=by))
    if content is None or _read(response.content) == _read(content):
        return ""
    return f"{name} gave {response.content[:300]} in place of {content[:300]}"


def _read(content: str) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content


def _same(one: Any, other: Any, texts: dict[Any, str]) -> bool:
    """Whether two forks of a database hold the same: the comparison of their digests, where they may differ at all.

    ``texts`` keeps those of the second, which nobody changes any more.
    """
    if one is None or other is None:
        return one is other
    left, right = one.db, other.db
    if left is None or right is None:
        return left is right
    for name in type(left).model_fields:
        mine, theirs = getattr(left, name), getattr(right, name)
        if not (isinstance(mine, Rows) and isinstance(theirs, Rows)):
            kept = id(right), name  # which lives as long as its reference
            if kept not in texts:
                texts[kept] = _text(right.model_dump(include={name}))
            if _text(left.model_dump(include={name})) != texts[kept]:
                return False
            continue
        if mine.keys() != theirs.keys():
            return False
        for key in (mine.taken | theirs.taken) & mine.keys():
            if _text(_dumped(mine, key)) != _text(_dumped(theirs, key)):
                return False
    return True


def _dumped(rows: Rows, key: Any) -> Any:
    row = dict.__getitem__(rows, key)
    return row.model_dump() if hasattr(row, "model_dump") else row


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
