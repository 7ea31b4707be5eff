"""Unambiguous: what a query says means one thing, and that is what the reference does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from callwright.language.program import Call, Program, plain
from callwright.training.synthesis.units import Rejected
from callwright.training.teaching.teacher import Teacher
from callwright_plugins.synthesis.blueprints.blueprint import Stage, told_before
from callwright_plugins.synthesis.dialogue.back_translation import translated_back
from callwright_plugins.synthesis.dialogue.shown import members_of, shape
from callwright_plugins.synthesis.gates.case import Case
from callwright_plugins.synthesis.gates.hearing import Heard, hearings, requests, told_when_asked
from callwright_plugins.synthesis.gates.mutants import is_entity
from callwright_plugins.synthesis.language.environments import grammar_for
from callwright_plugins.synthesis.language.grammar import Grammar
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.values.names import Names, names_in

#: The fact of a task that says who has its words.
TEACHER: Final = "teacher"
SCRIPTED: Final = "scripted"
#: What looks like the id of a thing: letters, then three digits or more.
_ID: Final = re.compile(r"(?<![\w#/.-])[A-Z]{1,6}[-_]?\d{3,}(?![\w-])")


class Unambiguous:
    """The gate ``unambiguous``."""

    name: Final = "unambiguous"

    def __call__(self, case: Case) -> Rejected | None:
        """Things that are not there, that nobody told of, or that share a name; a query that says something else."""
        if not case.turns:
            return None
        return self._foreign(case) or self._read_back(case) or self._untold(case) or self._shared(case)

    def _foreign(self, case: Case) -> Rejected | None:
        if case.kind in ("failing", "abstention"):  # that it is not there may be the rule by which they fail
            return None
        met = {
            str(value) for one in case.gold.records for _, value, _ in members_of([one.arguments, one.outcome.value])
        }
        known = met | case.world.scalars
        written = "\n".join(met)
        for named in _ID.findall(case.task.query):
            if named not in known and named not in written:
                return Rejected(self.name, "the query names a thing that is not there", {"named": named})
        return None

    def _untold(self, case: Case) -> Rejected | None:
        for at, call, heard in hearings(case):
            spec = case.task.tools.get(call.tool)
            if spec is not None and spec.read_only and not case.asks:
                continue  # whoever only looks may look anywhere
            for name, value in call.arguments.items():
                if not is_entity(name, value) or heard.has(value) or _named(case, heard, value):
                    continue
                # Whatever nobody told of may be found by looking, unless something else of its kind was told of.
                other = _told_instead(case, heard, value)
                if other is not None:
                    return Rejected(
                        self.name,
                        "the reference takes another thing than was told of",
                        {"turn": at, "tool": call.tool, "argument": name, "takes": value[:80], "told": other[:80]},
                    )
        return None

    def _shared(self, case: Case) -> Rejected | None:
        """A thing that is named by a name that others have, too, and by nothing else that tells them apart."""
        if case.abstains or told_when_asked(case):  # asked, the user says which
            return None
        names = names_of(case)
        query = case.task.query
        for record in case.gold.records:
            for name, value in record.arguments.items():
                called = names.of.get(value) if isinstance(value, str) else None
                if called is None or not is_entity(name, value) or not _says(query, called) or _says(query, value):
                    continue
                rivals = [one for one in names.ids(called) if one != value and _same_kind(names, one, value)]
                if rivals and not _told_apart(case, value, rivals, query):
                    return Rejected(
                        self.name,
                        "several things have the name that the query says",
                        {"name": called, "ids": [value, *rivals][:6]},
                    )
        return None

    def _read_back(self, case: Case) -> Rejected | None:
        """The query, read by the grammar, asks for what the reference does, and for nothing else."""
        for number, stage, text, before in _stages(case):
            if not stage.asked.calls:
                continue
            asked = stage.asked
            earlier = told_before(case.blueprint.stages[:number]) if case.blueprint is not None else ()
            readings, others = self._others(case, grammar_of(case, Names()), text, before, asked, earlier)
            if (others or not readings) and names_of(case).of:  # it may have been said by names
                named, beside = self._others(case, grammar_of(case, names_of(case)), text, before, asked, earlier)
                if not readings or len(beside) < len(named):
                    readings, others = named, beside
            if not readings and case.task.facts.get(TEACHER) == SCRIPTED:
                return Rejected(self.name, "the query cannot be read back", {"stage": number, "text": text[:200]})
            if others:
                right = len(others) < len(readings)
                reason = "the query may mean several things" if right else "the query asks for something else"
                if not right and any(_leaves_open(one, asked) for one in others):
                    reason = "the query leaves open what nobody tells"
                return Rejected(
                    self.name, reason, {"stage": number, "asked": asked.to_json(), "read": others[0].to_json()}
                )
        return None

    @staticmethod
    def _others(
        case: Case, grammar: Grammar, text: str, before: Sequence[Program], asked: Plan, earlier: Sequence[Call]
    ) -> tuple[tuple[Plan, ...], list[Plan]]:
        """The readings of a text, and those among them that are not what is asked for, nor come to the same."""
        readings = grammar.readings(text, earlier)
        return readings, [
            one for one in readings if not _says_of(one, asked, case) and not _as_good(case, before, one, asked)
        ]


class BackTranslated:
    """The gate ``back-translated``: a second teacher, which has not seen the plan, reads what the user says.

    Of a task with a blueprint each request has to be read as what is asked for, or as what comes to the same; of any
    other task the first request, with what the user says later, as calls that come to what is asked for. Abstentions
    are left out, and so are requests for what is not offered. Raises :class:`callwright.InfrastructureFailure` where
    the teacher does not reply.
    """

    name: Final = "back-translated"

    def __init__(self, teacher: Teacher) -> None:
        self.teacher = teacher

    def __call__(self, case: Case) -> Rejected | None:
        """What the teacher reads as something else, or as nothing."""
        if case.kind == "abstention" or not case.turns:
            return None
        return self._whole(case) if case.blueprint is None else self._stages(case)

    def _stages(self, case: Case) -> Rejected | None:
        said: list[str] = []
        for number, stage, text, before in _stages(case):
            beside = [*said, *told_in_the_end(case)]
            said.append(text)
            if not stage.asked.calls or not stage.calls:
                continue
            read = translated_back(self.teacher, text, case.task.tools, case.task.seed + number, beside)
            if read is None:
                return self._nothing(number, text)
            if not _says_of(read, stage.asked, case) and not _reaches(case, before, read, stage):
                evidence = {"stage": number, "asked": stage.asked.to_json(), "read": read.to_json()}
                return Rejected(self.name, "a second teacher reads something else", evidence)
        return None

    def _whole(self, case: Case) -> Rejected | None:
        if case.gold.records and all(record.outcome.failed for record in case.gold.records):
            return None
        text = case.task.query
        read = translated_back(self.teacher, text, case.task.tools, case.task.seed, told_when_asked(case))
        if read is None:
            return self._nothing(0, text)
        if not case.earns(case.run([read.program])):
            return Rejected(self.name, "a second teacher reads something else", {"read": read.to_json()})
        return None

    def _nothing(self, number: int, text: str) -> Rejected:
        evidence = {"stage": number, "text": text[:200]}
        return Rejected(self.name, "a second teacher reads nothing that could be called", evidence)


def told_in_the_end(case: Case) -> list[str]:
    """What the user of a task tells when asked, in its words."""
    user = case.task.user
    tells = user.options.get("tells") if user is not None else None
    return [str(value) for _, value, _ in members_of(tells)]


def _reaches(case: Case, before: Sequence[Program], read: Plan, stage: Stage) -> bool:
    """Whether a reading comes to the same as the calls of a stage, in the world as it then is; with the failures that
    are meant to be.
    """
    mine, theirs = (case.run([*before, Program(tuple(calls))]) for calls in (read.calls, stage.calls))
    if not mine.leaves_as(theirs):
        return False
    last = [next(iter(one.records[-1:]), None) for one in (mine, theirs)]
    if last[0] is None or last[1] is None:
        return False
    return (last[0].outcome.kind, last[0].outcome.value) == (last[1].outcome.kind, last[1].outcome.value)


def names_of(case: Case) -> Names:
    """The names of things, as the world and the results of the reference show them: found once."""
    found: Names = case.once(_names_of)
    return found


def _names_of(case: Case) -> Names:
    return case.world.names.merged(names_in(case.gold.values))


def grammar_of(case: Case, names: Names) -> Grammar:
    """The grammar of the tools of the task's environment, in which things have these names."""
    known = grammar_for(case.task.environment, case.registry)
    return Grammar(known.lexicon, names) if names.of else known


