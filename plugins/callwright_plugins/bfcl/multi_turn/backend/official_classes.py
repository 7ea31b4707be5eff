"""BFCL's classes, called and compared in a process of their own: the gold side of an entry is kept.

It stands alone: only the standard library and the unpacked wheel. Requests and answers are texts of JSON, so that
nothing is walked twice on its way.

The wire form of a call is ``[name, arguments, named]`` with arguments that are JSON, ``{"tree": …}`` for any other
expression (see :func:`evaluated`), or ``{"error": text}`` for one that Python cannot read.
"""

from __future__ import annotations

import builtins
import gc
import hashlib
import inspect
import io
import json
import operator
import pickle
import random
import re
from collections import Counter
from importlib import import_module
from typing import Any

_PACKAGE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
#: Class -> its module in the wheel.
MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
#: The one without a scenario.
STATELESS = "MathAPI"
#: Functions of Python itself that a call may name. The official checker would call any.
HARMLESS = {
    name: getattr(builtins, name)
    for name in ("abs", "bool", "dict", "float", "int", "len", "list", "max", "min", "set", "str", "sum", "tuple")
}
_MOST_SHOWN = 300
_LONGEST = 100_000
_ABSENT = object()
#: Of an object without words of its own: another one in each process, and evidence is the same wherever it is judged.
_ADDRESS = re.compile(" at 0x[0-9a-fA-F]+")
_classes: dict[str, Any] = {}
_methods: dict[str, list[str]] = {}
_entries: dict[str, Entry] = {}
_sessions: dict[int, tuple[Entry, dict[str, Any]]] = {}


def _class(name: str) -> Any:
    if name not in _classes:
        _classes[name] = getattr(import_module(_PACKAGE + "." + MODULES[name]), name)
        found = inspect.getmembers(_classes[name](), predicate=inspect.ismethod)
        _methods[name] = [method for method, _ in found if not method.startswith("_")]
    return _classes[name]


def describe() -> str:
    """The public methods of every class: ``{class: [name, …]}``."""
    for name in MODULES:
        _class(name)
    return json.dumps(_methods)


class Entry:
    """What one entry begins with, and what its gold calls come to: results and states of every turn, computed once."""

    def __init__(self, stated: dict[str, Any]) -> None:
        self.long = bool(stated["long_context"])
        self.classes = [(name, _class(name)) for name in stated["classes"]]
        self.owners = {method: name for name, _ in self.classes for method in _methods[name]}
        self.begins: list[tuple[str, Any, bytes]] = []
        for name, kind in self.classes:
            instance = kind()
            if name != STATELESS:
                instance._load_scenario(stated["config"].get(name, {}), long_context=self.long)
            self.begins.append((name, kind, _packed(vars(instance))))
        instances = self.fresh()
        methods = Bound(self, instances)
        kept = States(instances)
        self.turns: list[tuple[bool, Counter[str], list[tuple[str, dict[str, Any]]]]] = []
        for calls in stated["gold"]:
            results = Counter(result_of(call, methods) for call in calls)
            self.turns.append((bool(calls), results, kept.now() if calls else []))

    def fresh(self) -> dict[str, Any]:
        """New instances in the state in which the entry begins."""
        made = {}
        for name, kind, state in self.begins:
            made[name] = one = object.__new__(kind)
            vars(one).update(pickle.loads(state))  # half of what it takes to load the scenario again
        return made


class Generator:
    """A generator of random numbers that is made when somebody draws: to copy one takes longer than most calls."""

    def __init__(self, state: Any) -> None:
        self._begins = state

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pickle and deepcopy ask for what an object of its own would have
            raise AttributeError(name)
        if name == "_made":
            self._made = random.Random()
            self._made.setstate(self._begins)
            return self._made
        return getattr(self._made, name)


_generators: list[Any] = []


def _generator(number: int) -> Generator:
    return Generator(_generators[number])


class _Packer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if type(value) is not random.Random:
            return NotImplemented
        state = value.getstate()
        if state not in _generators:
            _generators.append(state)
        return _generator, (_generators.index(state),)


def _packed(state: dict[str, Any]) -> bytes:
    into = io.BytesIO()
    _Packer(into, pickle.HIGHEST_PROTOCOL).dump(state)
    return into.getvalue()


class States:
    """Copies of what the state check reads of some instances. One that has not changed is copied once."""

    def __init__(self, instances: dict[str, Any]) -> None:
        self.instances = instances
        self.last: dict[str, tuple[bytes, dict[str, Any]]] = {}

    def now(self) -> list[tuple[str, dict[str, Any]]]:
        """The state of each class at this moment."""
        for name, instance in self.instances.items():
            packed = pickle.dumps(public(instance), -1)
            if name not in self.last or self.last[name][0] != packed:
                self.last[name] = packed, pickle.loads(packed)  # a third of what deepcopy takes
        return [(name, state) for name, (_, state) in self.last.items()]


