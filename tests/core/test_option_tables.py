"""Options that a component declares as a table: read before it is made, listed with types and meanings."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
from pydantic import Field

from callwright.errors import PluginError, SeveralMistakes, UnknownName, UsageError
from callwright.hookspecs import hookimpl
from callwright.options import Option, OptionTable, options_of, type_in_words
from callwright.plugins import Lazy, Registry


class Where(OptionTable):
    """A place."""

    host: str = Field(default="localhost", description="Its host.")


class Options(OptionTable):
    """What the component takes."""

    size: int = Field(ge=1, description="How large it is.")
    share: float = Field(default=0.5, gt=0, le=1)
    way: Literal["fast", "slow"] = "fast"
    names: tuple[str, ...] = ()
    where: Where = Field(default_factory=Where)


class Given(dict[str, Any]):
    """A component that is the options it was given."""


def with_table(**more: Any) -> Registry:
    """A registry with a component of the table above; it answers with the options that it was given."""

    class Plugin:
        @hookimpl
        def callwright_samplers(self) -> Iterator[Lazy]:
            yield Lazy("mine", more.pop("target", Given), takes=more.pop("takes", Options), **more)

    registry = Registry()
    registry.add(Plugin(), name="plugin")
    return registry


def test_a_component_gets_what_the_table_read_and_nothing_that_was_not_given() -> None:
    made = with_table().create("sampler", "mine", size="3", names=["a"], where={"host": "b"})
    assert made == {"size": 3, "names": ("a",), "where": Where(host="b")}


def test_options_of_the_registration_are_read_with_the_others() -> None:
    assert with_table(options={"share": 1}).create("sampler", "mine", size=2) == {"share": 1.0, "size": 2}


def test_mistakes_are_told_together_with_the_way_to_each() -> None:
    with pytest.raises(SeveralMistakes) as told:
        with_table().create("sampler", "mine", size=0, hsare=1, where={"hots": "b"})
    text = str(told.value)
    assert "the sampler 'mine': 'size': Input should be greater than or equal to 1, not 0" in text
    assert "There is no option of the sampler 'mine' named 'hsare'. Did you mean 'share'?" in text
    assert "There is no option of the sampler 'mine' in 'where' named 'hots'. Did you mean 'host'?" in text


def test_a_value_of_none_of_several_types_is_one_mistake() -> None:
    class Several(OptionTable):
        """One of several types."""

        file: str | Path | None = None
        words: str | tuple[str, ...] = ""

    with pytest.raises(SeveralMistakes) as told:
        with_table(takes=Several).create("sampler", "mine", file=3, words=[1, 2])
    assert str(told.value).splitlines() == [
        "the sampler 'mine': 'file' must be str | Path | None, not 3",
        "the sampler 'mine': 'words' must be str | tuple[str, …], not [1, 2]",
    ]


def test_true_is_no_number() -> None:
    with pytest.raises(UsageError, match="the sampler 'mine': 'share' must be a number, not true"):
        with_table().create("sampler", "mine", size=1, share=True)


@pytest.mark.parametrize("value", ["yes", 1, 0.0])
def test_a_switch_is_true_or_false(value: Any) -> None:
    class Switch(OptionTable):
        """A switch."""

        trust: bool = False

    with pytest.raises(UsageError, match=f"'trust' must be true or false, not {value!r}"):
        with_table(takes=Switch).create("sampler", "mine", trust=value)


def test_an_option_that_must_be_given_is_named() -> None:
    with pytest.raises(UsageError, match="the sampler 'mine' needs the option 'size'"):
        with_table().create("sampler", "mine")


def test_the_module_of_a_component_is_imported_after_its_options_were_read(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "heavy_thing.py").write_text("class make(dict): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = with_table(target="heavy_thing:make")
    with pytest.raises(UnknownName):
        registry.create("sampler", "mine", size=1, speed=2)
    assert options_of(registry.spec("sampler", "mine"))[0].name == "size"
    assert "heavy_thing" not in sys.modules
    assert registry.create("sampler", "mine", size=1) == {"size": 1}
    assert sys.modules.pop("heavy_thing")


def test_what_is_no_table_is_the_plugins_mistake() -> None:
    with pytest.raises(PluginError, match=r"'mine' takes .*, which is no callwright\.options\.OptionTable"):
        with_table(takes="collections:OrderedDict").create("sampler", "mine")


def test_options_are_listed_with_type_limits_default_and_meaning() -> None:
    size, share, way, names, where = options_of(Lazy("mine", dict, takes=Options))
    assert size == Option("size", "int, at least 1", None, "How large it is.")
    assert (share.type, share.default) == ("float, greater than 0, at most 1", "0.5")
    assert (way.type, way.default) == ("'fast' | 'slow'", "'fast'")
    assert (names.type, names.default) == ("tuple[str, …]", "()")
    assert (where.type, where.default) == ("a table", "{}")
    assert where.inner == (Option("host", "str", "'localhost'", "Its host."),)


def test_without_a_table_the_parameters_of_the_factory_are_the_options() -> None:
    def make(registry: Registry, size: int, share: float | None = None, *, way="fast", **more: Any) -> None:
        """A factory."""

    listed = options_of(Lazy("mine", make))
    assert [attrs.astuple(option)[:3] for option in listed] == [
        ("size", "int", None),
        ("share", "float | None", "None"),
        ("way", "", "'fast'"),
    ]


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (dict[str, Any], "dict[str, anything]"),
        (list[int] | None, "list[int] | None"),
        ("Sequence[str]", "Sequence[str]"),
        (int | float, "int | float"),
    ],
)
def test_types_in_words(annotation: Any, words: str) -> None:
    assert type_in_words(annotation) == words
