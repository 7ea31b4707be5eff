"""The same scripts come to the same outcomes and digests over every front."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.environments.sessions import call_session
from callwright.testing.arguments import fitting_arguments, wrong_arguments
from callwright.walk import execute
from callwright.walk.execution import copy_json
from callwright_plugins.mcp_servers.serving.service import Service, make_server
from callwright_plugins.mcp_servers.wire import DIGEST, SCENARIO, SEED, SESSION, answer_of

#: Every kind of outcome but the infrastructure's, which ends a session.
SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("list", {}),
    ("put", {"name": "cup"}),
    ("put", {"name": "cup", "count": 3}),
    ("put", {"name": "cup", "count": 0}),
    ("put", {"count": 1}),
    ("put", {"name": "cup", "colour": "red"}),
    ("put", {"name": 5}),
    ("put_all", {"names": ["a", "", "b"]}),
    ("put_all", {"names": []}),
    ("list", {}),
    ("take", {"name": "a"}),
    ("take", {"name": "ghost"}),
    ("take", {}),
    ("odd", {}),
    ("noisy", {}),
    ("raise_error", {}),
    ("secret", {}),
    ("_wipe", {}),
    ("no_such_tool", {}),
    ("", {}),
    ("list", {}),
    ("take", {"name": "vase"}),
    ("take", {"name": "cup"}),
    ("take", {"name": "b"}),
    ("list", {}),
]

Ask = Callable[[str, dict[str, Any]], tuple[cw.Outcome, str]]


def in_process(session: Any) -> Ask:
    def ask(tool: str, arguments: dict[str, Any]) -> tuple[cw.Outcome, str]:
        outcome = call_session(session, cw.Call(0, tool, arguments), arguments)
        return outcome, session.digest()

    return ask


def played(ask: Ask, script: list[tuple[str, dict[str, Any]]] = SCRIPT) -> list[tuple[cw.Outcome, str]]:
    return [ask(tool, dict(arguments)) for tool, arguments in script]


@pytest.fixture
def expected(shelf_world: ModuleType) -> list[tuple[cw.Outcome, str]]:
    return played(in_process(shelf_world.ShelfWorld().open("full", 2)))


def test_the_script_has_every_kind(expected: list[tuple[cw.Outcome, str]]) -> None:
    kinds = {outcome.kind for outcome, _ in expected}
    assert kinds == {"ok", "empty", "partial", "unknown_tool", "schema_error", "execution_error"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("pure", [True, False])
def test_in_memory(shelf_world: ModuleType, expected: Any, mode: str, pure: bool) -> None:
    from mcp import Client

    async def play() -> list[Any]:
        service = Service(shelf_world.ShelfWorld(pure))
        found = []
        async with Client(make_server(service), mode=mode) as client:
            for tool, arguments in SCRIPT:
                meta: Any = {SESSION: "one", SCENARIO: "full", SEED: 2, DIGEST: True}
                result = await client.call_tool(tool, arguments, meta=meta)
                found.append(answer_of(result.model_dump(by_alias=True)))
        return found

    answers = asyncio.run(play())
    assert [(answer.outcome, answer.digest) for answer in answers] == expected


def test_stdio(wrap: Callable[..., Any], expected: Any) -> None:
    environment = wrap("shelf_world.py")
    session = environment.open("full", 2)
    assert environment.isolation == "meta"
    assert session.digest_source == "server"
    assert played(in_process(session)) == expected


@pytest.mark.parametrize("legacy", [False, True])
def test_http(shelf_world: ModuleType, serve_http: Callable[..., str], expected: Any, legacy: bool) -> None:
    from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment

    environment = MCPEnvironment(url=serve_http(Service(shelf_world.ShelfWorld())), legacy=legacy)
    try:
        assert played(in_process(environment.open("full", 2))) == expected
    finally:
        environment.stop()


def test_tools_are_the_same_over_the_wire(wrap: Callable[..., Any], shelf_world: ModuleType) -> None:
    offered = {name: spec for name, spec in shelf_world.SPECS.items() if not spec.hidden}
    assert dict(wrap("shelf_world.py").tools) == offered


def test_programs_execute_alike(wrap: Callable[..., Any], shelf_world: ModuleType) -> None:
    world, wrapped = shelf_world.ShelfWorld(), wrap("shelf_world.py")
    program = cw.Program(
        (
            cw.Call(0, "put", {"name": "cup", "count": 2}),
            cw.Call(1, "put", {"name": "cup", "count": cw.Reference(0)}),
            cw.Call(2, "take", {"name": cw.Reference(1, ("name",))}),
            cw.Call(3, "secret", {}),
        ),
        "all",
    )
    assert execute(program, wrapped, world.tools, scenario="full") == execute(
        program, world, world.tools, scenario="full"
    )


@pytest.fixture(scope="module")
def some_environments() -> list[str]:
    """Stateful environments with tools of many shapes, where they are installed."""
    known = cw.default_registry().names("environment")
    found = [name for name in ("banking", "filesystem", "calendar", "shopping") if name in known]
    if not found:
        pytest.skip("the stateful environments are not installed")
    return found


def explored(environment: cw.Environment, count: int) -> list[tuple[str, dict[str, Any]]]:
    """Calls that fit the schemas and some that do not, with words that the environment said itself."""
    rng, heard = Random(5), ["Oslo"]
    session = environment.open("", 3)
    script: list[tuple[str, dict[str, Any]]] = []
    names = sorted(environment.tools)
    while len(script) < count:
        spec = environment.tools[rng.choice(names)]
        arguments = fitting_arguments(spec, rng, heard[-40:])
        if arguments is None or rng.random() < 0.1:
            arguments = next(wrong_arguments(spec, rng), {})
        script.append((spec.name, arguments))
        value = session.call(spec.name, copy_json(arguments)).value
        heard += [text for text in re.findall(r'"([^"]{1,40})"', json.dumps(value)) if text not in heard][:10]
    return script


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_stateful_environments_in_memory(some_environments: list[str], mode: str) -> None:
    from mcp import Client

    async def play(environment: cw.Environment, script: list[tuple[str, dict[str, Any]]]) -> list[Any]:
        async with Client(make_server(Service(environment)), mode=mode) as client:
            meta: Any = {DIGEST: True, SEED: 3}
            results = [await client.call_tool(name, given, meta=meta) for name, given in script]
            return [answer_of(result.model_dump(by_alias=True)) for result in results]

    kinds: set[str] = set()
    changed = False
    for name in some_environments:
        environment = cw.environment(name)
        script = explored(environment, 60)
        wanted = played(in_process(environment.open("", 3)), script)
        answers = asyncio.run(play(environment, script))
        assert [(answer.outcome, answer.digest) for answer in answers] == wanted
        kinds |= {outcome.kind for outcome, _ in wanted}
        changed = changed or len({digest for _, digest in wanted}) > 1
    assert changed
    assert kinds >= {"ok", "empty", "schema_error", "execution_error"}


def test_a_stateful_environment_over_stdio(
    some_environments: list[str], callwright_words: list[str], servers: Path
) -> None:
    from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment

    name = some_environments[0]
    environment = cw.environment(name)
    wrapped = MCPEnvironment([*callwright_words, "env", "serve", name, "--stdio", "--helpers"], cwd=str(servers))
    try:
        assert dict(wrapped.tools) == dict(environment.tools)
        script = explored(environment, 60)
        session, here = wrapped.open("", 3), environment.open("", 3)
        assert session.digest() == here.digest()
        assert played(in_process(session), script) == played(in_process(here), script)
        assert session.helper("_digest") == here.helper("_digest")
        fork = session.fork()
        session.reset()
        assert session.digest() == environment.open("", 3).digest()
        assert fork.digest() == here.digest()
    finally:
        wrapped.stop()


CALLS = st.one_of(
    st.tuples(st.just("put"), st.fixed_dictionaries({"name": st.text(max_size=5), "count": st.integers(-1, 3)})),
    st.tuples(st.just("take"), st.fixed_dictionaries({"name": st.text(max_size=2)})),
    st.tuples(st.just("put_all"), st.fixed_dictionaries({"names": st.lists(st.text(max_size=3), max_size=3)})),
    st.tuples(st.sampled_from(["list", "odd", "put", "nothing"]), st.just({})),
)


@given(st.lists(CALLS, max_size=8))
def test_any_script_in_memory(shelf_world: ModuleType, script: list[tuple[str, dict[str, Any]]]) -> None:
    from mcp import Client

    async def play() -> list[Any]:
        async with Client(make_server(Service(shelf_world.ShelfWorld()))) as client:
            results = [await client.call_tool(name, given, meta={DIGEST: True}) for name, given in script]  # type: ignore[typeddict-unknown-key]
            return [answer_of(result.model_dump(by_alias=True)) for result in results]

    answers = asyncio.run(play())
    wanted = played(in_process(shelf_world.ShelfWorld().open()), script)
    assert [(answer.outcome, answer.digest) for answer in answers] == wanted


# Many sessions --------------------------------------------------------------------------------------------------------


def scripts(count: int, calls: int) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Calls of many sessions in random order; each session has its own things."""
    rng = Random(7)
    left = dict.fromkeys(range(count), calls)
    while left:
        number = rng.choice(list(left))
        left[number] -= 1
        if not left[number]:
            del left[number]
        name = f"thing {number} {rng.randint(0, 3)}"
        yield number, rng.choice(["put", "put", "take"]), {"name": name}


