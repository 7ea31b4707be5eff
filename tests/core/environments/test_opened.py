"""Sessions for a ``with`` statement: whatever their class, and whatever ends the statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import callwright as cw
from callwright.environments import opened
from callwright.environments.sessions import AwaitedSession


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("banking",), r"^opened\(\) takes an environment, not its name: callwright.environment\('banking'\)$"),
        ((3,), "^opened\\(\\) takes an environment, such as"),
        ((cw.environment("banking"), 3), "^the name of a scenario is a text, not 3$"),
        ((cw.environment("banking"), "", "one"), "^the seed of a session is a whole number, not 'one'$"),
    ],
)
def test_what_cannot_be_opened_is_told(given: Any, said: str) -> None:
    with pytest.raises(cw.UsageError, match=said), opened(*given):
        pass


class Door:
    """A session of somebody who has read nothing but the protocol."""

    def __init__(self) -> None:
        self.closed = 0

    def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
        return cw.Outcome("ok", tool)

    def digest(self) -> str:
        return "0"

    def close(self) -> None:
        self.closed += 1


class AsyncDoor(Door):
    async def close(self) -> None:  # type: ignore[override]
        self.closed += 1


class House:
    name = "house"
    pure = True

    def __init__(self, door: Door) -> None:
        self.tools: Mapping[str, cw.ToolSpec] = {}
        self.door = door
        self.asked: tuple[str, int] | None = None

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        self.asked = (scenario, seed)
        return self.door


def test_it_is_closed_at_the_end() -> None:
    house = House(Door())
    with opened(house, "cellar", seed=3) as session:
        assert session.call("knock", {}).value == "knock"
        assert house.door.closed == 0
    assert house.door.closed == 1
    assert house.asked == ("cellar", 3)


def test_it_is_closed_where_something_is_raised() -> None:
    house = House(Door())
    with pytest.raises(ZeroDivisionError), opened(house):
        raise ZeroDivisionError
    assert house.door.closed == 1


def test_one_that_is_async_is_waited_for() -> None:
    house = House(AsyncDoor())
    with opened(house) as session:
        assert isinstance(session, AwaitedSession)
    assert house.door.closed == 1
