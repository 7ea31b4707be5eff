"""Verdicts on multi-turn answers of BFCL that are drawn, ours beside those of the official code of the wheel.

    python benchmarks/bfcl_multi_turn_agreement.py --version v4 --data DIR --package WHEEL --each 20 --seed 1

For each entry so many answers are made of its gold calls: calls are dropped, added, moved, doubled, changed, taken from
other entries, written in other ways (positions for names, a call in the place of an argument, white space, brackets in
texts), and turns are left out or added. The official side is its ``multi_turn_checker`` as its runner calls it. Then
the decoders are compared, the official ones being cut out of the wheel, on texts that are drawn alike. Whatever differs
is shown, and the exit status is 1; what the official side evaluates and we do not is counted by itself.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bfcl_multi_turn_speed import Official, read, unpacked

import callwright as cw
from callwright_plugins.bfcl.multi_turn.decoding import NotDecoded, decoded_calls, decoded_text
from callwright_plugins.bfcl.multi_turn.entries import CATEGORIES
from callwright_plugins.bfcl.multi_turn.suite import MultiTurn

Calls = list[list[list[str]]]
#: Values that stand in the place of others.
VALUES: tuple[Any, ...] = (
    0,
    1,
    -1,
    2.5,
    True,
    None,
    "",
    "x",
    "a (b)",
    "sort (c)",
    "it's",
    [],
    [1],
    {},
    {"a": 1},
    (1, 2),
    "é",
)


def mutated(calls: Calls, others: list[str], methods: list[str], draw: random.Random) -> Calls:
    """The calls with one to three changes."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        calls = draw.choice(CHANGES)([[[*step] for step in turn] for turn in calls], others, methods, draw)
    return calls


def _place(calls: Calls, draw: random.Random) -> tuple[list[str], int] | None:
    places = [(step, at) for turn in calls for step in turn for at in range(len(step))]
    return draw.choice(places) if places else None


def drop(calls: Calls, others: list[str], methods: list[str], draw: random.Random) -> Calls:
    place = _place(calls, draw)
    if place:
        del place[0][place[1]]
    return calls


def double(calls: Calls, others: list[str], methods: list[str], draw: random.Random) -> Calls:
    place = _place(calls, draw)
    if place:
        place[0].insert(draw.randrange(len(place[0]) + 1), place[0][place[1]])
    return calls


def add(calls: Calls, others: list[str], methods: list[str], draw: random.Random) -> Calls:
    if calls:
        turn = draw.choice(calls)
        new = draw.choice([draw.choice(others), f"{draw.choice(methods)}()", "len('abc')", "nobody(a=1)", "x", "f("])
        turn.insert(draw.randrange(len(turn) + 1), [new])
    return calls


def move(calls: Calls, others: list[str], methods: list[str], draw: random.Random) -> Calls:
    place = _place(calls, draw)
    if place:
        call = place[0].pop(place[1])
        draw.choice(calls).append([call])
    return calls


def reverse(calls: Calls, others: list[str], methods: list[str], draw: random.Random) -> Calls:
    if calls:
        at = draw.randrange(len(calls))
        calls[at] = [step[::-1] for step in calls[at][::-1]]
    return calls


def empty(calls: Calls, others: list[str], methods: list[str], draw: random.Random) -> Calls:
    if calls:
        calls[draw.randrange(len(calls))] = draw.choice([[], [[]], [[], []]])
    return calls


def turns(calls: Calls, others: list[str], methods: list[str], draw: random.Random) -> Calls:
    return draw.choice([calls[:-1], [*calls, []], [*calls, [[draw.choice(others)]]]])


def value(calls: Calls, others: list[str], methods: list[str], draw: random.Random) -> Calls:
    """Another value, another name, no name, or a call in the place of an argument."""
    place = _place(calls, draw)
    if not place:
        return calls
    try:
        tree = ast.parse(place[0][place[1]], mode="eval").body
    except SyntaxError:
        return calls
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        return calls
    if tree.keywords:
        word = draw.choice(tree.keywords)
        what = draw.randrange(5)
        if what == 0:
            word.value = ast.parse(repr(draw.choice(VALUES)), mode="eval").body
        elif what == 1:
            word.arg = draw.choice(["other", "name", "self"])
        elif what == 2:
            tree.args = [*tree.args, *[one.value for one in tree.keywords]]
            tree.keywords = []
        elif what == 3:
            word.value = ast.parse(draw.choice(others), mode="eval").body
        else:
            word.value = ast.parse(draw.choice(["x", "str", "1 + 2"]), mode="eval").body
    elif tree.args:
        tree.args[draw.randrange(len(tree.args))] = ast.Constant(draw.choice(["x", 3, None]))
    text = ast.unparse(ast.fix_missing_locations(tree))
    place[0][place[1]] = draw.choice([text, f"  {text}", text.replace("(", " (", 1), text.replace(", ", " ,\n")])
    return calls


CHANGES: tuple[Callable[[Calls, list[str], list[str], random.Random], Calls], ...] = (
    drop,
    double,
    add,
    move,
    reverse,
    empty,
    turns,
    value,
    value,
    value,
)


# Decoders -------------------------------------------------------------------------------------------------------------