class Bound:
    """The methods of an entry's instances by name."""

    def __init__(self, entry: Entry, instances: dict[str, Any]) -> None:
        self.owners, self.instances = entry.owners, instances

    def __call__(self, name: str) -> Any:
        """A method by its name, else a function of Python's own. Raises :class:`NameError`."""
        owner = self.owners.get(name)
        return harmless(name) if owner is None else getattr(self.instances[owner], name)


def harmless(name: str) -> Any:
    """A function of Python's own. Raises :class:`NameError` as Python does."""
    if name not in HARMLESS:
        raise NameError(f"name {name!r} is not defined")
    return HARMLESS[name]


def public(instance: Any) -> dict[str, Any]:
    """The attributes that the state check reads."""
    return {name: value for name, value in vars(instance).items() if not name.startswith("_")}


# Calls ----------------------------------------------------------------------------------------------------------------


def result_of(call: Any, methods: Bound) -> str:
    """What one call comes to, as the text that the official checker compares. An exception is a result, too."""
    try:
        if type(call) is list:
            found = methods(call[0])(*call[1], **call[2])
        elif "error" in call:
            return "Error during execution: " + str(call["error"])
        else:
            found = evaluated(call["tree"], methods)
        if type(found) is str:
            return found
        if type(found) is dict:
            try:
                return json.dumps(found)
            except Exception:  # of a value that JSON does not know, such as mpmath's
                return str(found)
        return str(found)
    except MemoryError:
        raise  # the process has used up what it may: nothing is known of the call
    except Exception as error:
        return f"Error during execution: {error!s}"


def evaluated(tree: Any, methods: Bound) -> Any:
    """The value of an expression: a scalar, or a list that begins with what it is.

    ``["call", name, [arguments], [[name, argument], …]]``, the same as ``"builtin"``; ``["name", text]``;
    ``["list"|"tuple"|"set", items]``; ``["dict", [[key, value], …]]``; ``["int"|"bytes", hexadecimal]``;
    ``["complex", real, imaginary]``; ``["ellipsis"]``; ``["sign", operator, value]``; ``["binary", operator, left,
    right]``; ``["error", text]``. Everything is looked up in the order in which Python does, a function before its
    arguments.
    """
    if type(tree) is not list:
        return tree
    kind = tree[0]
    if kind in ("call", "builtin"):
        function = methods(tree[1]) if kind == "call" else harmless(tree[1])
        given = [evaluated(one, methods) for one in tree[2]]
        return function(*given, **{name: evaluated(one, methods) for name, one in tree[3]})
    if kind == "name":
        if not hasattr(builtins, tree[1]):
            raise NameError(f"name {tree[1]!r} is not defined")
        return getattr(builtins, tree[1])  # it is handed on, never called
    if kind in ("list", "tuple", "set"):
        return {"list": list, "tuple": tuple, "set": set}[kind](evaluated(one, methods) for one in tree[1])
    if kind == "dict":
        return {evaluated(key, methods): evaluated(value, methods) for key, value in tree[1]}
    if kind == "int":
        return int(tree[1], 16)
    if kind == "bytes":
        return bytes.fromhex(tree[1])
    if kind == "complex":
        return complex(tree[1], tree[2])
    if kind == "ellipsis":
        return ...
    if kind == "sign":
        return _SIGNS[tree[1]](evaluated(tree[2], methods))
    if kind == "binary":
        return _arithmetic(tree[1], evaluated(tree[2], methods), evaluated(tree[3], methods))
    raise ValueError(tree[1])


_SIGNS: dict[str, Any] = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}
_BINARY: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}


def _arithmetic(sign: str, left: Any, right: Any) -> Any:
    """Arithmetic whose result stays small. Raises :class:`ValueError` for what would not."""
    if sign == "**" and (abs(left) > 10**6 or abs(right) > 1000):
        raise ValueError("the power is too large")
    if sign == "*" and _product(left, right) > _LONGEST:
        raise ValueError("the product is too large")
    if sign == "%" and isinstance(left, (str, bytes)):
        raise ValueError("texts are not formatted here")
    return _BINARY[sign](left, right)


