"""Runs in tau2's own interpreter, beside its source: what dialogues leave in a domain's databases.

A domain's databases are parsed once, and each evaluation forks them (``forks``). What the reference of a task leaves is
found out once.

Nothing of Callwright can be imported here. What is named by a leading ``tau2.`` is the source that the user points at.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib
import importlib.machinery
import json
import sys
import types
from typing import Any

forks = importlib.import_module("forks")  # which lies beside this file, in a folder that is no package there

_domains: dict[str, Any] = {}
#: Names of tools, by class.
_names: dict[Any, frozenset[str]] = {}
#: What is known of tasks, by key: domain and task as they were told, and :class:`Reference` once somebody asked. The
#: oldest go first.
_references: dict[str, Any] = {}
_MOST_REFERENCES = 1024
#: Names of tools of which it is known whether they change anything: models write any.
_MOST_NAMES = 1024
#: Dialogues that are led at the moment, by number: the domain's parsed databases, and their environment.
_sessions: dict[int, tuple[Any, Any]] = {}


class Reference:
    """A task, how its databases are in the beginning and how its reference leaves them; nobody changes either."""

    def __init__(self, domain: str, stated: dict[str, Any]) -> None:
        self.made = _domain(domain)
        self.task = sys.modules["tau2.data_model.tasks"].Task.model_validate(stated)
        state, criteria = self.task.initial_state, self.task.evaluation_criteria
        #: What is done in each fork. Actions are done once; data may make one database of two, which no fork keeps.
        self.state = state if state is not None and state.initialization_data is not None else None
        if self.state is None and state is not None and state.initialization_actions:
            begins, (first, db, user_db, changes) = _opened(self.made, state), self.made
            theirs = None if user_db is None else forks.Parsed(begins.user_tools.db, user_db)
            self.made = first, forks.Parsed(begins.tools.db, db), theirs, changes
        #: Whether anything is asked of the databases.
        self.asks = criteria is not None and (criteria.actions is not None or criteria.env_assertions is not None)
        self.gold: Any = _reference(self.made, _opened(self.made, self.state), self.task) if self.asks else None
        self.texts: dict[Any, str] = {}

    def held_against(self, calls: list[Any]) -> dict[str, Any]:
        """What calls leave: see :func:`evaluate_all`."""
        if not self.asks:
            return {"db": True, "assertions": True}
        predicted = _opened(self.made, self.state)
        for by, name, arguments, content in calls:
            told = _replay(self.made, predicted, by, name, arguments, content)
            if told:
                return {"replayed": told}
        predicted.sync_tools()
        gold = self.gold
        same = _same(predicted.tools, gold.tools, self.texts) and _same(
            predicted.user_tools, gold.user_tools, self.texts
        )
        asked = self.task.evaluation_criteria.env_assertions or []
        held = [predicted.run_env_assertion(one, raise_assertion_error=False) for one in asked]
        return {"db": same, "assertions": all(held)}


def know(key: str, domain: str, task: str) -> None:
    """Make a task known by a key: what its reference leaves is found out when somebody asks for it."""
    while len(_references) >= _MOST_REFERENCES:
        del _references[next(iter(_references))]
    _references[key] = domain, task


def evaluate_all(text: str) -> str:
    """Hold dialogues, ``[[key, calls]]``, against the references of their tasks.

    ``calls`` are ``[by, name, arguments, content]`` in their order, with the text that the dialogue recorded as the
    result (``None``: it is not compared). For each there is ``{"db", "assertions"}``: whether the databases are those
    that the reference leaves, and whether the task's assertions hold; or ``{"replayed"}``, which call gave another
    result: then the official program ends with an exception, and nothing is known; or ``{"raised"}``, what the code
    raised; or ``{}`` for a task that this process does not know.
    """
    found: list[dict[str, Any]] = []
    for key, calls in json.loads(text):
        if key not in _references:
            found.append({})
            continue
        try:
            known = _references[key]
            if isinstance(known, tuple):
                known = _references[key] = Reference(known[0], json.loads(known[1]))
            found.append(known.held_against(calls))
        except Exception as error:
            found.append({"raised": f"{type(error).__name__}: {error}"})
    return json.dumps(found)


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
    _, parsed, user_parsed, _ = made
    found = hashlib.sha256()
    for kit, known in ((environment.tools, parsed), (environment.user_tools, user_parsed)):
        if kit is not None and known is not None and kit.db is not None:
            for name in type(kit.db).model_fields:
                found.update(f"{name}{known.difference(name, kit.db)}".encode())
    return found.hexdigest()[:32]


# Databases ------------------------------------------------------------------------------------------------------------


def _reference(made: Any, gold: Any, task: Any) -> Any:
    """The environment as the actions of the reference leave it. Its two sides are not told of one another between them,
    as in the official program.
    """
    gold.set_state(None, None, getattr(task.initial_state, "message_history", None) or [])
    for action in task.evaluation_criteria.actions or []:
        if not _changes(made, gold, action.name):
            continue  # reads leave nothing behind, and what is no tool neither
        try:
            gold.make_tool_call(tool_name=action.name, requestor=action.requestor, **action.arguments)
        except Exception:  # some references hold calls that return errors
            continue
    return gold


def _domain(name: str) -> Any:
    """The first environment of a domain, its databases as they are parsed, and which tools change anything."""
    if name not in _domains:
        _import_bare()
        module = importlib.import_module(f"tau2.domains.{name}.environment")
        for one in ("tau2.data_model.message", "tau2.data_model.tasks"):
            importlib.import_module(one)
        opened = getattr(module, "get_environment", None) or module.get_environment_manual_policy
        first = opened()
        user_db = first.user_tools.db if first.user_tools is not None else None
        _domains[name] = first, forks.Parsed(first.tools.db), forks.Parsed(user_db) if user_db is not None else None, {}
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
    first, db, user_db, _ = made
    environment = copy.copy(first)  # to construct another one is to read its policy again
    environment.tools = _kit(first.tools, db)
    if user_db is not None:
        environment.user_tools = _kit(first.user_tools, user_db)
    if state is not None:
        for kit in (environment.tools, environment.user_tools) if state.initialization_data is not None else ():
            for field in () if kit is None or kit.db is None else type(kit.db).model_fields:
                getattr(kit.db, field)  # it is dumped as a whole
        environment.set_state(state.initialization_data, state.initialization_actions, [])
    return environment


def _kit(first: Any, parsed: Any) -> Any:
    """The tools of one side over a fork of its database."""
    kit = copy.copy(first)
    kit.db = parsed.fork()
    kind = type(kit)
    if kind not in _names:
        toolkit = sys.modules.get("tau2.environment.toolkit")
        usual = toolkit is not None and kind.use_tool is toolkit.ToolKitBase.use_tool
        _names[kind] = frozenset(kit._func_tools) if usual else frozenset()
    if names := _names[kind]:

        def use_tool(tool_name: str, **arguments: Any) -> Any:
            if tool_name in names:  # without a list of all of them, bound, which takes longer than most calls
                return getattr(kit, tool_name)(**arguments)
            return kind.use_tool(kit, tool_name=tool_name, **arguments)

        kit.use_tool = use_tool
    return kit


def _changes(made: Any, environment: Any, name: str) -> bool:
    """Whether there is a tool of this name that changes something."""
    changes: dict[str, bool] = made[3]
    if name not in changes:
        if len(changes) >= _MOST_NAMES:
            changes.clear()
        changes[name] = bool(environment._has_tool(name) and environment._is_mutating_tool(name))
    return changes[name]


def _replay(made: Any, environment: Any, by: str, name: str, arguments: Any, content: str | None) -> str:
    """Make a call of a dialogue again, if it changes anything; what is another result than the recorded one."""
    if not _changes(made, environment, name):
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
    return all(forks.same(name, left, right, texts) for name in type(left).model_fields)
