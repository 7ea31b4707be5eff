"""The hook reference holds every hook under its exact signature, and nothing that is not a hook."""

from __future__ import annotations

import inspect
from typing import Any

from callwright import hookspecs
from callwright.plugins import EVENTS, KINDS


def _signatures() -> dict[str, str]:
    found = {}
    for name, value in vars(hookspecs).items():
        if hasattr(value, "callwright_spec"):
            signature = inspect.signature(value)
            arguments = ", ".join(f"{key}: {argument.annotation}" for key, argument in signature.parameters.items())
            found[name] = f"{name}({arguments}) -> {signature.return_annotation}"
    return found


def test_every_hook_stands_in_the_reference_under_its_signature(page: Any) -> None:
    headings = [heading.strip("`") for heading in page("docs/hooks.md").headings]
    documented = [heading for heading in headings if heading.startswith("callwright_")]
    assert documented == list(_signatures().values())


def test_every_hook_is_a_kind_or_an_event() -> None:
    assert set(_signatures()) == {*KINDS.values(), *EVENTS}


def test_the_version_of_the_hooks_is_stated(page: Any) -> None:
    text = " ".join(token.content for token in page("docs/hooks.md").inline)
    assert f"version {hookspecs.HOOKSPEC_VERSION}" in text
