"""What engines made, on its way into the run folder: they write it down, and the trainer claims it for steps.

OpenRLHF does not tell an engine which step it samples for, and the trainer may hear of a step long after it was over.
So nothing goes by when a line is read, and all by what its writer knew: when a prompt's group was whole, and how many
of its samples OpenRLHF takes, which is none of a group that it filters out. OpenRLHF waits for all samples of a step
before it trains on them, and trains before it asks for those of the next. Hence, in the order in which groups were
whole, the first ones are of the first step, as many as its log line counts, and the next ones of the next.

The clocks of nodes may differ by less than an update takes. Files of an earlier start are removed before the next one.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen

from callwright.errors import RunError
from callwright.training.run_folder import jsonl_lines

Kind = Literal["rollouts", "verdicts"]
KINDS: Final[tuple[Kind, ...]] = ("rollouts", "verdicts")


class SpoolWriter:
    """The file of one engine's process in the folder ``folder``: a line for each group that is whole."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{socket.gethostname()}-{os.getpid()}.jsonl"
        self._last = 0

    def write(self, kind: Kind, rows: Sequence[Mapping[str, Any]], samples: int, prompt: int) -> None:
        """A group that is whole, before OpenRLHF is told.

        ``rows`` are what is kept of it, ``samples`` how many OpenRLHF takes of it, and ``prompt`` its place among those
        that were exported. Raises :class:`callwright.errors.RunError` if a row is not JSON or it cannot be written.
        """
        self._last = max(self._last + 1, time.time_ns())  # a clock that is set back changes no order in here
        line = {"kind": kind, "at": self._last, "prompt": prompt, "samples": samples, "rows": rows}
        data = b"".join(jsonl_lines(self._path, [line]))
        try:
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("ab") as file:  # not forced to the disk: the next start begins without it
                file.write(data)
        except OSError as error:
            raise RunError(f"{self._path} cannot be written: {error.strerror or error}") from error


@frozen
class _Line:
    at: int
    prompt: int
    samples: int
    rows: list[dict[str, Any]]


class SpoolReader:
    """All files of the folder ``folder``, claimed step by step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._lines: dict[Kind, list[_Line]] = {kind: [] for kind in KINDS}
        self._asked: dict[Kind, deque[tuple[int, int]]] = {kind: deque() for kind in KINDS}

    def over(self, kind: Kind, step: int, samples: int) -> None:
        """OpenRLHF said that a step, or an evaluation, was over, which took so many samples. Steps come in order."""
        self._asked[kind].append((step, samples))

    def claimed(self, kind: Kind, *, last: bool = False) -> list[tuple[int, list[dict[str, Any]]]]:
        """The rows of the steps that are over, by step, once they can all be seen: shared file systems take a while.

        Within a step they come in the order of prompts. The ``last`` time, of what can be seen.
        """
        self._read_on()
        lines, asked = self._lines[kind], self._asked[kind]
        lines.sort(key=lambda line: line.at)
        found: list[tuple[int, list[dict[str, Any]]]] = []
        while asked:
            step, samples = asked[0]
            taken = count = 0
            while taken < len(lines) and count < samples:
                count += lines[taken].samples
                taken += 1
            if count < samples and not last:
                break
            asked.popleft()
            ordered = sorted(lines[:taken], key=lambda line: line.prompt)
            found.append((step, [row for line in ordered for row in line.rows]))
            del lines[:taken]
        return found

    def _read_on(self) -> None:
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(whole)
            for text in whole.splitlines():
                held = json.loads(text)
                self._lines[held["kind"]].append(_Line(held["at"], held["prompt"], held["samples"], held["rows"]))
