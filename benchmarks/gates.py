"""Gates: whether eight kinds of bad task are rejected with the right reason, and how many good ones are lost.

    python benchmarks/gates.py [--each 100]

Good tasks are calls that exploration saw execute, worded by the grammar. A bad one is a good one in which one thing is
spoiled. The last column is processor time for all gates of one task.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import click
from attrs import evolve, frozen

import callwright as cw
from callwright.environments.protocol import Environment
from callwright.errors import CallwrightError
from callwright.language.program import Call, Program, plain
from callwright.plugins import default_registry
from callwright.walk.tasks import Answer, Task
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Stage
from callwright_plugins.synthesis.dialogue.shown import members_of
from callwright_plugins.synthesis.exploration.explored import explore
from callwright_plugins.synthesis.gates import gate
from callwright_plugins.synthesis.gates.comparing import Compared, compared
from callwright_plugins.synthesis.gates.mutants import is_entity
from callwright_plugins.synthesis.gates.provenance import secrets
from callwright_plugins.synthesis.gates.running import run
from callwright_plugins.synthesis.language.environments import grammar_for
from callwright_plugins.synthesis.language.grammar import Grammar
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.styles import Style

ENVIRONMENTS = ("banking", "crm", "email", "calendar", "shopping", "iot_devices", "filesystem", "team_chat")
#: The stage and the reasons by which each kind has to be found out.
RIGHT: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "unsolvable": ("replay", ("calls of the reference fail",)),
    "already solved": ("sound", ("doing nothing earns it",)),
    "ambiguous": (
        "unambiguous",
        (
            "the query leaves open what nobody tells",
            "the query may mean several things",
            "several things have the name that the query says",
        ),
    ),
    "foreign entity": (
        "unambiguous",
        (
            "the query names a thing that is not there",
            "the query asks for something else",
            "the reference takes another thing than was told of",
        ),
    ),
    "leaked secret": ("provenance", ("a secret from nowhere",)),
    "wrong gold": ("sound", ("the reference misses the goal", "the reference does not come to the answer")),
    "brittle answer": ("not brittle", ("another way to the same end earns less",)),
    "near-duplicate": ("duplicates", ("nearly the same calls", "nearly the same words")),
}


@frozen
class Good:
    """A good task, and the grammar that worded it."""

    task: Task
    grammar: Grammar


def worlds(
    names: Sequence[str], seeds: Sequence[int], calls: int
) -> Iterator[tuple[Environment, int, tuple[Call, ...]]]:
    """Sequences of one to three calls that execute, in fresh worlds."""
    for name in names:
        environment = cw.environment(name)
        for seed in seeds:
            found = explore(environment, seeds=(seed,), calls=calls)
            for tool in sorted(found.witnesses):
                for witness in found.witnesses[tool]:
                    if len(witness.calls) <= 3:
                        yield environment, seed, tuple(witness.calls)


def made(environment: Environment, grammar: Grammar, seed: int, calls: Sequence[Call], name: str) -> Task | None:
    """The task of some calls; ``None`` where no words say it, or where there is nothing to be asked for."""
    tools = {key: spec for key, spec in environment.tools.items() if not spec.hidden}
    plan = Plan.of([Call(place, call.tool, dict(call.arguments)) for place, call in enumerate(calls)])
    try:
        query = grammar.render(plan, Style(), seed)
    except CallwrightError:
        return None
    bare = Task(name, query.text, tools, Answer(), environment, seed=seed)
    found = run(bare, [plan.program])
    value = found.values[-1] if found.values else None
    if any(one.outcome.failed for one in found.records) or (not found.changes and not _says_something(value)):
        return None
    return evolve(
        bare,
        answer=Answer((value,)),
        program=plan.program,
        depth=len(calls),
        facts={
            **({"goal": {"state": found.state}} if found.changes else {}),
            "gold": [_turn(plan.calls), {"say": "It is done."}],
            "blueprint": _blueprint(environment, seed, plan).to_json(),
            "kind": "task",
            "teacher": "scripted",
        },
    )


def _blueprint(environment: Environment, seed: int, plan: Plan) -> Blueprint:
    return Blueprint(environment.name, "", seed, "task", (Stage(plan, plan.calls),), tuple(environment.tools))


def _turn(calls: Sequence[Call]) -> dict[str, Any]:
    return {"calls": [{"tool": call.tool, "arguments": plain(call.arguments)} for call in calls]}


def _says_something(value: Any) -> bool:
    return len({str(inner) for _, inner, _ in members_of(value)}) >= 4


def good_tasks(names: Sequence[str] = ENVIRONMENTS, seeds: Sequence[int] = (0, 1), calls: int = 1500) -> list[Good]:
    """Good tasks of several environments."""
    registry = default_registry()
    found: list[Good] = []
    for number, (environment, seed, path) in enumerate(worlds(names, seeds, calls)):
        grammar = grammar_for(environment, registry)
        task = made(environment, grammar, seed, path, f"{environment.name}-{number}")
        if task is not None:
            found.append(Good(task, grammar))
    Random("good").shuffle(found)
    return found


# Spoiling -------------------------------------------------------------------------------------------------------------


def _with_gold(task: Task, calls: Sequence[Call]) -> Task:
    program = Program(tuple(calls))
    return evolve(task, program=program, facts={**task.facts, "gold": [_turn(calls), {"say": "It is done."}]})


def _unspoken(task: Task, *keys: str) -> Task:
    """Without a blueprint: somebody else's words, which no grammar reads."""
    return evolve(
        task, facts={key: value for key, value in task.facts.items() if key not in ("blueprint", "teacher", *keys)}
    )


