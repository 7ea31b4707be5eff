"""Every option of every shipped component stands in a table, with the default that its factory has and a meaning."""

from __future__ import annotations

import inspect
from typing import Any

import attrs
import pytest

from callwright.errors import MissingExtra
from callwright.options import option_table
from callwright.plugins import load_plugins
from callwright.registration import Lazy
from callwright_plugins.synthesis.blueprints.knobs import Knobs

COMPONENTS = [(kind, lazy) for kind, lazy in load_plugins().components() if kind not in ("command", "toolset")]
#: What a pipeline sets, and no recipe.
OF_THE_REGISTRY = {"registry"}
#: Factories that hand ``**options`` on: what takes these.
HANDED_ON: dict[str, Any] = {"grounded": Knobs}


def taken(factory: Any) -> dict[str, Any] | None:
    """Option -> default of a factory; none where only what it hands them on to knows."""
    parameters = inspect.signature(factory).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return None
    return {one.name: one.default for one in parameters if one.name not in OF_THE_REGISTRY}


@pytest.mark.parametrize(("kind", "lazy"), COMPONENTS, ids=[f"{kind}-{lazy.name}" for kind, lazy in COMPONENTS])
def test_options_stand_in_a_table(kind: str, lazy: Lazy) -> None:
    table = option_table(lazy)
    try:
        factory = lazy.load()
    except MissingExtra as error:
        pytest.skip(str(error))
    options = taken(factory) if callable(factory) else {}
    if table is None:
        assert not options, f"the {kind} {lazy.name!r} declares no table of its options"
        return
    declared = table.model_fields
    assert [name for name, one in declared.items() if not one.description] == []
    if options is None:
        if (handed := HANDED_ON.get(lazy.name)) is not None:
            knobs = {one.name: one.default for one in attrs.fields(handed)}
            assert {name: declared[name].default for name in knobs} == knobs
        return
    assert set(declared) == set(options)
    for name, default in options.items():
        option = declared[name]
        assert option.is_required() is (default is inspect.Parameter.empty), name
        if not option.is_required() and option.annotation is not Any:  # an object of Python's is told in words
            told = option.get_default(call_default_factory=True, validated_data={})
            assert told == default, name
