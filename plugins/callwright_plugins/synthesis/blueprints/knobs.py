"""Knobs: what conversations are about in which shares. The defaults are Prove's (section 3.2), where it states any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final, TypeVar

from attrs import asdict, field, fields, frozen

from callwright.errors import UnknownName, UsageError

T = TypeVar("T")
#: The examples of the paper's training set: conversations, clarifications, abstentions.
MIXTURE: Final = (10_895, 1_500, 1_122)
_ALL: Final = sum(MIXTURE)


def _share(instance: Any, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UsageError(f"{attribute.name} is a share from 0 to 1, not {value!r:.40}")


def _number(instance: Any, attribute: Any, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{attribute.name} is a whole number from 1, not {value!r:.40}")


def _names(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(given)


def _some(share: float) -> Any:
    return field(default=share, validator=_share)


def _count(number: int) -> Any:
    return field(default=number, validator=_number)


@frozen
class Knobs:
    """Shares from 0 to 1, and counts from 1.

    Of all examples ``clarifications`` ask for a tool that is missing at first, ``abstentions`` for one that never comes
    (``never`` of them: a tool of the environment that is hidden; the others: one of another environment). The rest are
    conversations. Of these ``irrelevance`` end in a request that no tool can satisfy, ``failing`` in one that fails by
    a rule, ``recoveries`` make up for a failure, ``several_servers`` need two environments. Where more cells (a tool
    and a code that it fails with) were reached than that fills, failing and recoveries grow to one for each cell.

    What is asked for otherwise is one call, or by the shares ``chains`` (2 to ``longest`` calls), ``parallel`` or
    ``two_goals``. A conversation has ``least_turns`` turns of the user, and another one by the chance ``decay`` until
    ``most_turns``. ``missing`` and ``minimal`` are levels of information, the rest of the turns are complete. A
    reference takes ``assistant_turns`` turns of the assistant at most, and ``user_turns`` of the user with what is
    asked for: as many as the paper's episodes have.

    Of all examples ``distractors`` are offered ``least_distractors`` to ``most_distractors`` tools of other
    environments, unrelated ones, or by the share ``confusable`` such as are alike in name or schema; ``stripped`` lose
    the enumerated values of a schema. ``refreshed`` is after how many conversations another world is sampled (the
    paper's *k*). ``most_of_one`` is the share of all calls above which a tool is only planned
    where no other will do: 1 bounds nothing. ``others`` are the environments to take foreign tools from; none: those of
    the same plugin.
    """

    missing: float = _some(0.2)
    minimal: float = _some(0.2)
    distractors: float = _some(0.4)
    least_distractors: int = _count(3)
    most_distractors: int = _count(8)
    confusable: float = _some(0.0)
    stripped: float = _some(0.3)
    irrelevance: float = _some(0.05)
    clarifications: float = _some(MIXTURE[1] / _ALL)
    abstentions: float = _some(MIXTURE[2] / _ALL)
    never: float = _some(0.5)
    several_servers: float = _some(0.1)
    failing: float = _some(0.08)
    recoveries: float = _some(0.12)
    chains: float = _some(0.5)
    parallel: float = _some(0.12)
    two_goals: float = _some(0.12)
    longest: int = _count(5)
    least_turns: int = _count(2)
    most_turns: int = _count(3)
    decay: float = _some(0.5)
    assistant_turns: int = _count(10)
    user_turns: int = _count(5)
    refreshed: int = _count(25)
    most_of_one: float = _some(1.0)
    others: tuple[str, ...] = field(default=(), converter=_names)

    def __attrs_post_init__(self) -> None:
        for names in (
            ("missing", "minimal"),
            ("clarifications", "abstentions"),
            ("chains", "parallel", "two_goals"),
            ("irrelevance", "failing", "recoveries", "several_servers"),
        ):
            if sum(getattr(self, name) for name in names) > 1 + 1e-9:
                raise UsageError(f"{', '.join(names)} are shares of one whole and come to more than 1 together")
        if self.least_turns > self.most_turns or self.least_distractors > self.most_distractors:
            raise UsageError("the least number of turns and of distractors is not above the most")
        if self.most_turns > self.user_turns:
            raise UsageError("a conversation has most_turns turns of the user at most: user_turns is not below that")
        if self.longest < 2:
            raise UsageError("a chain has two calls or more: longest is 2 or more")

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {**asdict(self), "others": list(self.others)}

    @classmethod
    def from_json(cls, stated: Mapping[str, Any]) -> Knobs:
        """From options. Raises :class:`callwright.UsageError` for a name that is no knob, or a value that is none."""
        names = [one.name for one in fields(cls)]
        for name in stated:
            if name not in names:
                raise UnknownName("knob", name, names)
        return cls(**stated)


def shared_out(count: int, shares: Mapping[T, float], rng: Random) -> list[T]:
    """``count`` members by their shares, as exactly as whole numbers allow (largest remainders), in a random order.

    Shares that come to less than one are scaled.
    """
    whole = sum(shares.values())
    if count < 1 or whole <= 0:
        return []
    exact = {one: count * share / whole for one, share in shares.items()}
    counts = {one: int(number) for one, number in exact.items()}
    rest = sorted(exact, key=lambda one: counts[one] - exact[one])
    for one in rest[: count - sum(counts.values())]:
        counts[one] += 1
    found = [one for one, number in counts.items() for _ in range(number)]
    rng.shuffle(found)
    return found


def marked(count: int, share: float, able: Sequence[int], rng: Random) -> list[int]:
    """Which of ``able`` are to have something that ``share`` of ``count`` have: as many as that is, or all."""
    return sorted(rng.sample(list(able), min(len(able), round(count * share))))
