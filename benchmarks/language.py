"""The language of synthesised conversations as they ship: frames, liberties, and whether it is read back exactly.

    python benchmarks/language.py --cache knowledge [--count 75]

Makes conversations of all twenty environments with the scripted teacher and the gates, and measures their queries: how
many frames there are and what the most frequent one makes of them; whether each is read back to its plan and to
nothing else; shares of greetings, thanks, slips, corrections, ellipsis and sameness. Then it plants one wrong value,
one wrong thing or one constraint less into queries: none may still be read as the plan.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import click
from attrs import evolve, frozen

import callwright as cw
from callwright.errors import CallwrightError
from callwright.language.program import Call
from callwright.plugins import default_registry
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Accepted
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, told_before
from callwright_plugins.synthesis.dialogue.words import ScriptedWords, Voice, persona_of, style_of, voice_for
from callwright_plugins.synthesis.dialogue.worlds import environment_of
from callwright_plugins.synthesis.gates.mutants import is_entity
from callwright_plugins.synthesis.grounded import Grounded
from callwright_plugins.synthesis.language.grammar import Query
from callwright_plugins.synthesis.language.lexicon import SAME
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.styles import Style

POLITE = re.compile(r"\b(?:please|pls|kindly|thanks?|thank|thx|could|would|may|might|grateful|appreciate)\b", re.I)


@frozen(eq=False)
class Said:
    """A query that ships: what it was made of, and the calls that were asked for before it."""

    environment: str
    query: Query
    voice: Voice
    style: Style
    seed: int
    earlier: tuple[Call, ...]
    first: bool


def shipped(count: int, seed: int, cache: str | None, calls: int, rejected: Counter[str]) -> Iterator[list[Said]]:
    """The queries of each conversation that passes the gates. Raises ``RuntimeError`` if one cannot be said again."""
    registry, words = default_registry(), ScriptedWords()
    for name in TOOLS:
        materials = Materials(cw.environment(name), seed=seed, count=count)
        synthesizer = Grounded(cache=cache, calls=calls)
        for unit in synthesizer.plan(materials):
            made = synthesizer.make(unit, materials)
            if not isinstance(made, Accepted):
                rejected[f"{made.stage}: {made.reason}"] += 1
                continue
            blueprint = Blueprint.from_json(unit.payload)
            own = materials.environment if blueprint.environment == name else None
            environment = own or environment_of(registry, blueprint.environment)
            found = []
            for number, stage in enumerate(blueprint.stages):
                voice, persona = voice_for(stage, environment, registry), persona_of(blueprint)
                earlier = blueprint.stages[:number]
                query = words.query(stage, voice, persona, unit.seed + number, earlier)
                if query.text != made.row["facts"]["stages"][number]["query"]:
                    raise RuntimeError(f"{unit.id}: the same query is worded otherwise: {query.text}")
                style = style_of(persona, stage.information, unit.seed + number, first=not earlier)
                calls_before = told_before(earlier)
                found.append(Said(name, query, voice, style, unit.seed + number, calls_before, not earlier))
            yield found


def planted(said: Said, kind: str, others: Mapping[tuple[str, str], list[Any]], random: Random) -> Plan | None:
    """What a query says with one thing wrong in it: a value, a thing, or a constraint less."""
    plan = said.query.said
    places = [(call, name) for call in plan.calls for name in call.arguments]
    random.shuffle(places)
    for call, name in places:
        value = call.arguments[name]
        if kind == "dropped constraint":
            return plan.without([(call.id, name)])
        if is_entity(name, value) != (kind == "wrong entity") or not isinstance(value, str | int | float):
            continue
        known = [one for one in others[call.tool, name] if type(one) is type(value) and one != value]
        other: Any = random.choice(known) if known else None
        if other is None:
            other = not value if isinstance(value, bool) else f"{value}0" if isinstance(value, str) else value + 1
        changed = evolve(call, arguments={**call.arguments, name: other})
        return Plan((*plan.calls[: call.id], changed, *plan.calls[call.id + 1 :]), plan.conditions)
    return None


def survivors(all_said: list[Said], each: int) -> tuple[Counter[str], list[str]]:
    """How many queries with one thing wrong were made, by kind, and those that are still read as the plan."""
    others: dict[tuple[str, str], list[Any]] = {}
    for said in all_said:
        for call in said.query.plan.calls:
            for name, value in call.arguments.items():
                others.setdefault((call.tool, name), []).append(value)
    random, made, found = Random("planted"), Counter[str](), []
    for kind in ("wrong value", "wrong entity", "dropped constraint"):
        for said in random.sample(all_said, len(all_said)):
            if made[kind] >= each:
                break
            wrong = planted(said, kind, others, random)
            if wrong is None or wrong.key == said.query.said.key:
                continue
            style = evolve(said.style, information="complete")
            try:
                text = said.voice.grammar.render(wrong, style, said.seed, earlier=said.earlier).text
            except CallwrightError:
                continue
            made[kind] += 1
            if said.query.said.key in [one.key for one in said.voice.grammar.readings(text, said.earlier)]:
                found.append(f"{kind}: {said.query.text} -> {text}")
    return made, found


def liberties(said: Said) -> Iterator[str]:
    """What is lively about a query."""
    query, text = said.query, said.query.text.lower()
    plain = said.voice.grammar.render(query.plan, evolve(said.style, typo=False), said.seed, earlier=said.earlier)
    yield from (
        name
        for name, there in (
            ("polite", POLITE.search(text)),
            ("greets", said.style.greets),
            ("thanks", said.style.thanks),
            ("tells of oneself", said.style.background),
            ("slip of the keyboard", plain.text != query.text),
            ("correction", " instead of " in text),
            ("ellipsis (of queries with two calls or more)", any(one in text for one in SAME)),
            ("the same thing", re.search(r"\bthe same (?!again)", text)),
            ("withholds something", query.withheld),
        )
        if there
    )


@click.command()
@click.option("--count", default=75, show_default=True, help="Conversations of each environment.")
@click.option("--seed", default=0, show_default=True)
@click.option("--calls", default=1200, show_default=True, help="Calls of exploring, for each seed.")
@click.option("--cache", metavar="FOLDER", help="Where knowledge of the environments is kept.")
@click.option("--plant", default=70, show_default=True, help="Queries with each kind of thing wrong.")
@click.option("--show", default=0, show_default=True, help="Conversations to show, drawn at random.")
def main(count: int, seed: int, calls: int, cache: str | None, plant: int, show: int) -> None:
    """Print the shares, and what is wrong."""
    began = time.process_time()
    rejected: Counter[str] = Counter()
    talks = list(shipped(count, seed, cache, calls, rejected))
    all_said = [said for talk in talks for said in talk]
    total = len(all_said)
    click.echo(f"{len(talks)} conversations, {total} queries, {time.process_time() - began:.0f} s of CPU")
    for reason, number in rejected.most_common():
        click.echo(f"    rejected {number}: {reason}")
    frames = Counter(frame for said in all_said for frame in set(said.query.frames))
    click.echo(f"{len(frames)} frames; the most frequent ones, of the queries:")
    for frame, number in frames.most_common(3):
        click.echo(f"    {number / total:6.2%} {frame}")
    wrong = [
        said
        for said in all_said
        if [one.key for one in said.voice.grammar.readings(said.query.text, said.earlier)] != [said.query.said.key]
    ]
    click.echo(f"{total - len(wrong)} of {total} are read back to what they say, and to nothing else")
    for said in wrong[:5]:
        click.echo(f"    {said.environment}: {said.query.text}")
    click.echo(f"worded again: {sum(said.query.attempts > 0 for said in all_said)}")
    shares = Counter(name for said in all_said for name in liberties(said))
    longer = sum(len(said.query.plan.calls) > 1 for said in all_said)
    for name, number in sorted(shares.items()):
        click.echo(f"    {number / (longer if name.startswith('ellipsis') else total):6.1%} {name}")
    made, found = survivors(all_said, plant)
    click.echo(f"planted: {dict(made)}; {len(found)} are read as the plan")
    for one in found[:5]:
        click.echo(f"    {one}")
    for talk in Random("show").sample(talks, min(show, len(talks))):
        click.echo(f"-- {talk[0].environment}")
        for said in talk:
            click.echo(f"   {said.query.text}")


if __name__ == "__main__":
    main()
