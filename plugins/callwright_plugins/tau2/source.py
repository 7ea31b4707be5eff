"""tau2's own code, in a process of its own: what a dialogue left in the databases of a domain."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright.digests import digest_of
from callwright.errors import InfrastructureFailure, UsageError
from callwright.machines.foreign_code.code import ForeignCode, ForeignLimits, ForeignRaised
from callwright_plugins.tau2.scoring import Call

_MODULE: Final = "source_side"
#: Seconds of one evaluation; the first of a domain parses its databases.
_SECONDS: Final = 120.0
#: Seconds of one call in a dialogue: a tool that reckons may be given a number that it never comes to.
_CALL_SECONDS: Final = 30.0
#: Tasks whose keys are kept.
_MOST_KEYS: Final = 4096


@frozen
class Recorded:
    """A dialogue as it is to be evaluated: the task as its file states it, and the calls.

    ``results`` are what was recorded of each call, as texts; ``None``, and those that are missing at the end, are not
    compared.
    """

    task: Mapping[str, Any]
    calls: Sequence[Call]
    results: Sequence[str | None] = ()


@frozen
class Left:
    """Whether both databases are those that the reference leaves, and whether all assertions of the task hold."""

    db: bool
    assertions: bool


class Tau2Source:
    """The source of tau2-bench, to be asked.

    ``package`` is its repository or the folder ``src`` in it, ``data`` its folder ``data`` (with
    ``tau2/domains/retail/db.json`` and so on), ``interpreter`` a Python of 3.12 or later that has pydantic, loguru,
    docstring-parser, addict, toml, PyYAML, deepdiff and python-dotenv. Databases are parsed once for all evaluations.

    A context manager. Raises :class:`callwright.UsageError` for folders that are something else.
    """

    def __init__(self, package: str | Path, data: str | Path, interpreter: str | Path | None = None) -> None:
        folders = [Path(package), Path(package) / "src"]
        found = next((one for one in folders if (one / "tau2" / "environment" / "environment.py").is_file()), None)
        if found is None:
            raise UsageError(f"{package} is not the source of tau2-bench: name its repository, or the folder src in it")
        if not (Path(data) / "tau2" / "domains").is_dir():
            raise UsageError(f"{data} is not tau2's folder of data: it has no tau2/domains (--data DIR)")
        self._code = ForeignCode(
            Path(__file__).parent / "backend",
            interpreter=interpreter,
            paths=[found],
            variables={"TAU2_DATA_DIR": str(Path(data).absolute())},
            limits=ForeignLimits(time=_SECONDS),
        )
        self._numbers = count()
        self._keys: dict[int, tuple[Mapping[str, Any], str]] = {}

    def __enter__(self) -> Tau2Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._code.close()

    def left(
        self,
        domain: str,
        task: Mapping[str, Any],
        calls: Sequence[Call],
        results: Sequence[str | None] = (),
    ) -> Left:
        """What the calls of a dialogue leave, made again from the task's initial state; those of the task's own history
        are among them.

        Calls that change nothing are not made, those of unknown tools neither. ``results`` are what the dialogue
        recorded of each call; one that gives something else now says that the dialogue is of another version.

        Raises :class:`callwright.InfrastructureFailure` for that, and where the process is lost.
        """
        found = self.left_together(domain, [Recorded(task, calls, results)])[0]
        if isinstance(found, InfrastructureFailure):
            raise found
        return found

    def left_together(self, domain: str, asked: Sequence[Recorded]) -> list[Left | InfrastructureFailure]:
        """As :meth:`left`, of several dialogues at once; in place of what is not known stands why."""
        try:
            return self._left_of(domain, asked)
        except InfrastructureFailure as error:
            if len(asked) == 1:
                return [error]
        return [found for one in asked for found in self.left_together(domain, [one])]  # of which one cost the process

    def _left_of(self, domain: str, asked: Sequence[Recorded]) -> list[Left | InfrastructureFailure]:
        keys = [self._key(domain, one.task) for one in asked]
        told = [[key, _sent(one)] for key, one in zip(keys, asked, strict=True)]
        answers = self._evaluated(told)
        unknown = [at for at, answer in enumerate(answers) if not answer]
        if unknown:  # the first time, and after the process was lost
            for key, task in {keys[at]: asked[at].task for at in unknown}.items():
                self._asked("know", key, domain, json.dumps(task))
            for at, answer in zip(unknown, self._evaluated([told[at] for at in unknown]), strict=True):
                answers[at] = answer or {"raised": "the process was lost"}
        found: list[Left | InfrastructureFailure] = []
        for answer in answers:
            if "raised" in answer:
                found.append(InfrastructureFailure(f"tau2's code: {answer['raised']}"))
            elif "replayed" in answer:
                found.append(InfrastructureFailure(f"the dialogue cannot be replayed: {answer['replayed']}"))
            else:
                found.append(Left(answer["db"], answer["assertions"]))
        return found

    def _evaluated(self, told: Sequence[Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._asked("evaluate_all", json.dumps(told)))
        return found

    def _key(self, domain: str, task: Mapping[str, Any]) -> str:
        """By what is in a task, which may have the id of another one. The same object has the same key."""
        known = self._keys.get(id(task))
        if known is None or known[0] is not task:
            if len(self._keys) >= _MOST_KEYS:
                self._keys.clear()
            known = self._keys[id(task)] = task, digest_of([domain, task])
        return known[1]

    # Dialogues that are led -------------------------------------------------------------------------------------------

    def describe(self, domain: str) -> Mapping[str, Any]:
        """``policy``, ``tools`` and ``user_tools`` (as function definitions) of a domain.

        Raises :class:`callwright.UsageError` for a domain that cannot be opened.
        """
        try:
            found: Mapping[str, Any] = self._code.call(f"{_MODULE}:describe", domain)
        except ForeignRaised as error:
            raise UsageError(
                f"tau2's domain {domain!r} cannot be opened with this --package and --data: {error}"
            ) from error
        return found

    def begin(self, domain: str, task: Mapping[str, Any]) -> tuple[int, str]:
        """Open a dialogue in the state in which a task begins: its number, and the digest of the databases.

        Raises :class:`callwright.InfrastructureFailure` where that fails.
        """
        number = next(self._numbers)
        return number, str(self._asked("begin", number, domain, dict(task))["digest"])

    def call(self, number: int, by: str, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Make a call of the ``assistant`` or the ``user`` in a dialogue: ``content``, ``error`` and ``digest``.

        ``None`` for a dialogue that was lost with its process. Raises
        :class:`callwright.machines.foreign_code.code.ForeignLost` where the process is lost meanwhile.
        """
        found: Mapping[str, Any] = self._asked("call", number, by, name, dict(arguments), time_limit=_CALL_SECONDS)
        return found or None

    def end(self, number: int) -> None:
        """Forget a dialogue."""
        self._asked("end", number)

    def _asked(self, function: str, *given: Any, time_limit: float | None = None) -> Any:
        try:
            return self._code.call(f"{_MODULE}:{function}", *given, time_limit=time_limit)
        except ForeignRaised as error:
            raise InfrastructureFailure(f"tau2's code: {error}") from error


def _sent(one: Recorded) -> list[Any]:
    told = [*one.results, *[None] * (len(one.calls) - len(one.results))]
    return [[call.by, call.name, dict(call.arguments), said] for call, said in zip(one.calls, told, strict=True)]
