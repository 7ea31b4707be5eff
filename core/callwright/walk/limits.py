"""How long an episode may become, in completions, user messages and tokens, and what a cut-off completion earns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, get_args, runtime_checkable

from attrs import Attribute, evolve, field, frozen

from callwright.errors import UsageError

#: Why an episode ended. ``answered``: a completion without calls, and the user is done, or there is none to answer it.
#: ``unparsed``: the text is not a program. ``assistant_turns``, ``user_turns``, ``steps``: that limit is reached.
#: ``tokens``: the budget of a turn or of the episode is used up. ``context``: the model's positions are. ``machinery``:
#: a session, an engine or a user failed; masked.
StopReason = Literal["answered", "unparsed", "assistant_turns", "user_turns", "steps", "tokens", "context", "machinery"]
#: The reasons that mean: the model was not done when a limit of length ended the episode.
CUT_OFF: Final = frozenset({"tokens", "context"})

#: What a text that is no program ends: the ``episode``, or the ``turn`` of the user, who hears it as an answer.
Unparsed = Literal["episode", "turn"]

#: What an attempt earns that was cut off (``Attempt.truncated``). ``as_is``: what its text is worth. ``mask``: nothing
#: is known, the sample is left out. ``floor``: the least, a number that the reward states; never more than its text is
#: worth. ``overlong``: what its text is worth, and the algorithm takes off for the length (:class:`ShapesOverlong`).
TruncationPolicy = Literal["as_is", "mask", "floor", "overlong"]
TRUNCATION_POLICIES: Final[tuple[TruncationPolicy, ...]] = ("as_is", "mask", "floor", "overlong")


@runtime_checkable
class ShapesOverlong(Protocol):
    """An algorithm that takes off for length by itself, so that a reward need not (DAPO, Yu et al. 2025, eq. 13)."""

    @property
    def shapes_overlong(self) -> bool:
        """Whether it does so with the options that it has."""


def _count(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    if type(value) is not int or value < 1:
        raise UsageError(f"the turn limit {attribute.name!r} is a whole number, 1 or more, not {value!r}")


def _count_or_none(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    if value is not None:
        _count(instance, attribute, value)


def _unparsed(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    if value not in get_args(Unparsed):
        raise UsageError(f"'unparsed' says what a text that is no program ends, 'episode' or 'turn', not {value!r}")


@frozen
class TurnLimits:
    """Bounds on one episode; the defaults for turns are those of Prove (section 5), which adds 16,384 ``total_tokens``.

    ``assistant_turns``: completions; 1 is a single turn. ``user_turns``: user messages, the query included.
    ``turn_tokens``: sampled tokens of one completion. ``total_tokens``: sampled and environment tokens of the episode
    after its prompt. ``observation_tokens``: environment tokens between two completions; results that would exceed it
    are cut in the middle, which the text then says. ``context_tokens``: prompt and response, that is, the model's
    positions. ``steps``: completions with calls while one message of the user is worked on; one more is executed, too,
    and ends the episode (BFCL's forced termination, 20 there). ``None`` is no bound.

    ``unparsed`` is no bound: it says what a text that is no program ends. Benchmarks whose harness takes what it cannot
    decode for the end of the user's turn say ``turn``.

    Raises :class:`callwright.UsageError` for anything but whole numbers from 1, and another ``unparsed``.
    """

    assistant_turns: int = field(default=10, validator=_count)
    user_turns: int = field(default=5, validator=_count)
    turn_tokens: int | None = field(default=None, validator=_count_or_none)
    total_tokens: int | None = field(default=None, validator=_count_or_none)
    observation_tokens: int | None = field(default=None, validator=_count_or_none)
    context_tokens: int | None = field(default=None, validator=_count_or_none)
    steps: int | None = field(default=None, validator=_count_or_none)
    unparsed: Unparsed = field(default="episode", validator=_unparsed)

    @property
    def single(self) -> bool:
        """Whether an attempt has one completion, and nothing that the model reads after it."""
        return self.assistant_turns == 1

    def room(self, prompt: int, response: int) -> tuple[int | None, StopReason]:
        """How many tokens the next completion may have after so many of prompt and response, and which bound says so.

        The number is negative where a bound is exceeded already.
        """
        tokens = [self.turn_tokens] if self.turn_tokens is not None else []
        if self.total_tokens is not None:
            tokens.append(self.total_tokens - response)
        least = min(tokens, default=None)
        if self.context_tokens is not None:
            left = self.context_tokens - prompt - response
            if least is None or left < least:
                return left, "context"
        return least, "tokens"


#: One completion, and nothing after it.
SINGLE_TURN = TurnLimits(assistant_turns=1, user_turns=1)


#: Among a task's facts, as ``true``: it is answered in one completion, whatever turns other tasks of a run have.
ONE_TURN: Final = "one_turn"


def limits_for(facts: Mapping[str, Any], limits: TurnLimits) -> TurnLimits:
    """The limits of a task with these facts in a run with those limits: a single turn for one that says so."""
    if facts.get(ONE_TURN) is not True or limits.single:
        return limits
    return evolve(limits, assistant_turns=1, user_turns=1)


def limits_of(corpus: object) -> TurnLimits:
    """The limits of a corpus of conversations, its attribute ``limits``; a single turn for every other one.

    They hold where nobody states any.
    """
    stated = getattr(corpus, "limits", None)
    return stated if isinstance(stated, TurnLimits) else SINGLE_TURN
