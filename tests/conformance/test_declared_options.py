"""Every option of every shipped component stands in a table, with the default that its factory has and a meaning."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from pydantic import Field

from callwright.cli.plugin_checks import check_options
from callwright.errors import MissingExtra
from callwright.options import OptionTable, option_table
from callwright.plugins import load_plugins
from callwright.registration import Lazy
from callwright_plugins.synthesis.blueprints.knobs import Knobs

COMPONENTS = [(kind, lazy) for kind, lazy in load_plugins().components() if kind not in ("command", "toolset")]


@pytest.mark.parametrize(("kind", "lazy"), COMPONENTS, ids=[f"{kind}-{lazy.name}" for kind, lazy in COMPONENTS])
def test_options_stand_in_a_table(kind: str, lazy: Lazy) -> None:
    try:
        factory = lazy.load()
    except MissingExtra as error:
        pytest.skip(str(error))
    assert list(check_options(lazy, factory)) == []


def test_the_knobs_of_grounded_stand_in_its_table() -> None:
    (lazy,) = [lazy for kind, lazy in COMPONENTS if (kind, lazy.name) == ("synthesizer", "grounded")]
    table = option_table(lazy)
    assert table is not None
    knobs = {one.name: one.default for one in attrs.fields(Knobs)}
    assert {name: table.model_fields[name].default for name in knobs} == knobs


class Table(OptionTable):
    """Options."""

    size: int = Field(default=3, description="How large it is.")


class Silent(OptionTable):
    """Options without a meaning."""

    size: int = 3


@pytest.mark.parametrize(
    ("table", "factory", "told"),
    [
        (Table, lambda size=3: size, []),
        (Table, lambda size=3, registry=None: size, []),
        (Table, lambda **options: options, []),
        (None, lambda: 3, []),
        (None, lambda size=3: size, ["declares no table for its options (size)"]),
        (None, lambda **options: options, ["declares no table for its options (**options)"]),
        (Silent, lambda size=3: size, ["the option 'size' of its table has no description"]),
        (Table, lambda: 3, ["the table has the option 'size', which the component does not take"]),
        (Table, lambda size=3, way="": way, ["the component takes 'way', which is not in its table"]),
        (Table, lambda size: size, ["the option 'size' must be given by the component alone"]),
        (Table, lambda size=4: size, ["the option 'size' is 4 if left out, and 3 in the table"]),
    ],
)
def test_what_is_wrong_with_a_table_is_told(table: Any, factory: Any, told: list[str]) -> None:
    found = [message for _, message in check_options(Lazy("mine", factory, "", takes=table), factory)]
    assert len(found) == len(told)
    assert all(message.startswith(said) for message, said in zip(found, told, strict=True))
