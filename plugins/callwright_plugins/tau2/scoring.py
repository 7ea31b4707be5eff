"""The reward of a dialogue: the product over what a task's basis names (tau2-bench, ``evaluator``).

Judged by a model is only ``NL_ASSERTION``. Without a judge it is left out, and the result says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import comb
from typing import Any, Final, Literal

from attrs import field, frozen

from callwright.errors import DataError

Basis = Literal["DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE", "NL_ASSERTION"]
#: What counts where a task does not say it.
USUAL_BASIS: Final[tuple[Basis, ...]] = ("DB", "COMMUNICATE")
_KNOWN: Final = ("DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE", "NL_ASSERTION")
#: The ways of ending after which anything is scored at all.
FINISHED: Final = ("agent_stop", "user_stop")


@frozen
class Call:
    """A call of the agent or of the user, as it stands in a dialogue."""

    name: str
    arguments: Mapping[str, Any]
    by: Literal["assistant", "user"] = "assistant"


@frozen
class Criteria:
    """What a task wants: the reference's actions, texts that have to be said, and the basis of the reward.

    ``actions`` and ``assertions`` are as the task states them.
    """

    actions: Sequence[Mapping[str, Any]] = ()
    communicate: Sequence[str] = ()
    assertions: Sequence[Mapping[str, Any]] = ()
    basis: tuple[Basis, ...] = USUAL_BASIS
    #: Sentences that a judge has to find true of the dialogue.
    sentences: Sequence[str] = ()

    @classmethod
    def of(cls, task: Mapping[str, Any]) -> Criteria | None:
        """The criteria of a task of tau2's files; ``None`` for one without, which any dialogue fulfils.

        Raises :class:`callwright.errors.DataError` for others than tau2 knows.
        """
        stated = task.get("evaluation_criteria")
        if stated is None:
            return None
        basis = tuple(stated.get("reward_basis") or USUAL_BASIS)
        unknown = [one for one in basis if one not in _KNOWN]
        if unknown:
            raise DataError(
                f"task {task.get('id')!r:.40} is rewarded for {unknown[0]!r:.40}; known: {', '.join(_KNOWN)}"
            )
        return cls(
            actions=stated.get("actions") or (),
            communicate=stated.get("communicate_info") or (),
            assertions=stated.get("env_assertions") or (),
            basis=basis,
            sentences=stated.get("nl_assertions") or (),
        )


@frozen
class Scored:
    """The reward, 0 or 1, with its factors by the names of the basis, and what was left out of them."""

    reward: float
    factors: Mapping[str, float] = field(factory=dict)
    left_out: tuple[str, ...] = ()


def action_made(action: Mapping[str, Any], calls: Iterable[Call]) -> bool:
    """Whether a reference action is among the calls of a dialogue, whoever made it.

    Compared are the arguments that ``compare_args`` names. Without it they are those *of the call*: one that leaves
    arguments out is no less right, and a call without any always is.
    """
    wanted, compared = action["arguments"], action.get("compare_args")
    for call in calls:
        if call.name != action["name"]:
            continue
        keys = call.arguments.keys() if compared is None else compared
        if _only(call.arguments, keys) == _only(wanted, keys):
            return True
    return False


def _only(arguments: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    known = set(keys)
    return {name: value for name, value in arguments.items() if name in known}


def communicated(text: str, said: Iterable[str]) -> bool:
    """Whether a text is in what the agent said in some message: in any case, with the commas of the message left out.

    Those of the text are not, so that one with a comma is never found.
    """
    wanted = text.lower()
    return any(wanted in one.lower().replace(",", "") for one in said)


def score(
    criteria: Criteria | None,
    calls: Sequence[Call],
    said: Sequence[str],
    *,
    finished: bool = True,
    db: bool | None = None,
    assertions: bool | None = None,
    judged: bool | None = None,
) -> Scored:
    """The reward of a dialogue.

    ``said`` are the messages of the agent with words. ``db`` and ``assertions`` are what tau2's code says of the
    databases in the end (:mod:`callwright_plugins.tau2.source`), ``judged`` what a judge says; where a task has no
    sentence for one, ``NL_ASSERTION`` holds. A part of the basis that nothing is said of is left out. A dialogue that
    did not finish is worth 0, whatever it did.
    """
    if not finished:
        return Scored(0.0)
    if criteria is None:
        return Scored(1.0)
    held: dict[str, bool | None] = {
        "DB": db,
        "ENV_ASSERTION": assertions,
        "ACTION": all(action_made(action, calls) for action in criteria.actions),
        "COMMUNICATE": all(communicated(text, said) for text in criteria.communicate),
        "NL_ASSERTION": judged if criteria.sentences else True,
    }
    known: dict[str, float] = {one: float(right) for one in criteria.basis if (right := held[one]) is not None}
    left_out = tuple(one for one in criteria.basis if held[one] is None)
    return Scored(float(all(known.values())), known, left_out)


def pass_hat(rewards: Sequence[bool], k: int) -> float | None:
    """pass^k of a task: the chance that all of k attempts are right, from n of them; ``None`` of fewer than k.

    C(right, k) / C(n, k) (tau-bench, Yao et al. 2024, equation 2).
    """
    if not 1 <= k <= len(rewards):
        return None
    return comb(sum(rewards), k) / comb(len(rewards), k)
