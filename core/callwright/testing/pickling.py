"""What checks of pickling share: the copy of a component that another process would have."""

from __future__ import annotations

import functools
import io
import pickle
from typing import Any

from callwright.errors import CallwrightError
from callwright.pickling import made_again
from callwright.plugins import PluginSource, Registry, registered


def elsewhere(value: Any, what: str) -> Any:
    """The copy that another process gets. Raises :class:`AssertionError` for what cannot be pickled or read again.

    Nothing of this process is shared with it but modules: what travels as a description is made anew.
    """
    try:
        text = pickle.dumps(value)
    except CallwrightError as error:
        raise AssertionError(str(error)) from error
    except Exception as error:
        raise AssertionError(
            f"pickling {what} raised {type(error).__name__}: {error}; drop what belongs to this process in "
            "__getstate__, or say in __reduce__ how to make it again"
        ) from error
    try:
        return _Elsewhere(io.BytesIO(text)).load()
    except Exception as error:
        raise AssertionError(
            f"what was pickled of {what} cannot be read again: {type(error).__name__}: {error}"
        ) from error


def refuses(value: Any) -> bool:
    """Whether it says in words that it cannot be pickled, as what holds a connection or a model does."""
    try:
        pickle.dumps(value)
    except CallwrightError as error:
        return bool(str(error))
    except Exception:
        return False
    return False


class _Elsewhere(pickle.Unpickler):
    """Reads a pickle as a process does in which nothing was made yet."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        return _made_anew if found is made_again else found


def _made_anew(make: Any, arguments: tuple[Any, ...]) -> Any:
    if make is not registered:
        return make(*arguments)
    source, kind, name, options = arguments
    return _other_registry(source).create(kind, name, **(pickle.loads(options) if options else {}))


@functools.lru_cache(maxsize=4)
def _other_registry(source: PluginSource) -> Registry:
    return source.load()
