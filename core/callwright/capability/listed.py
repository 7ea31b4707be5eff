"""Every capability by kind of component, and members that are nearly one of them.

What a component offers beyond its kind is declared by a protocol (:mod:`callwright.capability`). A misspelt member
would declare nothing, and nobody would say so: the kit does.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from callwright.capability import has, members

_ENVIRONMENT: Final = "callwright.environments.protocol:"
_PEOPLE: Final = "callwright.environments.capabilities:"
_CORPORA: Final = "callwright.walk.corpora.capabilities:"
_REWARDS: Final = "callwright.walk.components.capabilities:"
_ALGORITHM: Final = "callwright.training.algorithm:"
_LIFETIME: Final = "callwright.capability:"
_BENCHMARK: Final = "callwright.measuring.benchmark:"

#: By kind, where each protocol is. ``session`` is no kind that is registered: environments open them.
CAPABILITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "parser": (
        *(f"callwright.language.parser:{name}" for name in ("HasLimits", "OneBlock", "SpeaksToUsers", "TakesHandles")),
        "callwright.language.parser:WritesResults",
        "callwright.language.teaching:TeachesWhatIsAllowed",
    ),
    "environment": (
        *(_ENVIRONMENT + name for name in ("Briefs", "Disposable", "FitsLittleRoom", "HoldsTools")),
        *(_ENVIRONMENT + name for name in ("KeepsTime", "OutOfProcess", "PlacesParts", "Suggests", "TakesAnything")),
        *(_PEOPLE + name for name in ("Blocks", "Charges", "GivesUsersTools", "HasEvents", "HasPeople", "HasPolicy")),
        *(_PEOPLE + name for name in ("HasTables", "HasVersion", "IsFitted", "KeepsAccounts", "NamesHelpers")),
        *(_PEOPLE + name for name in ("NamesPerson", "NamesScenarios")),
    ),
    "session": (
        *(_ENVIRONMENT + name for name in ("BoundsResults", "ChecksAnswers", "ChecksGoals", "Knows", "MeetsHazards")),
        *(_ENVIRONMENT + name for name in ("MovesTime", "ServesUsers", "SharesClock", "TellsGoalState", "TellsTime")),
        *(_PEOPLE + name for name in ("Diffs", "Forks", "HasWorld", "Helps", "HoldsNotices", "MeetsPeople", "Resets")),
        _PEOPLE + "Snapshots",
    ),
    "reward component": (_LIFETIME + "SetsUp", _LIFETIME + "Closes", _REWARDS + "CountsUsage"),
    "reward recipe": (
        _REWARDS + "ChecksTasks",
        _REWARDS + "Scheduled",
        "callwright.commands.row_corpus:RowTasks",
    ),
    "sampler": (
        *(f"callwright.walk.sampling:{name}" for name in ("ChoosesRole", "CountsRequests", "KeepsReplies")),
        *(f"callwright.walk.sampling:{name}" for name in ("OffersTools", "RefusesTasks", "SamplesConcurrently")),
        *(f"callwright.episodes.sampling:{name}" for name in ("ConversesConcurrently", "EpisodeSampler")),
        "callwright.episodes.long_context:ExtendsContext",
    ),
    "algorithm": (
        *(_ALGORITHM + name for name in ("ActorCritic", "AdaptiveKL", "EntropyBonus", "GroupBaseline", "PlacesCredit")),
        *(_ALGORITHM + name for name in ("SamplesDynamically", "ScalesByDeviation", "ShapesOverlong", "TokenLevel")),
        _ALGORITHM + "UnbiasedKL",
    ),
    "trainer": tuple(f"callwright.training.trainer:{name}" for name in ("Checking", "Planning", "SamplesGroups")),
    "corpus": (
        *(
            _CORPORA + name
            for name in ("DrawsShots", "HasFingerprint", "HasVocabulary", "LimitsTurns", "WritesPrompts")
        ),
        "callwright.training.demonstrations:Demonstrates",
        "callwright.training.demonstrations:References",
        "callwright.walk.prompt:TellsByShots",
    ),
    "benchmark": tuple(
        _BENCHMARK + name for name in ("JudgesTogether", "PlaysUsers", "ReadsAnswerFiles", "ReadsAnswers")
    ),
    "synthesizer": ("callwright.training.synthesis.synthesizer:LimitsEpisodes",),
    "teacher": ("callwright.training.teaching.teacher:AsksConcurrently",),
    "user": ("callwright.walk.users.user:KnowsLines",),
}
#: As alike as two names are that differ in a letter or two, or in the order of two letters.
_NEARLY: Final = 0.84


def capabilities(kind: str) -> Iterator[type[Any]]:
    """The protocols of a kind, in alphabetical order of their names. A kind without any has none."""
    for place in sorted(CAPABILITIES.get(kind, ()), key=lambda place: place.partition(":")[2]):
        module, _, name = place.partition(":")
        yield getattr(importlib.import_module(module), name)


def declared(kind: str, component: Any) -> list[str]:
    """The names of the capabilities that a component has."""
    return [one.__name__ for one in capabilities(kind) if has(component, one)]


def enables(capability: type[Any]) -> str:
    """What a capability is for: the first sentence of its docstring."""
    return " ".join((capability.__doc__ or "").split("\n\n")[0].split())


def misspelt(kind: str, component: Any, scenario: str = "") -> None:
    """Raise :class:`AssertionError` for a public member that is nearly one of a capability, of its sessions too."""
    _compare(kind, component)
    if kind == "environment":
        session = component.open(scenario)
        try:
            _compare("session", session)
        finally:
            session.close()


def _compare(kind: str, component: Any) -> None:
    wanted = {name: one for one in capabilities(kind) for name in members(one)}
    own = {name for cls in type(component).__mro__ for name in vars(cls) if not name.startswith("_")}
    for name in sorted(own - wanted.keys()):
        for close in difflib.get_close_matches(name, wanted, n=1, cutoff=_NEARLY):
            if close not in own:
                raise AssertionError(
                    f"{name!r} of a {kind} is nearly {close!r} of {wanted[close].__name__}, and nobody asks for it"
                )
