"""Foreign code as it is asked for: functions by name, in processes that are replaced when they are lost."""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import LifoQueue
from typing import Any, Final, Self

from attrs import Attribute, field, frozen

from callwright.errors import ComponentError, InfrastructureFailure, UsageError
from callwright.machines.foreign_code.process import ForeignProcess

_GIGABYTE: Final = 2**30
#: What foreign code sees of the variables of this process: nothing that may be a secret.
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "OMP_NUM_THREADS")


class ForeignLost(InfrastructureFailure):
    """A call has no answer, and nothing is known of what it would have been: the sample is masked.

    ``code`` says why: ``timeout``, ``memory``, ``exited`` (the process ended or was killed) or ``garbled``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ForeignRaised(ComponentError):
    """The function raised. Whether that says something of a model is for whoever calls it to know.

    ``kind`` is the name of the exception, ``said`` its text, ``where`` the place in the foreign code.
    """

    def __init__(self, function: str, kind: str, said: str, where: str) -> None:
        super().__init__(f"{function} raised {kind}: {said}" + (f" ({where})" if where else ""))
        self.kind, self.said, self.where = kind, said, where


def _positive(instance: Any, attribute: Attribute[Any], value: float | None) -> None:
    if value is not None and not value > 0:
        raise UsageError(f"the limit {attribute.name!r} of foreign code is a positive number, not {value!r}")


@frozen(kw_only=True)
class ForeignLimits:
    """What foreign code may use. ``None`` is no limit.

    ``time``: seconds of a call, also of processor time of its process, so that it ends even where nobody is left to
    kill it; ``start``: seconds in which the interpreter has to start, and in which a module has to be imported;
    ``memory``: bytes of data that a process may hold; ``result``: characters of a result as JSON. ``calls``: how many
    are made in one process before another takes its place.
    """

    time: float | None = field(default=60.0, validator=_positive)
    start: float = field(default=120.0, validator=_positive)
    memory: int | None = field(default=4 * _GIGABYTE, validator=_positive)
    result: int = field(default=2**26, validator=_positive)
    calls: int | None = field(default=None, validator=_positive)


class ForeignCode:
    """Functions of a folder, called in processes of their own.

    ``folder`` is put on the path of ``interpreter`` (that of this process, if left out), as are ``paths``. It is
    started in isolation (``-I``), in an empty folder of its own that goes away with it, and sees no variables but
    ``variables`` and those that name programs, languages and time zones. What it prints goes nowhere. Up to
    ``processes`` calls go on at the same time. The network is not kept from it.

    A context manager; processes also end with this object and with this process. Raises
    :class:`callwright.UsageError` for a folder that is not there and for an interpreter that cannot be started.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        interpreter: str | Path | None = None,
        paths: Sequence[str | Path] = (),
        variables: Mapping[str, str] | None = None,
        limits: ForeignLimits | None = None,
        processes: int = 1,
    ) -> None:
        self.paths = tuple(str(Path(one).resolve()) for one in ([folder] if folder is not None else []) + list(paths))
        for path in self.paths:
            if not Path(path).is_dir():
                raise UsageError(f"{path} is no folder: foreign code is a folder with the modules of somebody else")
        if type(processes) is not int or processes < 1:
            raise UsageError(f"foreign code runs in 1 process or more, not {processes!r}")
        self.interpreter = sys.executable if interpreter is None else str(interpreter)
        self.limits = limits or ForeignLimits()
        self.variables = dict(variables or {})
        self.processes = processes
        self._open()

    def _open(self) -> None:
        self._free: LifoQueue[ForeignProcess | None] = LifoQueue()
        for _ in range(self.processes):
            self._free.put(None)
        self._begun: list[ForeignProcess] = []
        self._guard = threading.Lock()
        self._closed = self._proved = False
        self._end = weakref.finalize(self, _end_all, self._begun)

    def call(self, function: str, *given: Any, time_limit: float | None = None, **named: Any) -> Any:
        """What a function returns: ``module.name:function``, or ``folder/file.py:function``; a method by dots.

        Arguments and result are copied: a function that changes what it is given changes nothing here. Tuples, sets,
        bytes and NaN stay what they are; what cannot be copied comes back as
        :class:`callwright.machines.foreign_code.child.Opaque`.

        ``time_limit`` (seconds) takes the place of that of the limits.

        Raises :class:`ForeignLost` where there is no answer, :class:`ForeignRaised` where the function raised, and
        :class:`callwright.UsageError` for a function that cannot be loaded.
        """
        if self._closed:
            raise UsageError("the processes of this foreign code were closed")
        process = self._free.get()
        try:
            if process is None or not process.usable:
                process = self._started(process)
            if function not in process.loaded:
                self._load(process, function)
            limit = self.limits.time if time_limit is None else time_limit
            cpu = None if limit is None else math.ceil(limit)
            answer = process.ask(function, limit, "call", function=function, given=list(given), named=named, cpu=cpu)
            process.calls += 1
        finally:
            if process is not None and self.limits.calls is not None and process.calls >= self.limits.calls:
                process.kill()
            self._free.put(process)
        return _opened(function, answer)

    def version(self) -> tuple[int, ...]:
        """The version of the interpreter, such as ``(3, 12, 1)``."""
        process = self._free.get()
        try:
            if process is None or not process.usable:
                process = self._started(process)
            return process.version
        finally:
            self._free.put(process)

    def _started(self, before: ForeignProcess | None) -> ForeignProcess:
        with self._guard:
            if before in self._begun:
                self._begun.remove(before)
            variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | self.variables
            folder = tempfile.mkdtemp(prefix="callwright-foreign-")
            try:
                process = ForeignProcess(self.interpreter, folder, variables)
            except OSError as error:
                shutil.rmtree(folder, ignore_errors=True)
                raise UsageError(f"the interpreter {self.interpreter} cannot be started: {error}") from error
            self._begun.append(process)
        limits = self.limits
        begun = process.ask(
            f"starting {self.interpreter}",
            limits.start,
            "begin",
            paths=list(self.paths),
            memory=limits.memory,
            largest=limits.result,
        )
        if "value" not in begun and not self._proved:
            raise UsageError(f"{self.interpreter} is no Python interpreter that can be used: {_why(begun)}")
        process.version, self._proved = tuple(_opened(self.interpreter, begun)), True
        return process

    def _load(self, process: ForeignProcess, function: str) -> None:
        if not all(function.rpartition(":")):
            raise UsageError(f"{function!r} names no function: give module.name:function or folder/file.py:function")
        try:
            _opened(function, process.ask(f"loading {function}", self.limits.start, "load", function=function))
        except ForeignRaised as error:
            python = ".".join(map(str, process.version))
            raise UsageError(
                f"{function} cannot be loaded from {' and '.join(self.paths) or 'the path'} by {self.interpreter} "
                f"(Python {python}): {error.kind}: {error.said}"
            ) from error
        process.loaded.add(function)

    def close(self) -> None:
        """End the processes. A call that goes on has no answer. Closing twice is allowed."""
        self._closed = True
        with self._guard:
            _end_all(self._begun)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        names = ("paths", "interpreter", "limits", "variables", "processes")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def _opened(function: str, answer: Mapping[str, Any]) -> Any:
    if "lost" in answer:
        raise ForeignLost(answer["lost"][0], answer["lost"][1])
    if "raised" in answer:
        kind, said, where = (str(one) for one in answer["raised"])
        raise ForeignRaised(function, kind, said, where)
    return answer["value"]


def _why(answer: Mapping[str, Any]) -> str:
    return ": ".join(str(one) for one in answer.get("lost", answer.get("raised", ()))[1:] if one)


def _end_all(begun: list[ForeignProcess]) -> None:
    while begun:
        begun.pop().kill()
