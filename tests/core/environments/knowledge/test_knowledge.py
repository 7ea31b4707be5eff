"""What users know and no tool tells: asked of sessions wherever they live, and read from files."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.environments.clock import TimedSession
from callwright.environments.functions import FunctionEnvironment
from callwright.environments.knowledge.asking import knowledge_of
from callwright.environments.knowledge.files import read_knowledge
from callwright.environments.protocol import Knows
from callwright.environments.sessions import AwaitedSession
from callwright.errors import ComponentError, DataError, SessionInUse, UsageError


@cw.row("safes", prefix="S")
class Safe:
    """A safe and its code, which no tool shows."""

    id: str
    owner: str
    code: str


@cw.tool
def change_code(world: cw.World, /, safe_id: str, old: str, new: str) -> str:
    """Change the code of a safe."""
    safe = world.need(Safe, safe_id)
    if safe.code != old:
        raise cw.ToolError("BAD_CODE", "that is not its code")
    return world.update(safe, code=new).id


def safes(rng: Random, scale: float) -> Iterator[Safe]:
    for number, owner in enumerate(("Ada", "Bela"), 1):
        yield Safe(f"S{number:05d}", owner, f"{rng.randrange(10_000):04d}")


def known(world: cw.World, entity: str) -> Mapping[str, Any] | None:
    owner = "Ada" if entity == "me" else entity
    mine = world.find(Safe, owner=owner)
    return {"code": mine[0].code, "safes": [safe.id for safe in mine]} if mine else None


def vault(knowledge: Callable[[cw.World, str], Mapping[str, Any] | None] | None = known) -> cw.StatefulEnvironment:
    scenarios = {"two": cw.Scenario(safes)}
    return cw.StatefulEnvironment("vault", rows=[Safe], tools=[change_code], scenarios=scenarios, knowledge=knowledge)


def test_knowledge_follows_what_is_there_now() -> None:
    session = vault().open("two", 7)
    first = session.knowledge()["code"]
    assert session.call("change_code", {"safe_id": "S00001", "old": first, "new": "0007"}).kind == "ok"
    assert session.knowledge() == session.knowledge("Ada") == {"code": "0007", "safes": ["S00001"]}
    assert session.fork().knowledge()["code"] == "0007"
    session.reset()
    assert session.knowledge()["code"] == first
    assert (session.knowledge("Bela")["safes"], session.knowledge("Cem")) == (["S00002"], {})


def test_a_function_that_raises_is_named_with_the_environment_whose_bug_it_is() -> None:
    def broken(world: cw.World, entity: str) -> Mapping[str, Any]:
        return {"code": {}[entity]}

    with pytest.raises(ComponentError) as raised:
        vault(broken).open().knowledge()
    said = str(raised.value)
    assert said.startswith("the knowledge of 'me' of the environment 'vault' raised KeyError")
    assert "broken, line" in said
    assert said.endswith("This is a bug of the environment 'vault'")


def test_where_nobody_says_what_is_known_nothing_is() -> None:
    assert vault(None).open().knowledge() == {}
    plain = FunctionEnvironment("plain", tools=[])
    assert knowledge_of(plain.open()) == {}
    assert not isinstance(plain.open(), Knows)


def test_timed_isolated_and_awaited_sessions_hand_it_on() -> None:
    here = vault().open("two", 7)
    timed = TimedSession(vault(), "two", 7, 30.0)
    assert timed.knowledge("Bela") == knowledge_of(timed, "Bela") == here.knowledge("Bela")
    assert TimedSession(FunctionEnvironment("plain", tools=[]), "", 0, 30.0).knowledge() == {}
    assert knowledge_of(AwaitedSession(Waiting())) == {"pin": "4711"}
    environment = cw.isolated(vault())
    try:
        elsewhere = environment.open("two", 7)
        assert elsewhere.knowledge() == here.knowledge()
        assert knowledge_of(elsewhere, "Cem") == {}
        elsewhere.close()
    finally:
        environment.close()


class Waiting:
    """A session of somebody else, whose methods are to be awaited."""

    async def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        return {"pin": "4711"}


def writes(world: cw.World, entity: str) -> Mapping[str, Any] | None:
    world.put(Safe(world.new_id(Safe), entity, "1"))
    return {"safes": len(world.find(Safe))}


def test_a_function_that_writes_writes_to_a_copy() -> None:
    session = vault(writes).open("two", 7)
    before = session.digest()
    assert session.knowledge() == session.knowledge() == {"safes": 3}
    assert session.digest() == before
    assert session.diff() == {}


@pytest.mark.parametrize("wrong", [["pin"], {"pin": {4711}}, {"pin": math.nan}, {4: "pin"}, {"": "pin"}, "4711"])
def test_knowledge_that_is_not_json_by_name_is_a_bug_of_the_environment(wrong: Any) -> None:
    with pytest.raises(ComponentError, match="'vault' says what 'me' knows"):
        vault(lambda world, entity: wrong).open().knowledge()


def test_entities_have_names() -> None:
    with pytest.raises(UsageError, match="by the name of somebody, not by 4711"):
        vault().open().knowledge(4711)  # type: ignore[arg-type]


def test_sessions_are_for_one_thread_at_a_time() -> None:
    session = vault().open()
    with session._turn, pytest.raises(SessionInUse):
        session.knowledge()


def test_environments_that_know_can_be_sent_elsewhere() -> None:
    assert pickle.loads(pickle.dumps(vault())).open("two", 3).knowledge() == vault().open("two", 3).knowledge()
    with pytest.raises(UsageError, match="knowledge of environment 'vault'"):
        pickle.dumps(vault(lambda world, entity: None))


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_file_says_what_everybody_knows(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text('{"me": {"pin": "4711", "days": ["2026-03-05"]}, "K00012": {}}', encoding="utf-8")
    assert read_knowledge(path) == {"me": {"pin": "4711", "days": ["2026-03-05"]}, "K00012": {}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "it holds no object such as"),
        ('{"me": "4711"}', "what 'me' knows is not an object"),
        ('{"": {"pin": "1"}}', "what '' knows is not"),
        ('{"me": {"": 1}}', "'me' knows something without a name"),
        ('{"me": {"pin": NaN}}', "NaN is not JSON"),
        ('{"me": ', "Expecting value"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message) as told:
        read_knowledge(path)
    assert str(path) in str(told.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        read_knowledge(tmp_path / "nowhere.json")
