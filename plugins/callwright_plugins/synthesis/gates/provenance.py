"""Provenance of sensitive values: from an earlier turn of the user or an earlier result, never from nowhere.

Prove checks passwords and tokens so (section 3.2, step 5). PINs, codes and keys are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from callwright.language.program import Reference
from callwright.tools.spec import ToolSpec
from callwright.training.synthesis.units import Rejected
from callwright_plugins.synthesis.gates.case import Case
from callwright_plugins.synthesis.gates.hearing import hearings
from callwright_plugins.synthesis.language.values.hints import SENSITIVE


class Provenance:
    """The gate ``provenance``."""

    name: Final = "provenance"

    def __call__(self, case: Case) -> Rejected | None:
        """A sensitive value that nobody has told."""
        for at, call, heard in hearings(case):
            for name, value in secrets(case.task.tools.get(call.tool), call.arguments):
                if not heard.has(value):
                    return Rejected(
                        self.name,
                        "a secret from nowhere",
                        {"turn": at, "tool": call.tool, "argument": name, "length": len(str(value))},
                    )
        return None


def secrets(spec: ToolSpec | None, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The sensitive arguments that are literal, with their values."""
    properties = spec.parameters.get("properties") if spec is not None else None
    for name, value in arguments.items():
        schema = properties.get(name) if isinstance(properties, Mapping) else None
        stated = isinstance(schema, Mapping) and (schema.get("format") == "password" or bool(schema.get("writeOnly")))
        if (
            (stated or SENSITIVE.search(name))
            and not isinstance(value, Reference | bool | Mapping | list)
            and value is not None
        ):
            yield name, value