def _stages(case: Case) -> Iterator[tuple[int, Stage, str, list[Program]]]:
    """The stages of the blueprint with what the user says for each, and the turns of the reference before it."""
    if case.blueprint is None:
        return
    user = case.task.user
    texts = [case.task.query, *requests(user.options if user is not None else {})]
    turns = case.turns
    ends = [at for at, turn in enumerate(turns) if not turn.calls]  # where the user has its next turn
    begins = [0, *(at + 1 for at in ends)]
    place = 0
    for number, (stage, text) in enumerate(zip(case.blueprint.stages, texts, strict=False)):
        if place >= len(begins):
            return
        before = turns[: begins[place]]
        asks = begins[place] in ends and bool(stage.calls)  # for what the query holds back
        place += 2 if asks else 1
        if text and not stage.elsewhere:
            yield number, stage, text, list(before)


def _says_of(read: Plan, asked: Plan, case: Case) -> bool:
    """Whether a reading is what is asked for, but for what the user tells when asked."""
    if read.key == asked.key:
        return True
    if len(read.calls) != len(asked.calls) or read.conditions != asked.conditions:
        return False
    told = "\n".join(told_when_asked(case))
    for one, other in zip(read.calls, asked.calls, strict=True):
        if one.tool != other.tool or not set(one.arguments) <= set(other.arguments):
            return False
        mine, theirs = plain(one.arguments), plain(other.arguments)
        for name, value in theirs.items():
            if name in mine:
                if mine[name] != value:
                    return False
            elif not all(_says(told, str(inner)) for _, inner, _ in members_of(value)):
                return False
    return True


