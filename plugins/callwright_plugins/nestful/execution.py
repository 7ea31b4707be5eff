"""Execution of a sequence of calls as the official scorer does it. It stands alone: only the standard library.

The process that may be killed loads this file by itself and runs the release's functions (:func:`win`). Where they are
not there, the same steps are gone through with a table of recorded results (:func:`followed`).

What the official scorer does, and is kept: arguments go to a function by position, in the order in which they were
written, whatever their names; a text is resolved where it is a whole reference, and nowhere inside of a list; a tool
with more than one output fails; whatever fails makes the answer ``False``, which is then compared like any answer, so
that it equals a gold answer of 0. Every file of a function is executed anew for each call: some seed ``random`` there.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import signal
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

#: The file whose functions come before those of the map.
BASIC = "basic_functions.py"
_SHOWN = 200


class Missing(Exception):
    """A function cannot be loaded because a module that it imports is not installed: nothing is known of it."""


class _Unknown:
    """The result of a call that nobody recorded."""

    def __deepcopy__(self, memo: Any) -> _Unknown:
        return self

    def __repr__(self) -> str:
        return "(not recorded)"


UNKNOWN = _Unknown()


class Failed(Exception):
    """The sequence has no answer. ``kind`` says why."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


#: What is looked for by a tool's name: something to call with the arguments by position.
Find = Callable[[str], Callable[..., Any]]


def answer_of(calls: Any, tools: Any, find: Find) -> Any:
    """What the last call of a sequence gives. Raises :class:`Failed`; whatever ``find`` raises goes through."""
    results: dict[Any, Any] = {}
    at = 0
    try:
        for at, call in enumerate(calls, 1):
            label = call["label"].replace("$", "")
            outputs = list(next(one for one in tools if one["name"] == call["name"])["output_parameters"])
            given = [_resolved(value, results) for value in call["arguments"].values()]
            for value in given:
                str(value)  # as the official scorer does: a whole number of thousands of digits fails here
            function = find(call["name"])
            try:
                found = function(*given)
            except Missing:
                raise
            except TimeoutError as error:
                raise Failed("timeout", f"call {at}: {error}") from None
            except BaseException as error:  # SystemExit, too: the official scorer catches everything here
                told = f"call {at}, {call['name']}: {type(error).__name__}: {error}"
                raise Failed("raised", told[:_SHOWN]) from None
            if len(outputs) != 1:
                raise Failed("outputs", f"call {at}: {call['name']} has {len(outputs)} outputs")
            results[label] = {outputs[0]: found}
        return next(iter(results[calls[-1]["label"].replace("$", "")].values()))
    except StopIteration:
        raise Failed("unknown_function", f"call {at}: no tool is called {call['name']!r:.80}") from None
    except (Failed, Missing):
        raise
    except TimeoutError as error:
        raise Failed("timeout", f"call {at}: {error}") from None
    except Exception as error:
        raise Failed("unresolved", f"call {at}: {type(error).__name__}: {error}"[:_SHOWN]) from None


def _resolved(value: Any, results: Any) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        if value.endswith("$"):
            name = value[1:-1]
        elif value.startswith("$var"):
            name = value[1:]
        else:
            return value
        label, output = name.split(".", 1)
        return results[label][output]
    return value


def same(found: Any, gold: Any) -> bool:
    """Whether an answer is the gold one: floats are rounded to the decimals of gold, a tuple may be a list.

    Where the official scorer ends with an exception (a gold float without a decimal point, ``1e-05``; a value that
    cannot be compared), floats are compared as they are, and other values are not equal.
    """
    if type(gold) is float and type(found) is float:
        _, point, decimals = str(gold).partition(".")
        if point:
            found = round(found, len(decimals))
    try:
        if found == gold:
            return True
        return type(found) is tuple and type(gold) is list and bool(_listed(found) == gold)
    except Exception:
        return False


def _listed(value: Any) -> Any:
    return [_listed(one) for one in value] if isinstance(value, (list, tuple)) else value


# With the functions ---------------------------------------------------------------------------------------------------


