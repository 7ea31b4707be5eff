"""Comparison of written calls with gold ones: the official scorer's F1 of functions and parameters, and partial match.

A reference such as ``$var_1.result$`` is compared in one of two ways. As written: the text, label and all. Grounded:
the label is replaced by the name of the tool that it labels (``$multiply.result$``), so that names of labels cost
nothing, and two calls of one tool cannot be told apart by who refers to them. The released scorer can do both
(``skip_grounding``), and grounds unless it is told not to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

#: The pseudo-call of the first release that gathers results; it is never compared.
_RESULT: Final = "var_result"
_DUMMY: Final = '{"name": "dummy", "arguments": {}}'
_END: Final = "<|endoftext|>"


class Ungroundable(Exception):
    """What was written is no list of calls: nothing of it is compared."""


def grounded(calls: Any) -> list[dict[str, Any]]:
    """The calls with names in the place of labels, without labels. Raises :class:`Ungroundable`."""
    try:
        names: dict[str, Any] = {}
        for call in calls:
            if call["name"] in (_RESULT, "varResult"):
                continue
            if "label" in call:
                names[call["label"].replace("$", "")] = call["name"]
        made = []
        for call in calls:
            if call["name"] == _RESULT:
                continue
            arguments = call["arguments"] if "arguments" in call else call.get("parameters", {})
            known = {key: _grounded(value, names) for key, value in arguments.items()}
            made.append({"name": call["name"], "arguments": known})
        return made
    except Exception as error:  # whatever shape it has: the official scorer catches everything here, too
        raise Ungroundable(str(error)) from error


def _grounded(value: Any, names: Mapping[str, Any]) -> Any:
    if type(value) is str:
        if value.startswith("$var"):
            for label, name in names.items():
                value = _renamed(value, label, name)
        return value
    if type(value) is list and any(type(one) is str and one.startswith("$var") for one in value):
        for label, name in names.items():
            value = [_renamed(one, label, name) if type(one) is str else one for one in value]
    return value


def _renamed(text: str, label: str, name: Any) -> str:
    if text.startswith("$var") and "." in text and text.split(".", 1)[0].replace("$", "") == label:
        return text.replace(label, name)
    return text


@frozen
class Compared:
    """What the written calls of one sample come to.

    ``functions`` are the written names, and ``parameters`` by name the texts ``name = value`` of the last call of it,
    grounded. ``partial`` is the share of positions at which a whole call is equal, in [0, 1], as written; in
    ``partial_grounded`` it is grounded.
    """

    functions: tuple[str, ...]
    parameters: Mapping[Any, tuple[str, ...]]
    partial: float
    partial_grounded: float

    def labels(self) -> dict[str, tuple[str, ...]]:
        """What :func:`f1` counts, as texts."""
        rows = tuple(json.dumps([name, *some]) for name, some in self.parameters.items())
        return {"functions": self.functions, "parameters": rows}


def compare(written: Any, gold: Any, *, labelled: bool) -> Compared:
    """Compare a written list of calls, whatever it is, with the gold one.

    ``labelled``: whether the word "label" stands anywhere in what was written; only then is it grounded.
    """
    plain = _listed(written)
    try:
        made = grounded(written) if labelled else plain
    except Ungroundable:
        made = []
    made = _without_end(made)
    partial = _partial(_texts(gold), _texts(_without_end(plain)))
    return Compared(*_of(made), partial, _partial(_texts(grounded(gold)), _texts(made)))


def _listed(written: Any) -> list[Any]:
    try:
        return [*written]
    except TypeError:
        return []


def _without_end(calls: list[Any]) -> list[Any]:
    text = json.dumps(calls)
    return json.loads(text.replace(_END, "")) if _END in text else calls


def gold_labels(gold: Any) -> dict[str, tuple[str, ...]]:
    """The functions and parameters of a gold program, as :meth:`Compared.labels` has them."""
    return Compared(*_of(grounded(gold)), 1.0, 1.0).labels()


def _of(calls: Iterable[Any]) -> tuple[tuple[str, ...], dict[Any, tuple[str, ...]]]:
    functions: list[str] = []
    parameters: dict[Any, list[str]] = {}
    for call in calls:
        if json.dumps(call) == _DUMMY:
            continue
        try:
            functions.append(str(call["name"]))
            some = parameters[call["name"]] = []
            for key, value in call["arguments"].items():
                some.append(f"{key} = {_closed(value)}")
        except Exception:  # what is no call is passed over
            continue
    return tuple(functions), {name: tuple(some) for name, some in parameters.items()}


def _closed(value: Any) -> Any:
    return value + "$" if type(value) is str and value.startswith("$") and not value.endswith("$") else value


def _texts(calls: Iterable[Any]) -> list[str]:
    """Each call as one text, its arguments sorted."""
    made = []
    for call in calls:
        try:
            name = str(call["name"])
        except Exception:
            continue
        try:
            inner = ", ".join(sorted(f"{key} = {_closed(value)}" for key, value in call["arguments"].items()))
        except Exception:
            inner = "{}"
        made.append(f"{name}({inner})")
    return made


def _partial(gold: list[str], made: list[str]) -> float:
    """The share of equal positions; where there are more calls on one side, calls are aligned by their names first."""
    if len(gold) != len(made):
        gold, made = _aligned(gold, made)
    return sum(one == other for one, other in zip(gold, made, strict=True)) / len(gold) if gold else 0.0


def _aligned(gold: list[str], made: list[str]) -> tuple[list[str], list[str]]:
    """Gaps where names differ: a gold call that the next written one is not stands alone, then the rest.

    A call without a name is taken for a gap, as it is in the official scorer, and later ones move up.
    """
    left: list[str] = []
    right: list[str] = []
    names, others = [_name(one) for one in gold], [_name(one) for one in made]
    i = j = 0
    while i < len(names) or j < len(others):
        if i < len(names) and j < len(others) and names[i] == others[j]:
            left.append(names[i])
            right.append(others[j])
            i, j = i + 1, j + 1
        elif i < len(names):
            left.append(names[i])
            right.append("")
            i += 1
        else:
            left.append("")
            right.append(others[j])
            j += 1
    golds, mades = iter(gold), iter(made)
    return [next(golds) if name else "" for name in left], [next(mades) if name else "" for name in right]


def _name(text: str) -> str:
    return text.split("(", 1)[0]


# Over a data set ------------------------------------------------------------------------------------------------------


def f1(pairs: Sequence[tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]]) -> tuple[float, float]:
    """Macro F1 of functions and of parameters over the labels of samples, ``(gold, written)`` each.

    The classes are what occurs in gold; what only models wrote is no class and costs nothing. A row is a sample for
    functions, and a tool of a sample for parameters; in a row a class occurs or does not.
    """
    functions = [(set(gold["functions"]), set(made["functions"])) for gold, made in pairs]
    rows: list[tuple[set[str], set[str]]] = []
    for gold, made in pairs:
        left, right = _rows(gold["parameters"]), _rows(made["parameters"])
        rows += [(left.get(name, set()), right.get(name, set())) for name in {*left, *right}]
    return _macro_f1(functions), _macro_f1(rows)


def _rows(labels: Sequence[str]) -> dict[Any, set[str]]:
    return {name: set(some) for name, *some in map(json.loads, labels)}


def _macro_f1(rows: Sequence[tuple[set[str], set[str]]]) -> float:
    classes = {name for gold, _ in rows for name in gold}
    counts: dict[str, list[int]] = {name: [0, 0] for name in classes}  # in both, in either (twice where in both)
    for gold, made in rows:
        for name in gold:
            counts[name][1] += 1
            counts[name][0] += name in made
        for name in made:
            if name in counts:
                counts[name][1] += 1
    values = sorted(2 * both / every for both, every in counts.values())
    return sum(values) / len(values) if values else 0.0