def unsolvable(good: Good, random: Random) -> Task | None:
    """A tool that the reference needs is not offered."""
    task = good.task
    assert task.program is not None
    gone = task.program.calls[-1].tool
    return evolve(task, tools={name: spec for name, spec in task.tools.items() if name != gone})


def already_solved(good: Good, random: Random) -> Task | None:
    """A goal that asks for nothing to become so."""
    task = good.task
    state = task.facts.get("goal", {}).get("state")
    if not isinstance(state, Mapping) or not state.get("tables"):
        return None
    allowed = [{"table": name, "must": False} for name in state["tables"]]
    return evolve(task, facts={**task.facts, "goal": {"changed": allowed}})


def ambiguous(good: Good, random: Random) -> Task | None:
    """The query leaves out what is needed, and there is nobody to ask."""
    task = good.task
    assert task.program is not None
    query = good.grammar.render(Plan(task.program.calls), Style(information="missing"), random.randrange(1 << 30))
    if any(
        dict(secrets(task.tools[task.program.calls[one.call].tool], {one.argument: one.value}))
        for one in query.withheld
    ):
        return None  # a secret from nowhere is a kind of its own
    return evolve(task, query=query.text) if query.withheld else None


def foreign_entity(good: Good, random: Random) -> Task | None:
    """The query names another thing than the one that the reference takes."""
    task = good.task
    assert task.program is not None
    for call in task.program.calls:
        for name, value in call.arguments.items():
            if is_entity(name, value) and any(one.isdigit() for one in value):
                other = "".join(str((int(one) + 5) % 10) if one.isdigit() else one for one in value)
                calls = [_where(one, value, other) for one in task.program.calls]
                spoiled = evolve(task, query=good.grammar.render(Plan(tuple(calls)), Style(), 1).text)
                return spoiled if random.random() < 0.5 else _unspoken(spoiled)
    return None


def _where(call: Call, value: str, other: str) -> Call:
    return Call(call.id, call.tool, {key: other if held == value else held for key, held in call.arguments.items()})


def leaked_secret(good: Good, random: Random) -> Task | None:
    """The reference knows a secret that nobody has told."""
    task = good.task
    assert task.program is not None
    calls = task.program.calls
    held = {(call.id, name): value for call in calls for name, value in secrets(task.tools[call.tool], call.arguments)}
    if not held:
        return None
    told = good.grammar.render(Plan(calls).without(held), Style(), 2).text
    shown = {str(inner) for value in run(task, [task.program]).values for _, inner, _ in members_of(value)}
    if any(str(value) in told or str(value) in shown for value in held.values()):
        return None
    return evolve(task, query=told)


def wrong_gold(good: Good, random: Random) -> Task | None:
    """The reference takes another thing, or another value, than what the answer is of."""
    task = good.task
    assert task.program is not None
    calls = task.program.calls
    gold = run(task, [task.program])
    for call in reversed(calls):
        for name, value in call.arguments.items():
            for other in _other(value):
                changed = [
                    evolve(one, arguments={**one.arguments, name: other}) if one is call else one for one in calls
                ]
                found = run(task, [Program(tuple(changed))])
                same = found.leaves_as(gold) if gold.changes else task.answer.values[0] in found.values
                if not same and not any(one.outcome.failed for one in found.records):
                    return _with_gold(task, changed)
    return None


def _other(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, max(0, value - 1))
    elif isinstance(value, str) and value:
        for step in (1, 2, 3):
            yield "".join(str((int(one) + step) % 10) if one.isdigit() else one for one in value)


def brittle_answer(good: Good, random: Random) -> Task | None:
    """The goal names a row by the id that it happened to get, one of two in either order."""
    task = good.task
    assert task.program is not None
    call = task.program.calls[-1]
    if task.tools[call.tool].read_only:
        return None
    for name, value in call.arguments.items():
        if not isinstance(value, str) or is_entity(name, value) or len(value) < 3:
            continue
        again = Call(len(task.program.calls), call.tool, {**call.arguments, name: f"{value} {random.choice(_MORE)}"})
        turns = [Program((*task.program.calls, again))]
        found = run(task, turns)
        if any(one.outcome.failed for one in found.records) or not isinstance(found.state, Mapping):
            continue
        swapped = run(
            task, [Program((*task.program.calls[:-1], Call(90, call.tool, again.arguments), evolve(call, id=91)))]
        )
        if not swapped.leaves_as(found) or swapped.state == found.state:
            continue
        holds = _literal_rows(found.state)
        if not holds:
            continue
        longer = _unspoken(_with_gold(task, turns[0].calls))
        return evolve(longer, facts={**longer.facts, "goal": {"holds": holds}})
    return None


