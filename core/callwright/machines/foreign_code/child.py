"""What runs in the process of foreign code. It stands alone: only the standard library, from Python 3.8 on.

Values travel as JSON. What JSON does not know is marked: tuples, sets, bytes, keys that are no text, whole numbers of
thousands of digits. Anything else arrives as its type and its representation, and can be looked at, not used.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

#: Seconds between two looks at whether the maker is still there.
LOOK = 0.5
#: The status of a process that a call made by forking, and that came back from the call.
_FORKED = 0
#: Whole numbers beyond this are written in hexadecimal digits: others cannot be read everywhere.
_MOST_DIGITS = 10**4000
_SHOWN = 200


class Opaque:
    """A value that cannot be copied: the name of its type and its representation, cut."""

    def __init__(self, type_name: str, shown: str) -> None:
        self.type_name, self.shown = type_name, shown

    def __repr__(self) -> str:
        return f"Opaque({self.type_name}: {self.shown})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and (self.type_name, self.shown) == (other.type_name, other.shown)

    def __hash__(self) -> int:
        return hash((self.type_name, self.shown))


def encode(value: Any) -> Any:
    """A value as what ``json.dumps`` writes and :func:`decode` reads. Raises :class:`RecursionError`."""
    kind = type(value)
    if value is None or kind in (bool, float, str):
        return value
    if kind is int:
        return value if -_MOST_DIGITS < value < _MOST_DIGITS else {"$int": hex(value)}
    if kind is list:
        return [encode(one) for one in value]
    if kind is dict:
        if all(type(key) is str and key[:1] != "$" for key in value):
            return {key: encode(inner) for key, inner in value.items()}
        return {"$dict": [[encode(key), encode(inner)] for key, inner in value.items()]}
    if kind is tuple:
        return {"$tuple": [encode(one) for one in value]}
    if kind in (set, frozenset):
        return {"$set": [encode(one) for one in sorted(value, key=repr)]}
    if kind in (bytes, bytearray):
        return {"$bytes": bytes(value).hex()}
    if kind.__module__.split(".")[0] == "numpy" and callable(getattr(value, "tolist", None)):
        return encode(value.tolist())
    plain: Any
    for plain in (int, float, str, list, dict, tuple):  # of a subclass, such as an enumeration
        if isinstance(value, plain):
            return encode(plain(value))
    try:
        shown = repr(value)[:_SHOWN]
    except Exception as error:  # whatever a foreign object does when it is shown
        shown = f"<{type(error).__name__}>"
    return {"$opaque": [kind.__qualname__, shown]}


def decode(value: Any) -> Any:
    """What :func:`encode` was given. Raises :class:`ValueError` for what it does not write."""
    if isinstance(value, list):
        return [decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1 or next(iter(value))[:1] != "$":
        return {key: decode(inner) for key, inner in value.items()}
    ((mark, inner),) = value.items()
    try:
        return _MARKED[mark](inner)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no value: {value!r:.80}") from error


_MARKED: dict[str, Callable[[Any], Any]] = {
    "$int": lambda inner: int(inner, 16),
    "$dict": lambda inner: {decode(key): decode(one) for key, one in inner},
    "$tuple": lambda inner: tuple(decode(one) for one in inner),
    "$set": lambda inner: {decode(one) for one in inner},
    "$bytes": bytes.fromhex,
    "$opaque": lambda inner: Opaque(*inner),
}


# The process ----------------------------------------------------------------------------------------------------------


class _Served:
    def __init__(self, requests: int, answers: int) -> None:
        self.requests, self.answers = requests, answers
        self.functions: dict[str, Callable[..., Any]] = {}
        self.largest = 0

    def serve(self) -> None:
        """Answer requests until nobody asks."""
        process = os.getpid()
        while True:
            request = self.read()
            if request is None:
                return
            answer = self.answer(request)
            if os.getpid() != process:
                os._exit(_FORKED)  # a copy that the call has made: the answer is its maker's to give
            self.write(answer)
            if "lost" in answer:
                os._exit(0)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return getattr(self, "do_" + request["do"])(**request["with"])  # type: ignore[no-any-return]
        except MemoryError:
            self.functions.clear()
            return {"lost": "memory"}
        except BaseException as error:
            try:
                told = str(error)
            except Exception:
                told = ""
            return {"raised": [type(error).__name__, told[:2000], _where(error)]}

    def do_begin(self, paths: list[str], memory: int | None, largest: int) -> dict[str, Any]:
        sys.path[:0] = paths
        self.largest = largest
        if memory is not None:
            import resource

            for name in ("RLIMIT_DATA", "RLIMIT_AS"):  # the first that the system keeps
                if hasattr(resource, name):
                    resource.setrlimit(
                        getattr(resource, name), (memory, resource.getrlimit(getattr(resource, name))[1])
                    )
                    break
        return {"value": list(sys.version_info[:3])}

    def do_load(self, function: str) -> dict[str, Any]:
        place, _, name = function.rpartition(":")
        found: Any = _module(place)
        for part in name.split("."):
            found = getattr(found, part)
        if not callable(found):
            raise TypeError(f"{function} is no function")
        self.functions[function] = found
        return {"value": None}

    def do_call(self, function: str, given: Any, named: Any, cpu: int | None) -> dict[str, Any]:
        if cpu is not None:
            import resource

            used = resource.getrusage(resource.RUSAGE_SELF)
            most = int(used.ru_utime + used.ru_stime) + cpu + 1
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        found = self.functions[function](*decode(given), **decode(named))
        answer = {"value": encode(found)}
        size = len(json.dumps(answer))
        if size > self.largest:
            return {"raised": ["ResultTooLarge", f"the result has {size:,} characters", ""]}
        return answer

    def read(self) -> dict[str, Any] | None:
        head = _exactly(self.requests, 8)
        body = None if head is None else _exactly(self.requests, int.from_bytes(head, "big"))
        return None if body is None else json.loads(body)

    def write(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        left = memoryview(len(body).to_bytes(8, "big") + body)
        while left:
            left = left[os.write(self.answers, left) :]


def _module(place: str) -> Any:
    """A module by its name, or by its file (``folder/name.py``), which is looked for on the paths."""
    if not place.endswith(".py"):
        return import_module(place)
    file = next((path for path in (Path(root, place) for root in sys.path) if path.is_file()), None)
    if file is None:
        raise FileNotFoundError(f"there is no {place}")
    spec = spec_from_file_location(f"callwright_foreign_{len(sys.modules)}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{place} is no Python file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _where(error: BaseException) -> str:
    """The innermost place of foreign code that an exception came through."""
    import traceback

    places = [one for one in traceback.extract_tb(error.__traceback__) if one.filename != __file__]
    return f"{places[-1].filename}:{places[-1].lineno} in {places[-1].name}" if places else ""


def _exactly(handle: int, count: int) -> bytes | None:
    pieces = []
    while count:
        piece = os.read(handle, min(count, 1 << 20))
        if not piece:
            return None
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _watch(maker: int) -> None:
    """End this process and all that it made when its maker is gone, whatever is being done."""
    while os.getppid() == maker:
        time.sleep(LOOK)
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Serve on the two handles that the command line names, for the process that it names."""
    requests, answers, maker = map(int, sys.argv[1:4])
    os.set_inheritable(requests, False)
    os.set_inheritable(answers, False)
    sys.argv[1:] = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(maker,), daemon=True).start()

    def let_go() -> None:
        os.close(requests)
        os.close(answers)

    os.register_at_fork(after_in_child=let_go)
    _Served(requests, answers).serve()


if __name__ == "__main__":
    main()
