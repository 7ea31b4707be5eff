"""Pipelines: a table from somewhere, conditions that commute, a choice, and something about what was chosen.

Each part says itself, so a pipeline of any parts has its forms; conditions are said in every order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from callwright_plugins.depthbench.families.family import Family, Step, joined, steps
from callwright_plugins.depthbench.families.parts import PARTS, Choice, Condition, DomainParts, Sequel, Source
from callwright_plugins.depthbench.families.phrasing import Form


def _assemble(
    parts: DomainParts, source: Source, conditions: Sequence[Condition], choice: Choice | None, sequel: Sequel | None
) -> tuple[Step, ...]:
    made = list(source.calls)
    nested: dict[int, Any] = {}
    table = len(made) - 1
    for condition in conditions:
        before = ""
        if condition.before:
            made.append(condition.before)
            before = f"@{len(made) - 1}"
        made.append(condition.call.replace("=@t", f"=@{table}").replace("@b", before))
        table = len(made) - 1
    if choice is not None:
        made.append(choice.call.replace("=@t", f"=@{table}"))
    if sequel is not None:
        if sequel.nested:
            nested[len(made)] = sequel.nested
        made.append(sequel.call.replace("=@t", f"=@{table}").replace("=@c", f"=@{len(made) - 1}"))
    return steps(*((text, nested.get(place, {})) for place, text in enumerate(made)))


def _forms(
    parts: DomainParts, source: Source, conditions: Sequence[Condition], choice: Choice | None, sequel: Sequel | None
) -> tuple[Form, ...]:
    made: list[Form] = []
    table = f"{parts.things} {source.where}".rstrip(",")
    aside = f"{parts.things} {source.where}"
    for order in list(itertools.permutations(condition.said for condition in conditions))[:6]:
        that = f"{aside} that {joined(order)}" if order else table
        where = source.where.rstrip(",")
        only = f", but only for those that {joined(order)}" if order else ""
        if choice is None and sequel is None:
            made += [
                Form("request", f"find the {that}"),
                Form("question", f"which of the {aside} {joined(order)}"),
                Form("thing", f"all the {that}"),
                Form("request", f"look for {parts.things} {where}{only}"),
                Form("request", f"list {parts.things} that {joined(order)}, {where}"),
            ]
        elif choice is None and sequel is not None:
            them = f"the {that}"
            made += [
                Form("request", sequel.request.replace("{them}", them)),
                Form("thing", sequel.thing.replace("{them}", them)),
                Form("request", f"look for the {that}, and {sequel.request.replace('{them}', 'of them')}"),
                Form("question", f"could I have {sequel.thing.replace('{them}', them)}"),
            ]
        elif choice is not None and sequel is None:
            made += [
                Form("request", f"find the {choice.said} of the {that}"),
                Form("question", f"of the {that}, which is the {choice.said}"),
                Form("thing", f"the {choice.said} of all the {that}"),
                Form("request", f"look for {that}, and pick the {choice.said}"),
                Form("question", f"which is the {choice.said} of those {that}"),
            ]
            if order:
                made.append(Form("thing", f"the {choice.said} of all {parts.things} that {joined(order)}, {where}"))
        elif choice is not None and sequel is not None:
            it = f"the {choice.said} of the {that}"
            apart = f"the {choice.said} of all {parts.things} that {joined(order)}, {where}" if order else ""
            made += [
                Form("request", sequel.request.replace("{it}", it)),
                Form("thing", sequel.thing.replace("{it}", it)),
                Form(
                    "request",
                    f"find the {that}, pick the {choice.said}, and {sequel.request.replace('{it}', 'that one')}",
                ),
                Form("question", f"could I have {sequel.thing.replace('{it}', it)}"),
                *([Form("thing", sequel.thing.replace("{it}", apart))] if order else []),
                Form(
                    "question",
                    f"among the {that}, take the {choice.said}: can I get {sequel.thing.replace('{it}', 'that one')}",
                ),
            ]
    return tuple(dict.fromkeys(made))


def _all(parts: DomainParts) -> Iterator[Family]:
    ends: list[tuple[Choice | None, Sequel | None]] = [(None, None)]
    ends += [(choice, None) for choice in parts.choices]
    ends += [(choice, sequel) for choice in parts.choices for sequel in parts.sequels]
    ends += [(None, sequel) for sequel in parts.whole]
    for number, source in enumerate(parts.sources):
        for count in range(4):
            for conditions in itertools.combinations(parts.conditions, count):
                tools = [condition.call.split()[0] for condition in conditions]
                if len(set(tools)) < count:
                    continue
                for choice, sequel in ends:
                    plan = _assemble(parts, source, conditions, choice, sequel)
                    if not 2 <= len(plan) <= 6 or (choice is None and sequel is None and not count):
                        continue
                    joins = len([call for call in source.calls[-1].split() if "=@" in call]) > 1
                    yield Family(
                        name=f"pipeline/{parts.domain}/{number}/" + "+".join(step.tool for step in plan),
                        domain=parts.domain,
                        steps=plan,
                        forms=_forms(parts, source, conditions, choice, sequel),
                        conjunctive=count > 1,
                        compound="funnel-conjunction" if joins and count > 1 else "",
                    )


@cache
def pipelines() -> tuple[Family, ...]:
    """Every pipeline of two to six calls. A conjunction after a funnel needs six."""
    return tuple(family for parts in PARTS for family in _all(parts) if family.depth == 6 or not family.compound)
