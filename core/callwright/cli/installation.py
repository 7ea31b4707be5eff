"""What is installed, what is missing and what is broken: the facts of ``callwright doctor``."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from callwright.plugins import Registry

_OLDEST: Final = (3, 11)
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?\s*([^;]*)(?:;(.*))?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


def examine(registry: Registry) -> dict[str, Any]:
    """Everything that ``callwright doctor`` shows; ``problems`` says in sentences what is broken."""
    base, extras = requirements()
    packages = {name: _version(name) for name, _ in base}
    problems = [f"{name} is not installed: pip install callwright" for name, found in packages.items() if found is None]
    problems += [
        f"{name} {packages[name]} is installed, but callwright needs {wanted}: pip install --upgrade callwright"
        for name, wanted in base
        if packages[name] is not None and not _satisfies(packages[name] or "", wanted)
    ]
    if sys.version_info < _OLDEST:
        problems.append(f"Python {platform.python_version()} is too old; 3.11 or newer is needed")
    broken = [{"name": info.name, "error": info.error} for info in registry.plugins if info.error]
    problems += [plugin["error"] for plugin in broken]
    torch = _torch()
    if torch is not None and "error" in torch:
        problems.append(f"torch is installed but cannot be imported: {torch['error']}")
    return {
        "ok": not problems,
        "problems": problems,
        "callwright": _version("callwright"),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "packages": packages,
        "extras": {extra: _extra(extra, wanted) for extra, wanted in extras.items()},
        "plugins": {
            "working": [info.name for info in registry.plugins if not info.error and not info.blocked],
            "left_out": [info.name for info in registry.plugins if info.blocked],
            "broken": broken,
        },
        "cores": _cores(),
        "torch": torch,
        "writable": _writable(),
    }


def requirements() -> tuple[list[tuple[str, str]], dict[str, list[tuple[str, str]]]]:
    """What the installed distribution asks for: ``(name, versions)`` of the base, and by extra."""
    try:
        stated = metadata.requires("callwright") or []
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        return [], {}
    base: list[tuple[str, str]] = []
    extras: dict[str, list[tuple[str, str]]] = {}
    inner: dict[str, list[str]] = {}
    for line in stated:
        match = _REQUIREMENT.match(line)
        assert match is not None
        name, included, versions, marker = match[1], match[2], match[3].strip(" ()"), match[4] or ""
        extra = _EXTRA.search(marker)
        if extra is None:
            base.append((name, versions))
        elif name == "callwright":
            inner.setdefault(extra[1], []).extend(part.strip() for part in (included or "").split(","))
        else:
            extras.setdefault(extra[1], []).append((name, versions))
    for extra_name, parts in inner.items():
        for part in parts:
            extras[extra_name] = [*extras.get(part, []), *extras.get(extra_name, [])]
    return base, dict(sorted(extras.items()))


def _extra(extra: str, wanted: list[tuple[str, str]]) -> dict[str, Any]:
    versions = {name: _version(name) for name, _ in wanted}
    missing = [f"{name}{needed}" for name, needed in wanted if not _satisfies(versions[name] or "", needed)]
    install = f"pip install 'callwright[{extra}]'"
    return {"installed": not missing, "missing": missing, "versions": versions, "install": install}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _satisfies(found: str, wanted: str) -> bool:
    """Whether a version is within a specifier; where nothing here can compare versions, any version is."""
    if not found:
        return False
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:
        return True
    return SpecifierSet(wanted).contains(found, prereleases=True)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def _torch() -> dict[str, Any] | None:
    if _version("torch") is None:
        return None
    try:
        import torch
    except Exception as error:  # a broken installation fails in many ways
        return {"version": _version("torch"), "error": f"{type(error).__name__}: {error}"}
    cuda = torch.cuda.is_available()
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())] if cuda else []
    return {"version": torch.__version__, "threads": torch.get_num_threads(), "cuda": names}


def _writable() -> bool:
    try:
        with tempfile.TemporaryFile(dir="."):
            return True
    except OSError:
        return False
