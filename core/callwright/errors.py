"""The exception tree: every error that Callwright raises on purpose.

An error says what happened, whose fault it is and what to do. The command line prints ``str(error)`` as one line
and leaves with ``exit_status``; it never shows a traceback for one of these. Text written by a model never raises:
it is data, and its defects are values (:class:`callwright.ParseFailure`, :class:`callwright.tools.Mismatch`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


class CallwrightError(Exception):
    """Base of all errors of this package."""

    exit_status: int = 1

    def __reduce__(self) -> Any:
        """Errors of workers arrive as they were raised, whatever arguments their classes take."""
        return _revived, (type(self), self.args, self.__dict__)


def _revived(kind: type[CallwrightError], args: tuple[Any, ...], attributes: dict[str, Any]) -> CallwrightError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class UsageError(CallwrightError):
    """The caller asked for something that does not exist or does not fit together."""

    exit_status = 2


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """What was meant: a name that is spelt almost so, else the one that it is a variant of, else the most similar."""
    for cutoff in (0.8, 0.5):
        if close := difflib.get_close_matches(name, known, n=1, cutoff=cutoff):
            return close[0]
        if of := [other for other in known if name.startswith(f"{other}-")]:
            return max(of, key=len)
    return None


#: So many known names are listed with an unknown one, at most.
LISTED = 10


def _nearby(name: str, known: Sequence[str]) -> str:
    """All known names, or the ten that are most like this one."""
    if len(known) <= LISTED:
        return ", ".join(known)
    # Ids of tasks come by the thousand: they are not all compared with one another.
    alike = difflib.get_close_matches(name[:60], known, n=LISTED, cutoff=0.3) if len(known) <= 1000 else []
    shown = [*alike, *(other for other in known if other not in alike)][:LISTED]
    return f"{', '.join(sorted(shown))}, and {len(known) - LISTED:,} more"


def needs_option(owner: str, option: str) -> str:
    """That an option is missing, in words; of files of others, how they are named and who says which they are."""
    files = option == "data" and owner.startswith(("the corpus ", "the benchmark "))
    flag = ", the folder of its files: --data DIR in a command" if files else ""
    name = owner.removeprefix("the benchmark ").strip("'")
    which = f"; callwright benchmark show {name} says which they are" if files and name != owner else ""
    return f"{owner} needs the option {option!r}{flag}{which}"


class SeveralMistakes(UsageError):
    """More than one thing is wrong with what was asked for; ``each`` is one of them, and has a line of the message."""

    def __init__(self, each: Sequence[UsageError]) -> None:
        self.each = tuple(each)
        super().__init__("\n".join(dict.fromkeys(map(str, each))))


def raise_together(mistakes: Sequence[UsageError]) -> None:
    """Raise the mistakes as one error; the mistake itself where there is only one, and nothing where there is none."""
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        raise SeveralMistakes(mistakes)


class UnknownName(UsageError):
    """A component was asked for by a name that nobody registered."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        #: The known name that was probably meant, if there is one.
        self.nearest = close = _nearest(name, self.known)
        meant = f" Did you mean {close!r}?" if close else ""
        listed = _nearby(name, self.known) if self.known else "none is registered"
        tail = f" {hint}" if hint else ""
        super().__init__(f"There is no {kind} named {name!r}.{meant} Known: {listed}.{tail}")


class RecipeError(UsageError):
    """A pipeline recipe cannot be read; the message starts with ``file:line``."""

    #: The key that it is about, where it is about one.
    key: tuple[str, ...] = ()
    #: Where keys are wrong: the recipe and its data without them, and what was set; ``None`` if others hang on them.
    sound: Any = None
    #: The same as a recipe that was loaded, of which more can be said.
    rest: Any = None


class DataError(UsageError):
    """A file that the user named is missing, unreadable or not in the stated format."""


class NotThere(DataError):
    """A file or folder that the user named is not there, perhaps not yet: a dry run plans without it."""


def cannot_read(path: str | Path, error: OSError | EOFError) -> DataError:
    """The error about a file or folder that cannot be opened; one that is not there has the nearest name that is."""
    reason = getattr(error, "strerror", None) or error
    if isinstance(error, FileNotFoundError):
        return NotThere(f"{path} cannot be read: {reason}{near_path(path)}")
    return DataError(f"{path} cannot be read: {reason}")


def near_path(path: str | Path) -> str:
    """``". Did you mean 'runs/demo'?"`` for a path that does not exist, ``""`` where nothing beside it is spelt so."""
    path = Path(path)
    if path.exists():
        return ""
    for missing in (path, *path.parents):  # the first part that is not there: what is below it cannot be
        if missing.parent.is_dir():
            try:
                beside = sorted(entry.name for entry in missing.parent.iterdir())
            except OSError:
                return ""
            close = difflib.get_close_matches(missing.name, beside[:1000], n=1, cutoff=0.6)
            return f". Did you mean {str(missing.with_name(close[0]))!r}?" if close and missing.name else ""
    return ""


class SessionInUse(UsageError):
    """A second thread used a session while the first one was in it. Each thread needs a session of its own."""


class MissingExtra(CallwrightError):
    """A component needs packages of an optional extra; the message holds the exact install command."""

    exit_status = 3

    def __init__(self, component: str, extra: str, missing: str) -> None:
        self.component, self.extra, self.missing = component, extra, missing
        super().__init__(
            f"{component} needs the package {missing!r}, which is not installed. "
            f"Install it with: pip install 'callwright[{extra}]'"
        )


class PluginError(CallwrightError):
    """A plugin is broken; the message names the plugin, its distribution and version."""

    exit_status = 4


class NameClash(PluginError):
    """Two plugins registered the same name for the same kind of component."""


class ComponentError(CallwrightError):
    """A component raised: a bug of that component, never of the model whose text it was given."""

    exit_status = 5


class CannotExpress(CallwrightError):
    """A program holds something that this intermediate representation has no way to write."""


class Abstention(CallwrightError):
    """Raised where a question cannot be answered, such as whether a call executed whose outcome nobody recorded.

    A reward component that lets it pass abstains: the sample is masked, and its reward is never a number.
    """


class InfrastructureFailure(CallwrightError):
    """Raised by a session when the machinery failed, not the model: becomes an ``infrastructure_error`` outcome."""


class RunError(CallwrightError):
    """A run folder cannot be written, resumed or read."""


class FolderTaken(RunError):
    """A folder holds something else than what is to be written there, such as a run of another recipe."""

    exit_status = 2