def official_decoders(folder: Path) -> dict[str, Any]:
    """The functions of the wheel's decoders alone: the module imports thirty packages."""
    wanted = {
        "ast_parse",
        "resolve_ast_call",
        "resolve_ast_by_type",
        "default_decode_execute_prompting",
        "parse_nested_value",
        "decoded_output_to_execution_list",
        "convert_to_function_call",
    }
    source = (folder / "bfcl_eval/model_handler/utils.py").read_text()
    tree = ast.parse(source)
    tree.body = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name in wanted]

    class ReturnFormat:
        PYTHON = "Python"

    import re

    known: dict[str, Any] = {"ast": ast, "json": json, "re": re, "builtins": builtins, "ReturnFormat": ReturnFormat}
    exec(compile("from __future__ import annotations\n" + ast.unparse(tree), "decoders", "exec"), known)
    return known


#: What stands between the calls of texts that are drawn.
PIECES = (
    *("[", "]", "(", ")", "{", "}", ", ", "=", "'", '"', "`", "\n", " ", ":", "-", "+", "*", ".", "...", "not ", "f'"),
    *("sort", "show(x=", "x=1", "a='b'", "[1, 2]", "{'a': {'b': 1}}", "{'a': 1}", "true", "None", "1 + 2", "y[0]"),
    "(1,)",
    *("g(z=1)", "g(1)", "lambda: 1", "\\d", "é", "{}", "-3", "-'a'", "1 / 0", "'a' * 2", "b'c'", "2 ** 3"),
)


def drawn_text(others: list[str], draw: random.Random) -> str:
    if draw.random() < 0.5:
        some = ", ".join(draw.choice(others) for _ in range(draw.randrange(1, 4)))
        text = draw.choice(["[{}]", "{}", "```\n[{}]\n```", "[[{}]]", "'[{}]'", "({})"]).format(some)
        for _ in range(draw.randrange(3)):
            at = draw.randrange(len(text) + 1)
            text = text[:at] + draw.choice(PIECES) + text[at + draw.randrange(2) :]
        return text
    return f"[show(x={''.join(draw.choice(PIECES) for _ in range(draw.randrange(1, 5)))})]"


def decoded(decode: Callable[[], list[str]]) -> list[str] | None:
    try:
        return decode()
    except Exception:  # the official runner leaves out whatever raises
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", choices=["v3", "v4"], required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--each", type=int, default=20, help="answers an entry")
    parser.add_argument("--texts", type=int, default=20_000, help="texts for the decoders")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = unpacked(options.package)
    questions, gold = read(options.data, options.version)
    official, suite = Official(folder, questions, gold), MultiTurn(options.version, options.data, options.package)
    assert suite.classes is not None
    form, draw = cw.parser("json"), random.Random(options.seed)
    by_classes: dict[tuple[str, ...], list[str]] = {}
    for entry in suite.entries.values():
        by_classes.setdefault(entry.classes, []).extend(text for calls in entry.gold for text in calls)
    found: Counter[str] = Counter()
    different = 0
    for category in CATEGORIES:
        for task in suite.tasks(category):
            entry = suite.entries[task.id]
            methods, others = sorted(suite.classes.methods(entry)), by_classes[entry.classes]
            rows: list[Calls] = []
            for _ in range(options.each):
                whole = [[[*calls]] if draw.random() < 0.7 else [[call] for call in calls] for calls in entry.gold]
                rows.append(mutated(whole, others, methods, draw))
            asked = [(task, suite.answer({"calls": calls}, task, form)) for calls in rows]
            ours = suite.judge_together([(one, attempt) for one, attempt in asked if attempt is not None])
            for calls, judgement in zip(rows, ours, strict=True):
                try:
                    theirs = official.verdict(task.id, calls)
                except Exception as error:  # where the official run itself ends
                    found[f"the official checker raises {type(error).__name__}"] += 1
                    continue
                found[theirs[1] or "valid"] += 1
                if (judgement.correct, judgement.error or None) != theirs or judgement.masked is not None:
                    different += 1
                    print(f"{task.id}: official {theirs}, ours {judgement}\n    {json.dumps(calls)}")
            official.forget()
    print(f"{sum(found.values()):,} answers of {options.version}, {different} differ")
    for name, count in found.most_common():
        print(f"{count:8,}  {name}")
    decoders = official_decoders(folder)
    every = [text for texts in by_classes.values() for text in texts]
    outcomes: Counter[str] = Counter()
    for _ in range(options.texts):
        text = drawn_text(every, draw)
        theirs = decoded(lambda text=text: decoders["default_decode_execute_prompting"](text))
        ours_ = _ours(lambda text=text: decoded_text(text, options.version))
        kind = "equal" if theirs == ours_ else "only the official one evaluates it" if ours_ is None else "DIFFERENT"
        outcomes[kind] += 1
        if kind != "equal" and outcomes[kind] <= 5:
            print(f"{kind}: {text!r}\n    official {theirs}\n    ours {ours_}")
    steps: list[Any] = [[{"sort": '{"a": 1}'}], [{"sort": {"a": [1, None]}}, {"b": "{}"}], {"a": "[]"}, "text"]
    steps += [[], [{"a": "{"}], None]
    for step in steps:
        theirs = decoded(lambda step=step: decoders["convert_to_function_call"](step))
        outcomes["equal" if theirs == _ours(lambda step=step: decoded_calls(step)) else "DIFFERENT"] += 1
    print(f"{options.texts:,} texts and {len(steps)} steps for the decoders: {dict(outcomes)}")
    suite.close()
    if different or outcomes["DIFFERENT"]:
        raise SystemExit(1)


def _ours(decode: Callable[[], list[str]]) -> list[str] | None:
    try:
        return decode()
    except NotDecoded:
        return None


if __name__ == "__main__":
    main()