_MORE = ("too", "as well", "once more", "also")


def _literal_rows(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    tables = state.get("tables", {})
    holds = []
    if any(key != "new" for held in tables.values() for key in held):
        return []
    for table, held in tables.items():
        for row in held.get("new", ()):
            if "id" in row:
                where = {
                    key: value
                    for key, value in row.items()
                    if isinstance(value, str | int | bool) and key[-3:] != "_at"
                }
                holds.append({"table": table, "where": where})
    return holds if {one["table"] for one in holds} == set(tables) else []


SPOILING: Mapping[str, Callable[[Good, Random], Task | None]] = {
    "unsolvable": unsolvable,
    "already solved": already_solved,
    "ambiguous": ambiguous,
    "foreign entity": foreign_entity,
    "leaked secret": leaked_secret,
    "wrong gold": wrong_gold,
    "brittle answer": brittle_answer,
}


def planted(goods: Sequence[Good], kind: str, most: int) -> list[Task]:
    """Bad tasks of a kind, each made of another good one."""
    found: list[Task] = []
    for number in range(4 * len(goods)):  # where few can be spoiled so, in several ways
        if len(found) >= most:
            break
        again, place = divmod(number, len(goods))
        good = goods[place]
        try:
            task = SPOILING[kind](good, Random(f"{kind}/{good.task.id}/{again}"))
        except CallwrightError:  # no words say it
            continue
        if task is not None and task not in found:
            found.append(task)
    return found


def duplicates_found(goods: Sequence[Good], most: int) -> Counter[str]:
    """How many of ``most`` copies with other words and one other value are found, beside all good tasks."""
    tasks = [Compared.of_task(good.task) for good in goods]
    copies = []
    for good in goods[:most]:
        one = Compared.of_task(good.task)
        query = good.grammar.render(Plan(one.calls), Style(), 12345).text
        copies.append(evolve(one, id=f"{one.id}-again", text=query))
    verdicts = compared([*tasks, *copies])[len(tasks) :]
    return Counter("right" if one is not None and one.stage == "duplicates" else "passed" for one in verdicts)


def outcome(task: Task, kind: str) -> str:
    """``right``, ``passed``, or the stage and the reason by which a bad task was rejected otherwise."""
    rejected = gate(task).rejected
    if rejected is None:
        return "passed"
    stage, reasons = RIGHT[kind]
    return "right" if rejected.stage == stage and rejected.reason in reasons else f"{rejected.stage}: {rejected.reason}"


@click.command()
@click.option("--each", default=100, show_default=True, help="Bad tasks of each kind.")
@click.option("--seeds", default=10, show_default=True, help="Worlds of each environment.")
@click.option("--show", default=5, show_default=True, help="Cases that went otherwise, of each kind.")
def main(each: int, seeds: int, show: int) -> None:
    """Print a row for each kind of bad task, and one for the good ones."""
    began = time.process_time()
    goods = good_tasks(seeds=range(seeds))
    click.echo(f"{len(goods)} good tasks of {len(ENVIRONMENTS)} environments in {time.process_time() - began:.0f} s")
    click.echo(f"{'kind':16} {'tasks':>6} {'right':>6} {'otherwise':>10} {'ms each':>8}")
    began = time.process_time()
    lost: Counter[str] = Counter()
    names: dict[str, list[str]] = {}
    for good in goods:
        rejected = gate(good.task).rejected
        if rejected is not None:
            reason = f"{rejected.stage}: {rejected.reason}"
            lost[reason] += 1
            names.setdefault(reason, []).append(f"{good.task.query} {dict(rejected.evidence)}"[:400])
    took = (time.process_time() - began) / max(1, len(goods)) * 1e3
    click.echo(f"{'good':16} {len(goods):>6} {len(goods) - lost.total():>6} {lost.total():>10} {took:>8.1f}")
    for reason, count in lost.most_common():
        click.echo(f"    {count} {reason}")
        for one in names[reason][:show]:
            click.echo(f"        {one}")
    for kind in SPOILING:
        tasks = planted(goods, kind, each)
        began = time.process_time()
        counts = Counter(outcome(task, kind) for task in tasks)
        took = (time.process_time() - began) / max(1, len(tasks)) * 1e3
        other = len(tasks) - counts["right"]
        click.echo(f"{kind:16} {len(tasks):>6} {counts['right']:>6} {other:>10} {took:>8.1f}")
        for said, count in counts.most_common():
            if said != "right":
                click.echo(f"    {count} {said}")
    counts = duplicates_found(goods, each)
    click.echo(f"{'near-duplicate':16} {counts.total():>6} {counts['right']:>6} {counts['passed']:>10}")


if __name__ == "__main__":
    main()
