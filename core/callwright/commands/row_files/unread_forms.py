"""What is said where the texts of logs hold calls in another form than the one that they are read in.

Without it such logs score 0 for their form, however right their calls are: Callwright's own verdicts, whose answers are
texts in the form of their evaluation, are read in the form of servers' own calls unless another is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from callwright.errors import CallwrightError
from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Program

if TYPE_CHECKING:
    from callwright.plugins import Registry
    from callwright.walk.attempt import Attempt

#: Texts that are read in every form.
_TRIED: Final = 20


class UnreadForms:
    """Counts the logs with a text that the form ``ir`` does not read, and finds the forms that read calls in it."""

    def __init__(self, registry: Registry, ir: str) -> None:
        self._registry, self._ir = registry, ir
        self.parser: Parser = registry.create("parser", ir)
        self._others: dict[str, Parser] | None = None
        self._unread = self._tried = 0
        self._readers: Counter[str] = Counter()

    def see(self, attempt: Attempt) -> None:
        """Look at the texts of a log; at calls that came as calls no form is to blame."""
        for completion, part in zip(attempt.completions, attempt.parts, strict=True):
            called = completion.message is not None and completion.message.tool_calls
            if isinstance(part, ParseFailure) and not called:
                self._unread += 1
                if self._tried < _TRIED:
                    self._tried += 1
                    self._try(completion.text)
                return

    def remarks(self) -> Iterator[str]:
        """The sentence about them, if another form reads every one that was tried."""
        fitting = [name for name, count in self._readers.items() if count == self._tried]
        if self._unread and fitting:
            some = f"{self._unread:,} {'log has' if self._unread == 1 else 'logs have'}"
            named = " or ".join(f"--ir {name}" for name in fitting)
            yield f"{some} calls in a text that the form {self._ir!r} does not read: name theirs with {named}"

    def _try(self, text: str) -> None:
        if self._others is None:
            self._others = dict(self._made())
        for name, parser in self._others.items():
            read = parser.parse(text)
            if isinstance(read, Program) and read.calls:
                self._readers[name] += 1

    def _made(self) -> Iterator[tuple[str, Parser]]:
        for name in self._registry.names("parser"):
            try:
                if name != self._ir:
                    yield name, self._registry.create("parser", name)
            except CallwrightError:  # a form that needs options or an extra is not one to name
                continue