class _Loader(SourceFileLoader):
    """A file that is read and compiled once, however often a module is made of it.

    ``stateless``: it holds nothing but imports and functions that remember nothing, so one module of it will do.
    """

    _code: CodeType | None = None
    stateless = False
    module: Any = None

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of the file."""
        if self._code is None:
            source = self.get_data(self.path)
            self._code = self.source_to_code(source, self.path)
            self.stateless = _is_stateless(ast.parse(source))
        return self._code


def _is_stateless(tree: ast.Module) -> bool:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            given = [*node.args.defaults, *node.args.kw_defaults]
            if node.decorator_list or not all(one is None or isinstance(one, ast.Constant) for one in given):
                return False
        elif not isinstance(node, (ast.Import, ast.ImportFrom)):
            return False
    nodes = list(ast.walk(tree))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    kept = any(  # on a function: its attributes outlive a call
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in functions
        for node in nodes
    )
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return not kept and "globals" not in names and not any(isinstance(node, ast.Global) for node in nodes)


class _Functions:
    """The functions of a release's folder; each file is compiled once and executed for every call."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        text = (self._folder / BASIC).read_text(encoding="utf-8")
        lines = (line for line in text.splitlines() if line.startswith("def "))
        self._basic = {line.strip().replace("def ", "").partition("(")[0] for line in lines}
        self._files = json.loads((self._folder / "func_file_map.json").read_text(encoding="utf-8"))
        self._loaders: dict[str, _Loader] = {}

    def find(self, name: str) -> Callable[..., Any]:
        """The function in a module that is made now. Raises :class:`Missing`, and what the module raises."""
        file = BASIC if name in self._basic else self._files[name]
        loader = self._loaders.get(file)
        if loader is None:
            loader = self._loaders[file] = _Loader(file, str(self._folder / file))
        if loader.module is not None:
            kept: Callable[..., Any] = getattr(loader.module, name)
            return kept
        spec = importlib.util.spec_from_file_location(file, loader.path, loader=loader)
        if spec is None:
            raise ImportError(file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[file] = module
        try:
            loader.exec_module(module)
        except ImportError as error:
            raise Missing(f"{file} imports what is not installed: {error}") from None
        if loader.stateless:
            loader.module = module
        found: Callable[..., Any] = getattr(module, name)
        return found

    def prepare(self, calls: Any) -> None:
        """Load what was not loaded yet, so that what it imports does not take the time of a sequence."""
        for call in calls if isinstance(calls, list) else ():
            name = call.get("name") if isinstance(call, dict) else None
            if not isinstance(name, str):
                continue
            file = BASIC if name in self._basic else self._files.get(name)
            if file is not None and file not in self._loaders:
                try:
                    self.find(name)
                except BaseException:  # it is said when it is called
                    continue


_OPENED: dict[str, _Functions] = {}


def _functions(folder: str) -> _Functions:
    if folder not in _OPENED:
        _OPENED[folder] = _Functions(folder)
    return _OPENED[folder]


def _too_long(number: int, frame: Any) -> None:
    raise TimeoutError("it took too long")


def win(folder: str, text: str, seconds: float) -> list[Any]:
    """``[whether the answer is gold, why there is none, in words, the answer as text]`` of a JSON text.

    It has ``calls``, ``tools`` and ``gold``. The sequence has so many seconds, as in the official scorer (10); that it
    took longer is a failure like any other. ``"missing"`` is why nothing is known: a module is not installed here.
    """
    stated = json.loads(text)
    functions = _functions(folder)
    functions.prepare(stated["calls"])
    found: Any = False
    why = told = ""
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        try:
            found = answer_of(stated["calls"], stated["tools"], functions.find)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Failed as error:
        why, told = error.kind, str(error)
    except Missing as error:
        return [False, "missing", str(error), ""]
    except TimeoutError as error:
        why, told = "timeout", str(error)
    right = same(found, stated["gold"])
    return [right, why, told, "" if why else _text(found)]


def win_each(folder: str, texts: list[str], seconds: float) -> list[list[Any]]:
    """:func:`win` of each of several sequences."""
    return [win(folder, text, seconds) for text in texts]


def run(folder: str, name: str, given: list[Any], seconds: float) -> Any:
    """What one function gives for arguments by position. Raises whatever it raises."""
    functions = _functions(folder)
    functions.prepare([{"name": name}])
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return functions.find(name)(*given)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _text(value: Any) -> str:
    try:
        return repr(value)[:_SHOWN]
    except Exception as error:
        return f"<{type(error).__name__}>"


# With a table of results ----------------------------------------------------------------------------------------------


class _Held:
    """A value that a recorded call returned: what JSON made of it may have been a tuple, and may have been changed."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.changed = False


class Table:
    """Results of calls that were recorded, by the tool and the arguments in their order.

    A list or an object that another call returned is another argument than one that was written: JSON does not tell a
    tuple from a list. What a call changed (``mutates_args``) is not known any more.
    """

    def __init__(self) -> None:
        self._results: dict[str, tuple[Any, bool]] = {}
        self._values: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._results)

    def learn(self, name: str, given: list[Any], returned: list[bool], result: Any, *, mutates: bool) -> None:
        """A recorded call; ``returned`` says of each argument whether another call returned it."""
        self._results[_key(name, given, returned)] = result, mutates
        self._values[json.dumps([name, given])] = result

    def value(self, name: str, given: list[Any]) -> Any:
        """The result that was recorded for these values, wherever they come from; :data:`UNKNOWN` without one."""
        return copy.deepcopy(self._values.get(json.dumps([name, given]), UNKNOWN))

    def find(self, name: str) -> Callable[..., Any]:
        """The tool of a name, answering from the table: :data:`UNKNOWN` for what is not in it."""

        def called(*given: Any) -> Any:
            if any(one is UNKNOWN or (type(one) is _Held and one.changed) for one in given):
                return UNKNOWN
            bare = [one.value if type(one) is _Held else one for one in given]
            found = self._results.get(_key(name, bare, [type(one) is _Held for one in given]))
            if found is None:
                return UNKNOWN
            if found[1]:
                for one in given:
                    if type(one) is _Held:
                        one.changed = True
            return _Held(copy.deepcopy(found[0]))

        return called


def _key(name: str, given: list[Any], returned: list[bool]) -> str:
    marks = [held and isinstance(one, (list, dict)) for one, held in zip(given, returned)]  # noqa: B905  # 3.8 knows no strict
    return json.dumps([name, given, marks])


def followed(calls: Any, tools: Any, gold: Any, table: Table) -> list[Any]:
    """As :func:`win`, with a table: ``"unknown"`` is why nothing is known, since a call is not in it.

    A sequence that certainly fails somewhere has failed, whatever a call that is not recorded would have given.
    """
    asked: list[str] = []

    def find(name: str) -> Callable[..., Any]:
        called = table.find(name)

        def noted(*given: Any) -> Any:
            found = called(*given)
            if found is UNKNOWN:
                asked.append(name)
            return found

        return noted

    try:
        found = answer_of(calls, tools, find)
    except Failed as error:
        return [same(False, gold), error.kind, str(error), ""]
    if asked:
        return [False, "unknown", f"{asked[0]} was not recorded with these arguments", ""]
    if found.changed:
        return [False, "unknown", "the answer was changed by a later call", ""]
    return [same(found.value, gold), "", "", _text(found.value)]
