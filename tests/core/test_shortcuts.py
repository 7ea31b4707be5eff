"""The short functions: what a script types."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import callwright as cw
from callwright.errors import UnknownName

KINDS = {
    "corpus": "callwright_corpora",
    "environment": "callwright_environments",
    "parser": "callwright_parsers",
    "reward": "callwright_reward_recipes",
    "sampler": "callwright_samplers",
}


@pytest.mark.parametrize("function", KINDS)
def test_each_kind_has_a_short_function(function: str) -> None:
    class Made:
        def __init__(self, size: int = 1) -> None:
            self.said = f"{function} of {size}"

    registry = cw.Registry()
    registry.add(SimpleNamespace(**{KINDS[function]: cw.hookimpl(lambda: [cw.Lazy("x", Made)])}), name="p")
    short: Any = getattr(cw, function)
    assert short("x", registry=registry).said == f"{function} of 1"
    assert short("x", registry=registry, size=4).said == f"{function} of 4"
    with pytest.raises(UnknownName, match="Did you mean 'size'"):
        short("x", registry=registry, sice=4)
    with pytest.raises(UnknownName, match="named 'y'"):
        short("y", registry=registry)


def test_without_a_registry_the_installed_plugins_are_used() -> None:
    assert cw.parser("json").name == "json"
    assert cw.reward("tier").name == "tier"
    assert cw.parser("json") is cw.default_registry().create("parser", "json")


def test_an_environment_is_made_of_functions() -> None:
    @cw.tool(read_only=True)
    def get_weather(city: str) -> str:
        """Weather in a city."""
        return f"sunny in {city}"

    environment = cw.environment("weather", tools=[get_weather], state=lambda scenario, seed: scenario)
    assert environment.name == "weather"
    assert environment.open("s").call("get_weather", {"city": "Oslo"}).value == "sunny in Oslo"


def test_a_string_is_scored_in_a_few_lines() -> None:
    """The face of the package, with tools of one's own."""

    @cw.tool(read_only=True)
    def get_weather(city: str) -> str:
        """Weather in a city."""
        return f"sunny in {city}"

    env = cw.environment("weather", tools=[get_weather])
    task = cw.Task("1", "How is Oslo?", env.tools, cw.Answer(("sunny in Oslo",)), env)
    text = '<think>easy</think><tool_call return="one">{"0": {"get_weather": {"city": "Oslo"}}}</tool_call>'
    reward = cw.reward("tier").score(task, text, ir="json")
    assert (reward.total, reward.explain()) == (1.0, "1: every point")
    worse = cw.reward("tier").score(task, text.replace('"Oslo"', "5"), ir="json")
    assert worse.total == pytest.approx(0.375)
    assert "call 0 get_weather.city: expected string, found integer 5" in worse.explain()
