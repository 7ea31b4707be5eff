"""The files of a new plugin: those of :mod:`.kinds` and ``files``, with its names in the place of ``zebra``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata, resources
from pathlib import Path
from typing import Final, Literal

from attrs import frozen

from callwright.errors import UsageError
from callwright.hookspecs import HOOKSPEC_VERSION
from callwright_plugins.new_plugin.kind import KINDS, Kind

Licence = Literal["mit", "apache-2.0", "none"]
_SPDX: Final[Mapping[str, str]] = {"mit": "MIT", "apache-2.0": "Apache-2.0"}
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_PLACE: Final = re.compile("«([a-z]+)»")
_LONGEST: Final = 40
_IMPORTED: Final = (
    "import callwright as cw",
    "import pytest",
    "from callwright.plugins import load_plugins",
    "from callwright.testing import Check, checks_for",
)


@frozen
class NewPlugin:
    """A plugin that is to be written. Raises :class:`callwright.UsageError` for a name that cannot be one."""

    name: str
    kind: str
    licence: Licence = "mit"
    author: str = ""

    def __attrs_post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.name) > _LONGEST:
            raise UsageError(
                f"{self.name!r:.80} cannot be the name of a plugin: it has small letters, digits and single hyphens, "
                f"begins with a letter, and is at most {_LONGEST} long (such as no-repeats)"
            )

    @property
    def distribution(self) -> str:
        """What is installed: ``callwright-NAME``."""
        return f"callwright-{self.name}"

    @property
    def module(self) -> str:
        """What is imported: ``callwright_NAME``."""
        return f"callwright_{self._identifier}"

    @property
    def _identifier(self) -> str:
        return self.name.replace("-", "_")

    def files(self) -> dict[Path, str]:
        """The text of every file, by its path within the folder."""
        kind = KINDS[self.kind]
        source = Path("src") / self.module
        made = {
            Path("pyproject.toml"): self._filled("pyproject.toml.txt", kind),
            Path("README.md"): self._filled("README.md.txt", kind),
            Path(".github/workflows/tests.yml"): self._filled("tests.yml.txt", kind),
            Path(".gitignore"): "__pycache__/\n*.egg-info/\n.venv/\ndist/\n",
            source / "__init__.py": self._filled("__init__.py.txt", kind),
            source / f"{self.kind}.py": self._named(_text("kinds", f"{self.kind}.py")),
            source / "py.typed": "",
            Path("tests") / f"test_{self._identifier}.py": self._named(
                self._filled("conformance.py.txt", kind) + _text("files", "tests", f"{self.kind}.py.txt")
            ),
        }
        if kind.example is not None:
            name, text = kind.example
            made[Path(name)] = self._named(text)
        if self.licence != "none":
            made[Path("LICENSE")] = self._filled(f"{self.licence}.txt", kind)
        return made

    def write(self, folder: Path) -> None:
        """Write them into a folder that is not there yet, or is empty. Raises :class:`callwright.UsageError`."""
        try:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise UsageError(f"{folder} is there already; choose another folder (-o)")
            for path, text in self.files().items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from error

    def _filled(self, file: str, kind: Kind) -> str:
        values = {
            "distribution": self.distribution,
            "summary": kind.summary,
            "kind": self.kind,
            "licence": f'license = "{_SPDX[self.licence]}"\n' if self.licence != "none" else "",
            "extra": f"[{kind.extra}]" if kind.extra else "",
            "version": metadata.version("callwright"),
            "hookversion": str(HOOKSPEC_VERSION),
            "example": f"| `{kind.example[0]}` | what the command below reads |\n" if kind.example is not None else "",
            "usage": "\n".join(f"    {line}" for line in kind.usage),
            "hooks": "".join(self._hooks(kind)).rstrip("\n"),
            "imports": self._imports(kind),
            "components": self._components(kind),
            "year": str(datetime.now(UTC).year),
            "author": self.author or f"The authors of {self.distribution}",
        }
        return self._named(_PLACE.sub(lambda found: values[found[1]], _text("files", file)))

    def _hooks(self, kind: Kind) -> list[str]:
        made = []
        for one in kind.registered:
            values = {
                "hook": one.hook,
                "what": kind.what,
                "component": one.name,
                "kind": self.kind,
                "attribute": one.attribute,
                "summary": one.summary or kind.summary,
                "more": f'        extra="{kind.extra}",\n' if kind.extra else "",
            }
            made.append(_PLACE.sub(lambda found, values=values: values[found[1]], _text("files", "hook.py.txt")))  # type: ignore[misc]
        return made

    def _imports(self, kind: Kind) -> str:
        """The imports of the tests, in the order that isort and ruff ask for."""
        blocks: list[list[str]] = [[], [], []]
        for line in sorted({*_IMPORTED, *kind.imports}, key=lambda line: (line.startswith("from "), line)):
            package = line.split()[1].partition(".")[0]
            blocks[0 if package in sys.stdlib_module_names else 2 if package == "callwright" else 1].append(line)
        return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"

    def components(self) -> list[tuple[str, str]]:
        """What it registers: kinds and names."""
        return [(one.kind, self._named(one.name)) for one in KINDS[self.kind].registered]

    def _components(self, kind: Kind) -> str:
        return "[" + ", ".join(f'("{one.kind}", "{one.name}")' for one in kind.registered) + "]"

    def _named(self, text: str) -> str:
        camel = "".join(part.capitalize() for part in self.name.split("-"))
        text = re.sub(r"(?<=_)zebra|zebra(?=_)", self._identifier, text)
        return text.replace("zebra", self.name).replace("Zebra", camel)


def _text(*path: str) -> str:
    return resources.files("callwright_plugins.new_plugin").joinpath(*path).read_text(encoding="utf-8")