def _leaves_open(read: Plan, asked: Plan) -> bool:
    """Whether a reading is what is asked for, with something left out."""
    return len(read.calls) == len(asked.calls) and all(
        one.tool == other.tool and plain(one.arguments).items() <= plain(other.arguments).items()
        for one, other in zip(read.calls, asked.calls, strict=True)
    )


def _as_good(case: Case, before: Sequence[Program], read: Plan, asked: Plan) -> bool:
    """Whether a reading comes to the same as the plan, in the world as it then is."""
    mine, theirs = (case.run([*before, Program(one.calls, "all")]) for one in (read, asked))
    return (
        mine.leaves_as(theirs) and mine.values == theirs.values and not any(one.outcome.failed for one in mine.records)
    )


def _named(case: Case, heard: Heard, value: str) -> bool:
    """Whether what was heard has the name of a thing."""
    called = names_of(case).of.get(value)
    return called is not None and (heard.has(called) or _says(heard.said, called))


def _told_instead(case: Case, heard: Heard, value: str) -> str | None:
    """A thing of the same kind that the user has told of, and that the reference has nothing to do with."""
    used = {str(inner) for one in case.gold.records for _, inner, _ in members_of(one.arguments)}
    for word in sorted(heard.words):
        if word not in used and shape(word) == shape(value) and any(one.isdigit() for one in word):
            return word
    names = names_of(case)
    kind = names.kinds.get(value)
    for key, called in names.of.items() if kind else ():
        if names.kinds.get(key) == kind and key not in used and called in heard.said and _says(heard.said, called):
            return key
    return None


def _says(text: str, value: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


def _same_kind(names: Names, one: str, other: str) -> bool:
    return names.kinds.get(one, "") == names.kinds.get(other, "")


def _told_apart(case: Case, value: str, rivals: Sequence[str], text: str) -> bool:
    """Whether the query says something of the thing that is not so of any other with its name."""
    mine = _told_of(case, value)
    others = {one for rival in rivals for one in _told_of(case, rival)}
    return any(_says(text, one) for one in mine - others if len(one) > 1)


def _told_of(case: Case, key: str) -> set[str]:
    records: list[Mapping[str, Any]] = list(case.world.records.get(key, ()))
    for value in case.gold.values:
        records += [owner for _, inner, owner in members_of(value) if owner is not None and inner == key]
    return {str(inner) for record in records for _, inner, _ in members_of(record)} - {key}
