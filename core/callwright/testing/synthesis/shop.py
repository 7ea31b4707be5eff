"""The sample shop as a plugin, which any process can load, and a synthesizer of questions about its prices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from attrs import frozen

from callwright.environments.protocol import Environment
from callwright.hookspecs import hookimpl
from callwright.language.program import Call, Program
from callwright.plugins import Lazy
from callwright.testing.sample import SHOP
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Accepted, Made, Rejected, Unit
from callwright.walk.tasks import Answer, Task


def shop() -> Environment:
    """The shop."""
    return SHOP


@hookimpl
def callwright_environments() -> Iterable[Lazy]:
    """Register it."""
    yield Lazy(SHOP.name, f"{__name__}:shop", summary="a shop with a cart, in which components are tried")


@hookimpl
def callwright_synthesizers() -> Iterable[Lazy]:
    """Register the synthesizer."""
    yield Lazy("sample-prices", f"{__name__}:Prices", summary="what things of the sample shop cost, and what it lacks")


@frozen
class Prices:
    """Asks what something costs. What the shop does not have is rejected; of equal questions and answers one stays.

    ``words`` is the question, with ``{name}`` where the thing stands.
    """

    words: str = "What does the {name} cost?"
    things: tuple[str, ...] = ("apple", "book", "comb", "drum", "egg", "fan")

    @property
    def name(self) -> str:
        """``sample-prices``."""
        return "sample-prices"

    def plan(self, materials: Materials) -> Sequence[Unit]:
        """Twice as many things as tasks are wanted, each in a shop of three."""
        rng = Random(f"prices/{materials.seed}")
        drawn = [(rng.choice(self.things), rng.randrange(3)) for _ in range(2 * materials.count)]
        return [Unit(f"price-{place}", place, seed, {"name": name}) for place, (name, seed) in enumerate(drawn)]

    def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
        """The question, and the price in the shop of the unit's seed."""
        environment, thing = materials.environment, unit.payload["name"]
        session = environment.open("", unit.seed)
        outcome = session.call("price_of", {"name": thing})
        session.close()
        if not outcome.executed:
            return Rejected("execution", outcome.code, {"name": thing, "said": outcome.message})
        task = Task(
            id=unit.id,
            query=self.words.format(name=thing),
            tools=dict(environment.tools),
            answer=Answer((outcome.value,)),
            environment=environment,
            seed=unit.seed,
            depth=1,
            chain=1,
            structure="single",
            program=Program((Call(0, "price_of", {"name": thing}),)),
        )
        return Accepted(materials.row(task), {"name": thing})

    def compare(self, made: Sequence[Made]) -> Sequence[Rejected | None]:
        """Of one thing in one shop the first question stays."""
        first: dict[tuple[str, int], str] = {}
        verdicts: list[Rejected | None] = []
        for one in made:
            key = one.accepted.facts["name"], one.unit.seed
            other = first.setdefault(key, one.unit.id)
            again = other != one.unit.id
            verdicts.append(Rejected("duplicates", "asked before", {"unit": other}) if again else None)
        return verdicts
