"""BFCL's checker beside the official one: the same verdicts on mutated answers, and how fast each is.

    python benchmarks/bfcl_speed.py --wheel bfcl_eval-2025.8.6.2-py3-none-any.whl [--rounds 3] [--mutants 20]

``--mutants 0`` takes gold answers alone, and times them a second time with what is allowed compiled for each.

The wheel is unpacked to a temporary folder, never installed; of it only the checker and the converters are loaded, with
a stand-in for the table of models, which imports the SDKs of every vendor. Exits with 1 where a verdict differs.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import random
import sys
import tempfile
import time
import types
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

from callwright_plugins.bfcl.reading import folder_of
from callwright_plugins.bfcl.single_turn.checking import RAISED, Rules
from callwright_plugins.bfcl.single_turn.suite import SingleTurn, calls_of, language_of
from callwright_plugins.bfcl.versions import VERSIONS, kind_of

ODD = (
    "", " ", "[]", "{}", "[[1,2],[3]]", "[ [1] , [2], ]", "new Array(1, 2)", "new Array([1],[2])",
    "{'a': 1, 'b': [1,2]}",
    "{a: {b: 1}}", "true", "True", "5", "-5", "5L", "5n", "1.5", "1.5f", "1e3", "1_000", "nan", "'a'", '"a"', "٣",
    "5\n", "new int[]{1, 2}", "new String[]{\"a\", \"b\"}", "new ArrayList<>(Arrays.asList(1, 2))",
    "new ArrayList<String>() {{ add(\"a\"); add(\"b\"); }}", "new ArrayList<>()", "new ArrayList<>() {{ }}}",
    "new HashMap<>()", "new HashMap<String, Object>() {{ put(\"k\", \"v\"); put(\"l\", 5L); }}",
    "new HashMap<>() {put(\"k\",\n5)}", "new HashMap<>() {{ put(\"a\"\", 1)", "null", None, True, 0, 1, 1.0, -1,
    10**400, [], [1], ["a"], [[]], [{}], {}, {"a": 1}, (), (1,), [True], [1.0],
)  # fmt: skip


def official_checker(wheel: Path, folder: Path, version: str) -> Any:
    """The official ``ast_checker`` with ours' arguments, loaded from the unpacked wheel."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    sys.path.insert(0, str(folder))
    models: Any = types.ModuleType("bfcl_eval.constants.model_config")
    models.MODEL_CONFIG_MAPPING = {"none": types.SimpleNamespace(underscore_to_dot=False)}
    sys.modules[models.__name__] = models
    check = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    languages = {"Python": "Python", "Java": "Java", "JavaScript": "JavaScript"}
    if version == "v4":
        enums = importlib.import_module("bfcl_eval.constants.enums").Language
        languages = {"Python": enums.PYTHON, "Java": enums.JAVA, "JavaScript": enums.JAVASCRIPT}

    def checker(entry: Any, calls: Any) -> tuple[bool, str]:
        language = languages[language_of(entry.category)]
        found = check(list(entry.functions), calls, list(entry.gold), language, entry.category, "none")
        return found["valid"], "" if found["valid"] else found["error_type"]

    return checker


def mutated(calls: list[Any], draw: random.Random, texts: list[str], literal: bool) -> list[Any]:
    """Calls with one to three changes: of values (near ones, odd ones), names, numbers of arguments and of calls."""
    made = copy.deepcopy(calls)
    for _ in range(draw.randint(1, 3)):
        if not made:
            made.append({"f": {}})
        place = draw.randrange(len(made))
        name = next(iter(made[place]))
        arguments = made[place][name]
        change = draw.random()
        if change < 0.7 and arguments:
            key = draw.choice(list(arguments))
            arguments[key] = other(arguments[key], draw, texts, literal)
        elif change < 0.76 and arguments:
            del arguments[draw.choice(list(arguments))]
        elif change < 0.82:
            arguments[draw.choice(["extra", *arguments])] = draw.choice(ODD)
        elif change < 0.87:
            made.append(copy.deepcopy(draw.choice(made)))
        elif change < 0.91:
            del made[place]
        elif change < 0.95:
            made[place] = {name + "x": arguments}
        else:
            draw.shuffle(made)
    return made


