"""The corpus is drawn: families by quota, values by seed, and every candidate is proved before it is taken."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from attrs import evolve, frozen

from callwright.language.program import Call, Program, plain
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import TABLE, validate
from callwright.walk.execution import execute
from callwright.walk.tasks import Answer, Task
from callwright_plugins.depthbench.environment import made
from callwright_plugins.depthbench.families.absences import absences
from callwright_plugins.depthbench.families.compositions import compositions
from callwright_plugins.depthbench.families.family import FILTERS, Family, Step, fill, surface
from callwright_plugins.depthbench.families.phrasing import BACKGROUND, surfaces
from callwright_plugins.depthbench.families.pipelines import pipelines
from callwright_plugins.depthbench.families.quotas import COMPOUNDS, QUOTAS
from callwright_plugins.depthbench.families.singles import singles
from callwright_plugins.depthbench.mended.families import SAME_VALUE, is_mended
from callwright_plugins.depthbench.mended.regrouping import equally_right
from callwright_plugins.depthbench.proofs import arranged, equals, orders, right, scalars, shorter, survivors
from callwright_plugins.depthbench.refute import idle_bounds, refutations, right_so_far, wrong_programs
from callwright_plugins.depthbench.specifications import specifications
from callwright_plugins.depthbench.tools import SPLIT
from callwright_plugins.depthbench.world import (
    CONTEXTS,
    V1,
    Context,
    Version,
    context,
    pick,
    shuffled,
    stream,
    within,
    world,
)

_TRIES: Final = 400

#: How several independent requests are put together; ``{a}`` starts a sentence, ``{b}`` and ``{rest}`` do not.
TOGETHER: Final = (
    "{A}, and {b}.",
    "Please {a}, and {b}.",
    "Could you {a}, and also {b}?",
    "Several things at once: {a}, and {b}.",
    "{A}. And while you're at it, {b}.",
    "I'd like you to {a}, and then, quite apart from that, {b}.",
    "Hi! {A}; {b}. Thank you!",
    "I have a few unrelated requests: {a}; {b}.",
    "Can you do these for me: {a}, {b}?",
    "My list for you: {a}, {b}. I want all the results.",
    "{A}; besides, {b}, please.",
    "When you have a minute: {a}, and {b}. I need every answer.",
    "Help me with this, would you? {A}, and {b}.",
)


NOTHING: Final = Program()


@frozen
class Row:
    """A task as it is shipped, but for its id."""

    task: Task
    family: str
    phrasing: str
    kind: str
    compound: str
    #: What would answer if the missing tools were offered; empty where nothing would.
    would: Program = NOTHING
    #: Further worlds in which its wrong programs are wrong, where the version is judged in several.
    scenarios: tuple[str, ...] = ()


class Generator:
    """Draws tasks that are sound; the same seed gives the same tasks on every machine."""

    def __init__(self, report: Callable[[str], object] = lambda text: None, version: Version = V1) -> None:
        self.environment = made(version)
        self.version = version
        self.report = report
        self.rejected: Counter[str] = Counter()
        self._queries: set[str] = set()
        self._programs: set[str] = set()
        self._used: Counter[str] = Counter()
        self._families: Counter[str] = Counter()

    def rows(self) -> Iterator[Row]:
        """All tasks: by split, then by depth, the structures of a depth in a seeded order."""
        for split, depths in QUOTAS.items():
            for depth, quotas in depths.items():
                plan = [name for name, count in quotas.items() for _ in range(count)]
                with within(world(0, self.version)):
                    compounds = iter(_compounds(split))
                    plan = shuffled(stream(f"plan/{split}/{depth}"), plan)
                for number, structure in enumerate(plan):
                    compound = next(compounds) if depth == 6 and structure == "mixed" else None
                    yield self.row(split, depth, structure, compound, f"{split}/{depth}/{number}")
                self.report(f"{split} depth {depth}: {len(plan)} tasks")

    def row(self, split: str, depth: int, structure: str, compound: str | None, key: str) -> Row:
        """One task of a kind. Raises :class:`RuntimeError` if none is found."""
        with within(world(0, self.version)):
            return self._row(split, depth, structure, compound, key)

    def _row(self, split: str, depth: int, structure: str, compound: str | None, key: str) -> Row:
        rng = stream(f"task/{key}")
        for _ in range(_TRIES):
            family = self._family(split, depth, structure, compound, rng)
            row = self._candidate(family, split, structure, rng)
            if row is not None:
                self._families[family.name] += 1
                for call in (row.task.program or Program()).calls:
                    self._used[call.tool] += 1
                self._queries.add(row.task.query)
                self._programs.add(_key(row.task))
                return row
        raise RuntimeError(f"no sound task of split {split}, depth {depth}, structure {structure}")

    def _family(self, split: str, depth: int, structure: str, compound: str | None, rng: random.Random) -> Family:
        if structure == "parallel":
            return _parallel(split, depth, rng, self._used)
        options = _catalogue(split, depth, structure)
        if not self.version.margins:
            options = tuple(family for family in options if is_mended(family))
        if compound is not None:
            options = tuple(family for family in options if compound_of(family.program_shape()) == compound)
        sample = [pick(rng, options) for _ in range(24)] if len(options) > 24 else list(options)

        def burden(family: Family) -> tuple[float, float]:
            rare = min((self._used[step.tool] for step in family.steps), default=0)
            return self._families[family.name] + 0.2 * rare, rng.random()

        return min(sample, key=burden) if rng.random() < 0.8 else pick(rng, sample)

    def _candidate(self, family: Family, split: str, structure: str, rng: random.Random) -> Row | None:
        user = context(int(rng.random() * CONTEXTS))
        values = family.draw(rng, user)
        query, phrasing = family.phrase(values, rng)
        if query in self._queries:
            return self._reject("prompt taken")
        gold = family.program(values)
        if gold.calls:
            gold = arranged(gold, pick(rng, list(orders(gold))))
        if family.kind:
            return self._absence(family, split, gold, query, phrasing, user, rng)
        missing = unsaid(family, gold, query)
        if missing:
            return self._reject("value not said")
        trace = execute(gold, self.environment, self.environment.tools, scenario=user.key)
        if any(step.outcome.kind != "ok" or _hollow(step.outcome.value) for step in trace.records):
            return self._reject("empty or failed")
        called = list(dict.fromkeys(call.tool for call in gold.calls))
        offered = self._offer(split, called, (), rng)
        task = Task(
            id="",
            query=query,
            tools={name: self.environment.tools[name] for name in offered},
            answer=Answer(json.loads(json.dumps(trace.returned, ensure_ascii=False))),
            environment=self.environment,
            scenario=user.key,
            split=split,
            depth=gold.depth,
            chain=gold.chain,
            structure=structure_of(gold),
            returns=gold.returns,
            program=gold,
        )
        task = evolve(task, answer=Answer(tuple(task.answer.values), equally_right(task, user.key)))
        if task.structure != structure:
            return self._reject("other structure")
        if _key(task) in self._programs:
            return self._reject("program taken")
        if not validate(gold, task.tools).valid:
            return self._reject("invalid")
        scenarios = self._other_worlds(task)
        if scenarios is None:
            return self._reject("a mutation survives")
        if not all(right(task.answer, other, self.environment, task.tools, task.scenario) for other in equals(gold)):
            return self._reject("an equal program fails")
        if shorter(task) is not None:
            return self._reject("a shorter program")
        return Row(task, family.name, phrasing, "", compound_of(gold), scenarios=tuple(scenarios))

    def _other_worlds(self, task: Task) -> list[str] | None:
        """Worlds in which what is wrong is wrong; ``None`` if a wrong program is right in all, or skips a call in one.

        With margins the world of the task alone tells them apart.
        """
        if self.version.margins:
            return None if survivors(task) else []
        left = right_so_far(task, wrong_programs(task))
        if any(one.what.startswith(("drop", "skip")) for one in left):
            return None
        scenarios, others = refutations(task, left)
        return None if others or idle_bounds(task, scenarios) else scenarios

    def _absence(
        self, family: Family, split: str, gold: Program, query: str, phrasing: str, user: Context, rng: random.Random
    ) -> Row | None:
        called = list(dict.fromkeys(call.tool for call in gold.calls))
        if family.kind == "missing value":
            offered = self._offer(split, called, family.withheld, rng)
        else:
            offered = self._offer(
                split,
                called or _some(split, rng),
                family.withheld or ("",),
                rng,
                needed=not family.spoken and family.home == "",
            )
            offered = [name for name in offered if name not in family.withheld]
            if family.home:
                offered = offered[:5]
            elif unsaid(family, gold, query):
                return self._reject("value not said")
        tools = {name: self.environment.tools[name] for name in offered}
        if gold.calls and family.kind != "missing value":
            trace = execute(gold, self.environment, self.environment.tools, scenario=user.key)
            if not trace.executed or any(step.outcome.kind != "ok" for step in trace.records):
                return self._reject("empty or failed")
            would = Task("", query, tools, Answer(trace.returned), self.environment, user.key, program=_longer(gold))
            if shorter(would, most=1500) is not None:
                return self._reject("the missing tool is not needed")
        task = Task(
            id="", query=query, tools=tools, answer=Answer(), environment=self.environment, scenario=user.key,
            split=split, depth=0, chain=0, structure="none", returns="one", program=Program(),
        )  # fmt: skip
        return Row(task, family.name, phrasing, family.kind, "", Program() if family.kind == "missing value" else gold)

    def _offer(
        self, split: str, called: Sequence[str], withheld: Iterable[str], rng: random.Random, *, needed: bool = True
    ) -> list[str]:
        """The tools of a task in a random order: the called ones, and three to five others that resemble them."""
        barred = {*called, *withheld}
        if not self.version.margins:
            barred |= {SAME_VALUE[name] for name in called if name in SAME_VALUE}
        wanted = 3 + int(rng.random() * 3)
        ranked: list[str] = []
        pools = {name: _resembling(name) for name in called}
        while len(ranked) < wanted:
            name = pick(rng, called)
            pool = [other for other in pools[name] if other not in barred and other not in ranked]
            if not any(_alike(name, other) for other in pool):  # then another target's likes come first
                likes = [other for n in called for other in pools[n] if _alike(n, other)]
                pool = [other for other in likes if other not in barred and other not in ranked] or pool
            ranked.append(pick(rng, pool[:5]))
        return shuffled(rng, [*(called if needed else ()), *ranked])

    def _reject(self, reason: str) -> Row | None:
        self.rejected[reason] += 1
        return None


# Shapes ---------------------------------------------------------------------------------------------------------------


def structure_of(program: Program) -> str:
    """The graph's structure; a chain with two or more filters, which commute, is conjunctive."""
    shape = program.structure
    filters = sum(call.tool in FILTERS for call in program.calls)
    return "conjunctive" if shape == "linear" and filters > 1 else shape