def test_64_sessions_do_not_mix_over_stdio(wrap: Callable[..., Any], shelf_world: ModuleType) -> None:
    environment = wrap("shelf_world.py")
    apart = shelf_world.ShelfWorld()
    sessions = [environment.open("full", number % 4) for number in range(64)]
    wanted = [apart.open("full", number % 4) for number in range(64)]
    for number, tool, arguments in scripts(64, 6):
        assert sessions[number].call(tool, arguments) == wanted[number].call(tool, arguments)
    assert [session.digest() for session in sessions] == [session.digest() for session in wanted]


@pytest.mark.parametrize("pure", [True, False])
def test_64_concurrent_sessions_do_not_mix_over_http(
    shelf_world: ModuleType, serve_http: Callable[..., str], pure: bool
) -> None:
    from callwright_plugins.mcp_servers.manager import MCPManager

    url = serve_http(Service(shelf_world.ShelfWorld(pure)))
    calls = list(scripts(64, 4))
    apart = [shelf_world.ShelfWorld().open() for _ in range(64)]
    wanted = [[] for _ in range(64)]  # type: list[list[cw.Outcome]]
    for number, tool, arguments in calls:
        wanted[number].append(apart[number].call(tool, arguments))

    async def rollout(manager: MCPManager, number: int) -> tuple[list[cw.Outcome], str]:
        id = await manager.aopen("shelf")
        found = [await manager.acall(id, tool, given) for owner, tool, given in calls if owner == number]
        digest = await manager.adigest(id)
        await manager.aclose(id)
        return found, digest

    async def main() -> list[tuple[list[cw.Outcome], str]]:
        manager = MCPManager({"shelf": {"url": url}})
        try:
            return await asyncio.gather(*(rollout(manager, number) for number in range(64)))
        finally:
            await manager.astop()

    found = asyncio.run(main())
    assert [outcomes for outcomes, _ in found] == wanted
    assert [digest for _, digest in found] == [session.digest() for session in apart]