def other(value: Any, draw: random.Random, texts: list[str], literal: bool) -> Any:
    """A value near this one, or an odd one."""
    if draw.random() < 0.3:
        return copy.deepcopy(draw.choice(ODD))
    if isinstance(value, str) and value:
        cut = draw.randrange(len(value))
        signs = "[]{}(),:'\"\\n new ArrayList<>\t5Lfn-_." if literal else " ,./-_*^'\"aZ"
        choices = [
            value.upper(), value + draw.choice(signs), value[:cut] + value[cut + 1 :], value.replace(" ", ""),
            value[:cut] + draw.choice(signs) + value[cut:], draw.choice(texts), f'"{value}"', f" {value} ", [value],
        ]  # fmt: skip
        return draw.choice(choices)
    if isinstance(value, bool | int | float) and abs(value) < 10**300:
        return draw.choice([str(value), float(value), int(value), -value, [value], value + 1, bool(value)])
    if isinstance(value, list) and value:
        copied: list[Any] = copy.deepcopy(value)
        at = draw.randrange(len(copied))
        copied[at] = other(copied[at], draw, texts, literal)
        return draw.choice([copied, copied[::-1], copied[:-1], tuple(copied), copied + copied])
    if isinstance(value, dict) and value:
        object_: dict[str, Any] = copy.deepcopy(value)
        key = draw.choice(list(object_))
        if draw.random() < 0.3:
            del object_[key]
        else:
            object_[draw.choice([key, key, "odd"])] = other(object_[key], draw, texts, literal)
        return object_
    return copy.deepcopy(draw.choice(ODD))


def main() -> int:
    """Compare, then time both on the same answers in turns."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--wheel", type=Path, required=True)
    reader.add_argument("--data", type=Path, help="BFCL's files, if not those of the wheel")
    reader.add_argument("--mutants", type=int, default=20)
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument("--seed", type=int, default=0)
    given = reader.parse_args()
    version = next(one for one in VERSIONS.values() if one.release in given.wheel.name)
    with tempfile.TemporaryDirectory() as scratch:
        official = official_checker(given.wheel, Path(scratch), version.name)
        suite = SingleTurn(version.name, folder_of(given.data or Path(scratch), version))
        draw = random.Random(given.seed)
        answers: list[tuple[Any, Rules, list[Any]]] = []
        for category in version.sizes:
            if kind_of(category) not in ("simple", "multiple", "parallel"):
                continue
            literal = language_of(category) != "Python"
            tasks = suite.tasks(category)
            gold = [calls_of(task.program, task.facts["names"]) for task in tasks if task.program]
            texts = [
                value
                for calls in gold
                for call in calls
                for one in call.values()
                for value in one.values()
                if isinstance(value, str)
            ] or ["text"]
            for task, calls in zip(tasks, gold, strict=True):
                entry, rules = suite.entries[task.id], suite.rules(task.id)
                answers.append((entry, rules, calls))
                count = given.mutants * (10 if literal else 1)
                answers += ((entry, rules, mutated(calls, draw, texts, literal)) for _ in range(count))
        differ = compare(answers, official, given.rounds)
        if not given.mutants:
            gold_with_reading(suite, [(entry, calls) for entry, _, calls in answers], official, given.rounds)
        return differ


def gold_with_reading(suite: SingleTurn, answers: list[tuple[Any, list[Any]]], official: Any, rounds: int) -> None:
    """Each gold answer once, as an evaluation with one sample has it: what is allowed is compiled for it alone."""
    judged = []
    for entry, calls in answers:
        try:
            official(entry, copy.deepcopy(calls))
            judged.append((entry, calls))
        except Exception:  # the official program ends here
            continue
    for _ in range(rounds):
        begin = time.process_time()
        for entry, calls in judged:
            official(entry, calls)
        middle = time.process_time()
        fresh = SingleTurn(suite.version, suite.folder)
        fresh.__dict__["entries"] = suite.entries  # read before, as for the official checker
        for entry, calls in judged:
            fresh.rules(entry.id).error(calls)
        end = time.process_time()
        theirs, ours = len(judged) / (middle - begin), len(judged) / (end - middle)
        print(f"with compiling: official {theirs:,.0f}/s, here {ours:,.0f}/s: {ours / theirs:.2f} times")


def compare(answers: list[tuple[Any, Rules, list[Any]]], official: Any, rounds: int) -> int:
    """Every verdict, then the time of those that both give."""
    differ = 0
    errors: Counter[str] = Counter()
    timed = []
    for entry, rules, calls in answers:
        try:
            expected = official(entry, copy.deepcopy(calls))[1]
        except Exception:  # the official program ends here
            expected = RAISED
        found = rules.error(calls)
        errors[expected] += 1
        if found != expected:
            differ += 1
            if differ <= 20:
                print(f"{entry.id}: official {expected!r}, here {found!r}: {calls!r:.300} allowed {entry.gold!r:.300}")
        elif expected != RAISED:
            timed.append((entry, rules, calls))
    print(f"{len(answers):,} answers, {differ} differ; {dict(errors.most_common())}")
    for _ in range(rounds):
        begin = time.process_time()
        for entry, _, calls in timed:
            official(entry, calls)
        middle = time.process_time()
        for _, rules, calls in timed:
            rules.error(calls)
        end = time.process_time()
        theirs, ours = len(timed) / (middle - begin), len(timed) / (end - middle)
        print(f"official {theirs:,.0f}/s, here {ours:,.0f}/s: {ours / theirs:.2f} times")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