def compound_of(program: Program) -> str:
    """``funnel-tree``: a join of independent results whose result several calls use.

    ``funnel-conjunction``: such a join that two or more filters of one chain follow. Filters themselves are no joins
    here. Empty for everything else.
    """
    ins: Counter[int] = Counter(later for _, later in program.edges)
    outs: Counter[int] = Counter(earlier for earlier, _ in program.edges)
    for place, call in enumerate(program.calls):
        if ins[place] > 1 and call.tool not in FILTERS and not _same_source(program, place):
            after = {place}
            for earlier, later in program.edges:
                if earlier in after:
                    after.add(later)
            if any(outs[node] > 1 for node in after):
                return "funnel-tree"
            if sum(program.calls[node].tool in FILTERS for node in after) > 1:
                return "funnel-conjunction"
    return ""


def _same_source(program: Program, place: int) -> bool:
    """Whether all that a call uses descends from one result."""
    parents = [earlier for earlier, later in program.edges if later == place]
    return any(all(a == b or (a, b) in program.edges for b in parents) for a in parents)


def _hollow(value: Any) -> bool:
    return isinstance(value, dict) and any(inner in ([], {}) and name != "attendees" for name, inner in value.items())


def _longer(program: Program) -> Program:
    """The program with one call more, so that the search for shorter ones includes its own length."""
    return evolve(program, calls=(*program.calls, Call(len(program.calls), "none", {})))