def _product(left: Any, right: Any) -> int:
    """How many items, or bits of a whole number, a product has."""
    if hasattr(left, "__len__"):
        left, right = right, left
    if not isinstance(left, int):
        return 0
    if isinstance(right, int):
        return left.bit_length() + right.bit_length()
    return abs(left) * len(right) if hasattr(right, "__len__") else 0


# Answers --------------------------------------------------------------------------------------------------------------


def prepare(text: str) -> str:
    """Make entries known: ``[{"key", "classes", "config", "long_context", "gold"}]``. Returns nothing of use."""
    for stated in json.loads(text):
        _entries[stated["key"]] = Entry(stated)
    gc.freeze()  # what is kept need not be looked through again at every collection
    return "{}"


def judge(text: str) -> str:
    """Hold answers, ``[{"key", "turns"}]`` (turns, steps, calls), against the gold side of their entries.

    ``[{"valid"}]``, with ``error_type``, ``turn`` and ``about`` where it is false; ``{}`` for an entry that this
    process does not know. There are as many turns as in the gold side.
    """
    found = []
    for asked in json.loads(text):
        entry = _entries.get(asked["key"])
        found.append({} if entry is None else _judged(entry, asked["turns"]))
    return json.dumps(found)


def _judged(entry: Entry, turns: list[Any]) -> dict[str, Any]:
    instances = entry.fresh()
    methods = Bound(entry, instances)
    results: Counter[str] = Counter()
    for turn, (steps, (checked, wanted, states)) in enumerate(zip(turns, entry.turns)):  # noqa: B905
        for step in steps:
            for call in step:
                results[result_of(call, methods)] += 1
        if not checked:
            continue  # the model should not get anywhere here; what it calls counts for later turns
        if not steps or (len(steps) == 1 and not steps[0]):
            return _failed("empty_turn_model_response", turn, "nothing is called")
        for name, state in states:
            found = vars(instances[name])
            differing = [key for key, value in state.items() if found.get(key, _ABSENT) != value]
            if differing:
                shown = [f"{name}.{key} is {_shown(found.get(key))}, not {_shown(state[key])}" for key in differing]
                return _failed("instance_state_mismatch", turn, "; ".join(shown))
        missing = [result for result, times in wanted.items() if results[result] < times]
        if missing:
            return _failed("execution_response_mismatch", turn, "no call returned " + "; ".join(map(_shown, missing)))
    return {"valid": True}


def _failed(error: str, turn: int, about: str) -> dict[str, Any]:
    return {"valid": False, "error_type": "multi_turn:" + error, "turn": turn, "about": about}


def _shown(value: Any) -> str:
    try:
        shown = value if isinstance(value, str) else _ADDRESS.sub("", repr(value))
    except Exception as error:
        shown = f"<{type(error).__name__}>"
    return shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "…"


# Sessions -------------------------------------------------------------------------------------------------------------


def begin(number: int, key: str) -> str:
    """Open a session of an entry: ``{"digest"}``, or ``{}`` for an entry that this process does not know."""
    entry = _entries.get(key)
    if entry is None:
        return "{}"
    _sessions[number] = entry, entry.fresh()
    return json.dumps({"digest": _digest(_sessions[number][1])})


def call(number: int, text: str) -> str:
    """Make one call in a session: ``{"result", "digest"}``, or ``{}`` for a session that this process does not know."""
    if number not in _sessions:
        return "{}"
    entry, instances = _sessions[number]
    result = result_of(json.loads(text), Bound(entry, instances))
    return json.dumps({"result": result, "digest": _digest(instances)})


def end(number: int) -> str:
    """Forget a session."""
    _sessions.pop(number, None)
    return "{}"


def _digest(instances: dict[str, Any]) -> str:
    found = hashlib.sha256()
    for name, instance in instances.items():
        found.update(f"{name}{_canonical(vars(instance))}".encode("utf-8", "backslashreplace"))
    return found.hexdigest()[:32]


def _canonical(value: Any) -> Any:
    """A text that is equal for equal states on every machine: without the clock, and the way back to a parent."""
    if isinstance(value, dict):
        inner = sorted((str(key), _canonical(one)) for key, one in value.items() if key != "_last_modified")
        return "{" + ",".join(f"{key!r}:{one}" for key, one in inner) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_canonical(one) for one in value) + "]"
    if isinstance(value, (set, frozenset)):
        return "(" + ",".join(sorted(_canonical(one) for one in value)) + ")"
    if isinstance(value, (random.Random, Generator)):
        return str(hash(value.getstate()[1]))  # of whole numbers only: the same everywhere
    if hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        inside = {key: one for key, one in vars(value).items() if key != "parent"}
        return type(value).__name__ + _canonical(inside)
    return repr(value)
