"""Tasks: right answers, no shortcuts, honest distractors, disjoint splits."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from callwright.errors import UnknownName, UsageError
from callwright.plugins import load_plugins
from callwright.walk.execution import execute
from callwright.walk.tasks import Corpus, KnowsDepths, Task, depths_of
from callwright_plugins import toolworld
from callwright_plugins.toolworld.corpus import ToolWorldCorpus
from callwright_plugins.toolworld.environment import ToolWorld
from callwright_plugins.toolworld.families import FAMILIES
from callwright_plugins.toolworld.family import each
from callwright_plugins.toolworld.splits import divided
from callwright_plugins.toolworld.tasks import make_task, reordered

#: What the tests know of the world, written down independently of the product.
FILTERS = {
    **dict.fromkeys(["FilterByCuisine", "FilterByRating", "FilterByOpen", "FilterByPrice"], "restaurants"),
    **dict.fromkeys(["FilterByMake", "FilterByColour", "FilterByYear"], "cars"),
}
CITIES = ["Paris", "London", "Tokyo", "Oslo", "Lima", "Cairo", "Rome", "Delhi"]
CURRENCIES = ["EUR", "GBP", "JPY", "NOK", "PEN", "EGP", "INR"]
CONSTANTS: dict[str, list[Any]] = {"GetLocation": CITIES, "GetTime": [9, 12, 15, 18, 21], "GetCurrency": CURRENCIES}
ENTITIES: dict[str, list[Any]] = {
    "location": CITIES,
    "currency": CURRENCIES,
    "cuisine": ["Italian", "Japanese", "Mexican", "Indian"],
    "make": ["Toyota", "Ford", "Fiat", "Volvo"],
    "colour": ["red", "blue", "black"],
    "item": ["gold", "silver", "copper", "coffee", "sugar", "cotton"],
    "hour": [9, 12, 15, 18, 21],
    "rating": [2, 3, 4],
    "price": [20, 30, 40],
    "year": [2012, 2016, 2020],
    "amount": [50, 60, 70, 80],
}
LOOKALIKES = {
    "GetLocation": "GetHomeCity",
    "GetTime": "GetSunset",
    "GetCurrency": "GetLocalCurrency",
    "FindRestaurants": "FindHotels",
    "FindDealers": "FindHotels",
    "FilterByCuisine": "ExcludeCuisine",
    "FilterByRating": "FilterByStars",
    "FilterByOpen": "FilterByClosed",
    "ListCars": "ListTrucks",
    "GetTemperature": "GetHumidity",
    "GetPrice": "GetStock",
    "GetSum": "GetDifference",
}


def test_several_threads_get_the_tasks_that_one_gets() -> None:
    numbers = range(0, 350, 5)
    alone = ToolWorldCorpus(evaluation_size=50)
    expected = [alone.make("evaluation", number).query for number in numbers]
    shared = ToolWorldCorpus(evaluation_size=50)
    with ThreadPoolExecutor(8) as pool:
        assert [task.query for task in pool.map(lambda number: shared.make("evaluation", number), numbers)] == expected


def test_registered_and_fits_the_protocol() -> None:
    registry = load_plugins(entry_points=False, extra={"toolworld": toolworld})
    made = registry.create("corpus", "toolworld-mini-v1", train_size=7, evaluation_size=2, seed=5)
    assert isinstance(made, Corpus)
    assert made.splits == {"train": 7, "evaluation": 14}
    with pytest.raises(UsageError, match="no option of the corpus 'toolworld-mini-v1' named 'trian'"):
        registry.create("corpus", "toolworld-mini-v1", trian=7)


@pytest.mark.parametrize(
    "options",
    [
        {"train_size": -1},
        {"train_size": "9"},
        {"evaluation_size": True},
        {"mix": []},
        {"mix": [7]},
        {"mix": "0123"},
        {"mix": [1.0]},
        {"mix": 3},
        {"seed": 1.5},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"option '{next(iter(options))}' of toolworld-mini-v1"):
        ToolWorldCorpus(**options)


def test_every_reference_program_gives_the_answer(evaluation: list[Task], train: list[Task], interpreter: Any) -> None:
    for task in [*evaluation, *train]:
        assert task.program is not None
        assert (task.depth, task.chain, task.returns) == (task.program.depth, task.program.chain, task.program.returns)
        if task.depth:
            trace = execute(task.program, task.environment, task.tools, scenario=task.scenario)
            assert {step.outcome.kind for step in trace.records} == {"ok"}
            assert all(step.outcome.value not in ([], {}) for step in trace.records)
            assert trace.returned == task.answer.values
            calls = interpreter.calls(task.program)
            assert interpreter.run(calls, task.returns, task.scenario) == interpreter.expected(task)
        assert task.answer.is_no_call == (task.depth == 0)
        assert len(task.answer.values) == (task.depth if task.returns == "all" else min(task.depth, 1))


def test_reference_programs_fit_the_schemas(evaluation: list[Task]) -> None:
    from callwright.tools.validation import validate

    assert all(task.program is not None and validate(task.program, task.tools).valid for task in evaluation)


def test_every_mutation_changes_the_answer(evaluation: list[Task], interpreter: Any) -> None:
    done: Counter[str] = Counter()
    for task in evaluation:
        calls = interpreter.calls(task.program)
        for kind, changed in mutations(calls):
            if kind.startswith("constant"):
                truth = interpreter.world.open(task.scenario).call(kind.split()[1], {}).value
                if str(next(iter(truth.values()))) == kind.split()[2]:
                    continue
            done[kind.split()[0]] += 1
            assert interpreter.run(changed, task.returns, task.scenario) != interpreter.expected(task), (kind, task)
    assert min(done[kind] for kind in ("skip", "constant", "swap", "lookalike")) > 150


def mutations(calls: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    found = []
    for position, (tool, arguments) in enumerate(calls):
        reference = f"API_RESPONSE_{position}"

        def instead(value: Any, reference: str = reference) -> list[tuple[str, dict[str, Any]]]:
            return [(name, {k: value if v == reference else v for k, v in given.items()}) for name, given in calls]

        if tool in FILTERS:
            # The filter stays where it is, so that ids stay valid; what read it reads its input, and the last becomes
            # a copy of the call before it in the chain.
            table = arguments[FILTERS[tool]]
            changed = instead(table)
            if position == len(calls) - 1:
                changed[position] = calls[int(table.removeprefix("API_RESPONSE_"))]
            found.append((f"skip {tool}", changed))
        if tool in CONSTANTS and any(reference in given.values() for _, given in calls):
            found += [(f"constant {tool} {value}", instead(value)) for value in CONSTANTS[tool]]
        for name, value in arguments.items():
            if name in ENTITIES and not str(value).startswith("API_RESPONSE_"):
                for other in ENTITIES[name]:
                    if other != value:
                        swapped = (tool, {**arguments, name: other})
                        found.append((f"swap {name}", [*calls[:position], swapped, *calls[position + 1 :]]))
        if tool in LOOKALIKES:
            given = {"stars" if name == "rating" else name: value for name, value in arguments.items()}
            lookalike = (LOOKALIKES[tool], given)
            found.append((f"lookalike {tool}", [*calls[:position], lookalike, *calls[position + 1 :]]))
    return found


def test_no_single_safe_call_answers_a_composed_task(evaluation: list[Task], interpreter: Any) -> None:
    """A policy that makes one call that is sure to work gets nothing right from depth 2 on, but by guessing the very
    place, hour or currency of a hidden context.
    """
    tried = guessed = 0
    for task in evaluation:
        hidden = {word for word in task.scenario.split("|") if word not in task.query.split()}
        for tool, spec in task.tools.items() if task.depth >= 2 else ():
            for arguments in arguments_of(spec.parameters["properties"]):
                tried += 1
                if interpreter.run([(tool, arguments)], "one", task.scenario) == interpreter.expected(task):
                    guessed += 1
                    assert hidden & {str(value) for value in arguments.values()}
    assert guessed < tried / 500


def arguments_of(properties: dict[str, Any]) -> list[dict[str, Any]]:
    """Calls of one tool with every combination of values that queries name, and of the empty table."""
    ways: list[dict[str, Any]] = [{}]
    for name, schema in properties.items():
        numbers = [1, 50, 640] if name in ("first", "second") else []
        values = [[]] if schema["type"] == "array" else ENTITIES.get(name, numbers)
        ways = [{**way, name: value} for way in ways for value in values]
    return ways


def test_any_valid_order_gives_the_same_answer(evaluation: list[Task], interpreter: Any) -> None:
    rng, orders = random.Random(0), 0
    for task in evaluation:
        assert task.program is not None
        for _ in range(3):
            other = reordered(task.program, rng)
            assert not other.dangling
            orders += other != task.program
            if task.depth:
                assert interpreter.run(interpreter.calls(other), task.returns, task.scenario) == interpreter.expected(
                    task
                )
    assert orders > 200


def test_offered_tools(evaluation: list[Task], train: list[Task]) -> None:
    positions: Counter[int] = Counter()
    twins = 0
    for task in [*evaluation, *train]:
        assert task.program is not None
        used = {call.tool for call in task.program.calls}
        assert used <= task.tools.keys()
        assert len(task.tools) == max(5, len(used) + 2)
        assert all(task.tools[name] is task.environment.tools[name] for name in task.tools)
        if used:
            positions[list(task.tools).index(task.program.calls[0].tool)] += 1
        alike = {LOOKALIKES[tool] for tool in used & LOOKALIKES.keys()} - used
        assert not alike or alike & task.tools.keys()
        twins += bool(alike)
    assert twins > 400
    assert set(range(5)) <= positions.keys()  # targets stand anywhere in the list


def test_the_three_reasons_to_call_nothing(evaluation: list[Task], train: list[Task], interpreter: Any) -> None:
    kinds: Counter[str] = Counter()
    for task in [*evaluation, *train]:
        kind = task.facts["kind"]
        kinds[kind] += 1
        assert (kind == "answer") == (task.depth > 0)
        if kind == "tool_missing":  # the same words are a task of depth 1 where the tool is offered
            family = next(f for f in FAMILIES if f.name == task.facts["family"].removeprefix("missing/"))
            (call,) = family.build(task.facts["values"]).calls
            assert call.tool not in task.tools
            assert interpreter.run(interpreter.calls(family.build(task.facts["values"])), "one", task.scenario)
        elif kind == "value_missing":
            family = next(f for f in FAMILIES if f.name == task.facts["family"])
            assert set(family.needed) <= task.tools.keys()
            assert not set(family.withheld) & task.tools.keys()
    assert min(kinds[kind] for kind in ("unfit", "value_missing", "tool_missing")) >= 10


def test_structures_at_each_depth(evaluation: list[Task], train: list[Task]) -> None:
    expected = {
        0: {"none"},
        1: {"single"},
        2: {"linear", "parallel"},
        3: {"linear", "parallel", "funnel", "tree", "conjunctive"},
        4: {"linear", "tree", "conjunctive", "mixed"},
        5: {"conjunctive", "mixed"},
        6: {"conjunctive", "mixed"},
    }
    for tasks in (evaluation, train):
        for depth, structures in expected.items():
            assert {task.structure for task in tasks if task.depth == depth} == structures
    for task in evaluation:
        assert task.program is not None
        filters = sum(call.tool in FILTERS for call in task.program.calls)
        assert (filters >= 2) <= (task.structure in ("conjunctive", "mixed"))
        if task.structure == "conjunctive":
            assert (task.program.structure, filters >= 2) == ("linear", True)
        elif task.structure != "mixed":
            assert task.structure == task.program.structure


def test_splits_are_balanced_and_their_tasks_differ(evaluation: list[Task], train: list[Task]) -> None:
    assert Counter(task.depth for task in evaluation) == dict.fromkeys(range(7), 40)
    assert [task.depth for task in evaluation[:14]] == [0, 1, 2, 3, 4, 5, 6] * 2
    assert [task.depth for task in train[:20]] == [0, 1, 2, 2, 3, 3, 4, 4, 5, 6] * 2
    assert len({(task.query, task.scenario, tuple(task.tools)) for task in evaluation}) == len(evaluation)
    assert len({task.query for task in evaluation if task.depth >= 3}) > 150
    domains = Counter(task.facts["domain"] for task in evaluation if task.depth >= 2)
    assert set(domains) == {"restaurants", "cars", "weather", "money"}
    assert min(domains.values()) >= 25


def test_held_out_compositions_and_texts_never_occur_in_training(
    evaluation: list[Task], corpus: ToolWorldCorpus
) -> None:
    other = ToolWorldCorpus(seed=77, mix=(0, 1, 2, 3, 4, 5, 6))
    trained = [*corpus["train"][:900], *other["train"][:900], *(task for task, _ in corpus.demonstrations(5, 900, {}))]
    held_out = [*evaluation, *other["evaluation"][:140]]
    assert {task.split for task in trained} == {"train"}
    assert {task.split for task in held_out} == {"evaluation"}
    assert not {t.facts["composition"] for t in trained} & {t.facts["composition"] for t in held_out}
    assert not {t.query for t in trained if t.depth >= 2} & {t.query for t in held_out if t.depth >= 2}


def test_a_text_of_two_calls_or_more_means_one_composition(corpus: ToolWorldCorpus, evaluation: list[Task]) -> None:
    meaning: dict[str, str] = {}
    for task in [*evaluation, *corpus["train"][:900]]:
        if task.depth >= 2:
            assert meaning.setdefault(task.query, task.facts["composition"]) == task.facts["composition"]


def test_no_text_without_a_value_is_held_out() -> None:
    for family in FAMILIES:
        trained, held_out = divided(family)
        everything = family.compositions()
        assert sorted(map(family.key, [*trained, *held_out])) == sorted({family.key(values) for values in everything})
        assert bool(held_out) == (len(everything) >= 3)
        assert len(held_out) <= len(everything) / 3
        if not family.slots:
            assert held_out == ()


def test_both_orders_of_a_pair_are_one_composition() -> None:
    rng = random.Random(0)
    for family in FAMILIES:
        values = family.compositions()[-1]
        asked = [family.ask(values, rng) for _ in range(12)]
        keys = {
            family.key({slot: tuple(sorted(each(v), key=str)) for slot, v in filled.items()}) for filled, _ in asked
        }
        assert keys == {family.key(values)}
        for filled, query in asked:
            assert all(str(value) in query for slot in filled for value in each(filled[slot]))


def test_most_draws_become_tasks() -> None:
    """The loop that draws training tasks ends soon."""
    rng, environment = random.Random(1), ToolWorld()
    for family in FAMILIES:
        trained = divided(family)[0]
        tried = [rng.choice(trained) for _ in range(8)]
        made = [make_task("", "train", family, values, environment, rng) for values in tried]
        assert sum(task is not None for task in made) >= 1, family.name
    names = {family.name for family in FAMILIES}
    assert len(names) == len(FAMILIES)


def test_the_same_seed_gives_the_same_tasks_in_any_order(corpus: ToolWorldCorpus, evaluation: list[Task]) -> None:
    fresh = ToolWorldCorpus(train_size=100, evaluation_size=9)
    late, early = fresh["evaluation"][60], fresh["evaluation"][4]
    assert (late, early) == (evaluation[60], evaluation[4])
    assert fresh["train"][-1] == corpus["train"][99]
    assert ToolWorldCorpus(seed=1)["train"][3] != corpus["train"][3]


def test_sequences_behave_like_sequences(corpus: ToolWorldCorpus) -> None:
    tasks = corpus["train"]
    assert len(tasks) == 4000
    assert tasks[0] is tasks[0]
    assert tasks[-1].id == "train-3999"
    assert [task.id for task in tasks[10:16:2]] == ["train-10", "train-12", "train-14"]
    with pytest.raises(IndexError):
        tasks[4000]


@pytest.mark.parametrize("mix", [(0, 1, 2, 2, 3, 3, 4, 4, 5, 6), (3, 1)])
def test_depths_are_known_without_making_a_task(mix: tuple[int, ...]) -> None:
    corpus = ToolWorldCorpus(train_size=31, evaluation_size=3, mix=mix)
    for split in corpus.splits:
        tasks: Any = corpus[split]
        assert isinstance(tasks, KnowsDepths)
        known = depths_of(tasks)
        assert not tasks._made
        assert list(known) == [task.depth for task in tasks] == list(depths_of(list(tasks)))


def test_tasks_are_found_by_id(corpus: ToolWorldCorpus, evaluation: list[Task]) -> None:
    assert corpus.task("evaluation-17") is evaluation[17]
    assert corpus.task("train-17").id == "train-17"
    for unknown in (
        "train-4000",
        "evaluation-280",
        "train-",
        "train",
        "",
        "test-1",
        "train--1",
        "train-٣",
        "train-1e3",
    ):
        with pytest.raises(UnknownName, match="Known: evaluation-279, train-3999"):
            corpus.task(unknown)
    with pytest.raises(UnknownName, match="Known: evaluation, train"):
        corpus["validation"]


def test_answers_need_no_tolerance(evaluation: list[Task]) -> None:
    """Whole numbers, and halves, which binary floating point holds exactly."""

    def numbers(value: Any) -> list[float]:
        if isinstance(value, dict):
            return [number for inner in value.values() for number in numbers(inner)]
        if isinstance(value, list):
            return [number for inner in value for number in numbers(inner)]
        return [value] if isinstance(value, int | float) else []

    assert all(number * 2 == int(number * 2) for task in evaluation for number in numbers(list(task.answer.values)))