def _key(task: Task) -> str:
    program = task.program or Program()
    return json.dumps(
        [task.scenario, task.query * (not program.calls), [[c.tool, plain(c.arguments)] for c in program.calls]]
    )


def _compounds(split: str) -> list[str]:
    half = COMPOUNDS[split]
    return shuffled(stream(f"compounds/{split}"), ["funnel-tree"] * half + ["funnel-conjunction"] * half)


def _some(split: str, rng: random.Random) -> list[str]:
    return shuffled(rng, [name for name, home in SPLIT.items() if home == split])[:2]


# Families by shape ----------------------------------------------------------------------------------------------------


@cache
def _catalogue(split: str, depth: int, structure: str) -> tuple[Family, ...]:
    if depth == 0:
        found = [family for family in absences() if family.split == split and family.kind == structure]
    else:
        everything = (*singles(), *compositions(), *pipelines())
        found = [
            family
            for family in everything
            if family.split == split and family.depth == depth and structure_of(family.program_shape()) == structure
        ]
    if structure == "no tool":  # half of them are about something else altogether
        off = [family for family in found if not family.steps]
        found = [*off * (1 + (len(found) - len(off)) // len(off)), *(family for family in found if family.steps)]
    return tuple(found)


def _parallel(split: str, depth: int, rng: random.Random, used: Mapping[str, int]) -> Family:
    """Independent requests as one family; each of them keeps its own slots."""
    options = [family for family in singles() if family.split == split]
    chosen = shuffled(rng, options)[:depth]
    if rng.random() < 0.3:  # the same tool twice, with other values
        chosen[1] = chosen[0] if any(True for _ in chosen[0].slots()) else chosen[1]
    plan: list[Step] = []
    parts: list[Family] = []
    for number, family in enumerate(chosen):
        rename = {
            slot: f"{slot.rstrip('0123456789')}{10 * number + index + 1}" for index, slot in enumerate(family.slots())
        }
        plan += [Step(step.tool, _renamed(step.arguments, rename)) for step in family.steps]
        parts.append(evolve(family, forms=tuple(evolve(f, text=_respoken(f.text, rename)) for f in family.forms)))
    return ParallelFamily(
        name="parallel/" + "+".join(step.tool for step in plan),
        domain=chosen[0].domain,
        steps=tuple(plan),
        forms=(),
        returns="all",
        parts=tuple(parts),
    )


@frozen
class ParallelFamily(Family):
    """Several single calls side by side; ``parts`` keep their own forms."""

    parts: tuple[Family, ...] = ()

    def phrase(self, values: dict[str, Any], rng: random.Random) -> tuple[str, str]:
        """The requests of the parts in one of :data:`TOGETHER`."""
        texts = [next(form.text for form in part.forms if form.mood == "request") for part in self.parts]
        frame = pick(rng, TOGETHER)
        spoken = {slot: surface(value, rng) for slot, value in values.items()}
        order = shuffled(rng, texts)
        phrasing = _together(frame, order)
        text = _together(frame, [fill(part, spoken) for part in order])
        if rng.random() < 0.2:
            text = f"{pick(rng, BACKGROUND[self.domain])} {text}"
        return text, phrasing


def _together(frame: str, parts: Sequence[str]) -> str:
    first, *others = parts
    between = "; " if ";" in frame else ", "
    rest = (
        between.join([*others[:-1], f"and {others[-1]}"])
        if len(others) > 1 and ", and {b}" not in frame
        else between.join(others)
    )
    if ", and {b}" in frame and len(others) > 1:
        first, rest = f"{first}{between}{between.join(others[:-1])}", others[-1]
    return frame.replace("{A}", first[:1].upper() + first[1:]).replace("{a}", first).replace("{b}", rest)


def _renamed(value: Any, rename: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _renamed(inner, rename) for name, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, rename) for inner in value]
    return f"${rename[value[1:]]}" if isinstance(value, str) and value.startswith("$") else value


def _respoken(text: str, rename: Mapping[str, str]) -> str:
    for old, new in rename.items():
        text = text.replace(f"{{{old}}}", f"{{\0{new}}}")
    return text.replace("\0", "")


# Checks ---------------------------------------------------------------------------------------------------------------


def unsaid(family: Family, program: Program, query: str) -> list[Any]:
    """The values of the slots of a program that the query does not say."""
    fixed = {leaf for step in family.steps for _, leaf in scalars(step.arguments) if isinstance(leaf, str)}
    lowered = query.lower()
    return [
        value
        for call in program.calls
        for _, value in scalars(call.arguments)
        if value not in fixed and not any(said.lower() in lowered for said in surfaces(value))
    ]


def similar(one: ToolSpec, other: ToolSpec) -> int:
    """How much two tools resemble one another in parameters and results; 0 for not at all."""
    mine, theirs = _parameters(one), _parameters(other)
    score = 3 * len(mine & theirs)
    if mine == theirs:
        score += 6
    if one.result == other.result:
        score += 6
    elif _bare(one) == _bare(other):
        score += 1
    if sorted(kind for _, kind in mine) == sorted(kind for _, kind in theirs):
        score += 1
    return score


def _alike(one: str, other: str) -> bool:
    """Whether two tools share a parameter or the whole result, not only the types of them."""
    return similar(specifications()[one], specifications()[other]) >= 3


@cache
def _resembling(name: str) -> tuple[str, ...]:
    """The tools of the same split that resemble one, the most alike first."""
    tools = specifications()
    scored = [
        (-similar(tools[name], spec), other)
        for other, spec in tools.items()
        if other != name and SPLIT[other] == SPLIT[name] and similar(tools[name], spec)
    ]
    return tuple(other for _, other in sorted(scored))


def _parameters(spec: ToolSpec) -> frozenset[tuple[str, str]]:
    return frozenset(
        (name, "table" if schema.get(TABLE) else str(schema.get("type")))
        for name, schema in spec.parameters["properties"].items()
    )


def _bare(spec: ToolSpec) -> str:
    """The type of what a bare reference to a result means."""
    result: Any = spec.result or {}
    if spec.result_field is not None:
        result = result.get("properties", {}).get(spec.result_field, {})
    return str(result.get("type"))
