"""Checks of benchmarks: what they hold, that judging is total and repeatable, that tables add up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from callwright.errors import UnknownName, UsageError
from callwright.language.parser import Parser
from callwright.measuring.benchmark import Benchmark, Judged, Judgement, Need
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises
from callwright.testing.pickling import elsewhere
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Task

#: Tasks of each category that are looked at.
_EACH: Final = 3
_NOT_THERE: Final = "no such category"
#: What models also write.
_TEXTS: Final = ("", "I cannot help with that.", "<think>", "<tool_call>{</tool_call>", "\x00\u202e{}[]", "[" * 400)


def check_members(benchmark: Benchmark) -> None:
    """It has the members of :class:`Benchmark`, a name, and its version among its versions."""
    expect_members(benchmark, Benchmark)
    expect_name(benchmark)
    expect(":" not in benchmark.name, f"the name {benchmark.name!r} holds ':', which stands before a version")
    expect(benchmark.version in benchmark.versions, f"{benchmark.version!r} is none of its versions")
    expect(len(set(benchmark.versions)) == len(benchmark.versions), "a version stands twice")
    for need in benchmark.needs:
        expect(isinstance(need, Need), f"a need is a Need, not {need!r}")
    for reason in benchmark.unofficial:
        expect(isinstance(reason, str) and bool(reason), "a reason for not being official is a sentence")


def check_categories(benchmark: Benchmark) -> None:
    """Every task is in one category, ids are distinct, and categories hold as many tasks as they say."""
    tasks = benchmark.tasks()
    ids = [task.id for task in tasks]
    expect(len(set(ids)) == len(ids), "two tasks have the same id")
    counted: dict[str, list[str]] = {}
    for task in tasks:
        counted.setdefault(benchmark.category_of(task), []).append(task.id)
    expect(
        {name: len(some) for name, some in counted.items()} == dict(benchmark.categories), "categories do not add up"
    )
    for name, some in counted.items():
        listed = [task.id for task in benchmark.tasks(name)]
        expect(sorted(listed) == sorted(some), f"tasks({name!r}) are not those of the category")
        expect(listed == [task.id for task in benchmark.tasks(name)], f"tasks({name!r}) come in another order again")
    try:
        benchmark.tasks(_NOT_THERE)
    except (UnknownName, UsageError):
        return
    raise AssertionError(f"tasks({_NOT_THERE!r}) raises nothing")


def check_judging_is_total(benchmark: Benchmark) -> None:
    """Whatever was written is judged, the same each time, with a score in [0, 1] that can be kept and read again."""
    parser = _parser()
    for task in _some(benchmark):
        for text in _TEXTS:
            about = f"judging {text[:30]!r} on task {task.id!r}"
            with never_raises(about):
                first = benchmark.judge(task, Attempt(task, text, parser))
                second = benchmark.judge(task, Attempt(task, text, parser))
            expect(isinstance(first, Judgement), f"{about} gave {type(first).__name__}")
            expect(first == second, f"{about} gave another judgement the second time")
            expect(0 <= first.score <= 1, f"{about} gave the score {first.score}")
            if first.masked is None:
                expect(not (first.correct and first.error), f"{about}: right, and yet {first.error!r}")
                with never_raises(f"reading the kept judgement ({about})"):
                    again = Judgement.from_json(first.to_json())
                expect(again == first, f"{about} is another judgement when it is kept")


def check_tables(benchmark: Benchmark) -> None:
    """Figures are shares or ``None``, hang on no order, leave out what is masked, and have ``overall`` among them."""
    tasks = list(_some(benchmark))
    right, wrong = Judgement(True, 1.0), Judgement(False, 0.0, "wrong")
    lost = Judgement(False, 0.0, masked="gone")

    def judged(judgements: list[Judgement]) -> list[Judged]:
        pairs = zip(tasks, judgements, strict=True)
        return [Judged(task.id, benchmark.category_of(task), judgement) for task, judgement in pairs]

    with never_raises("adding up nothing"):
        empty = benchmark.aggregate([])
    expect("overall" in empty, "there is no figure 'overall'")
    expect(empty["overall"] is None, f"overall is {empty['overall']} of nothing")
    for judgement, expected in ((right, 1.0), (wrong, 0.0), (lost, None)):
        found = benchmark.aggregate(judged([judgement] * len(tasks)))["overall"]
        # A table that lacks a part of the official one says so, and may have no overall figure.
        missing = found is None and bool(benchmark.unofficial)
        expect(missing or found == expected, f"where everything is {judgement}, overall is {found}, not {expected}")
    mixed = judged([right if place % 2 else wrong for place in range(len(tasks))])
    expect(benchmark.aggregate(mixed) == benchmark.aggregate(mixed[::-1]), "figures hang on the order of judgements")


def check_pickles(benchmark: Benchmark) -> None:
    """It can be pickled, and is the same benchmark elsewhere."""
    copy = elsewhere(benchmark, f"the benchmark {benchmark.name!r}")
    expect((copy.name, copy.version) == (benchmark.name, benchmark.version), "it is another one elsewhere")
    expect(dict(copy.categories) == dict(benchmark.categories), "it has other categories elsewhere")


def _some(benchmark: Benchmark) -> Iterator[Task]:
    for category in benchmark.categories:
        yield from benchmark.tasks(category)[:_EACH]


def _parser() -> Parser:
    from callwright.testing.services.registries import registry_in_use

    made: Parser = registry_in_use().create("parser", "json")
    return made


BENCHMARK_CHECKS: Final = (check_members, check_categories, check_judging_is_total, check_tables, check_pickles)
