"""tau2's own code, in a process of its own: what a dialogue left in the databases of a domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright.errors import InfrastructureFailure, UsageError
from callwright.machines.foreign_code.code import ForeignCode, ForeignLimits, ForeignRaised
from callwright_plugins.tau2.scoring import Call

_FILE: Final = "source_side.py"
#: Seconds of one evaluation; the first of a domain parses its databases.
_SECONDS: Final = 120.0


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
            Path(__file__).parent,
            interpreter=interpreter,
            paths=[found],
            variables={"TAU2_DATA_DIR": str(Path(data).absolute())},
            limits=ForeignLimits(time=_SECONDS),
        )

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
        told = [*results, *[None] * (len(calls) - len(results))]
        made = [[call.by, call.name, dict(call.arguments), said] for call, said in zip(calls, told, strict=True)]
        try:
            found = self._code.call(f"{_FILE}:evaluate", domain, dict(task), made)
        except ForeignRaised as error:
            raise InfrastructureFailure(f"tau2's code: {error}") from error
        if "replayed" in found:
            raise InfrastructureFailure(f"the dialogue cannot be replayed: {found['replayed']}")
        return Left(found["db"], found["assertions"])
