"""Against the published package openenv: its example environment, its MCP environments, its clients and its validator.

openenv wants ``mcp`` below 2 and half a gigabyte with gradio and fastmcp, so it lives in an environment of its own:
CALLWRIGHT_OPENENV_PYTHON names its interpreter, and the first test runs this file there.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import InfrastructureFailure, UsageError

HERE = Path(__file__)
ROOT = HERE.parents[3]
INSTALLED = importlib.util.find_spec("openenv") is not None
needs_openenv = pytest.mark.skipif(not INSTALLED, reason="needs openenv, or CALLWRIGHT_OPENENV_PYTHON")


@pytest.mark.skipif(INSTALLED, reason="openenv is here: these tests run here")
def test_the_tests_against_openenv_pass_in_its_own_environment() -> None:
    python = os.environ.get("CALLWRIGHT_OPENENV_PYTHON")
    if not python:
        pytest.skip("set CALLWRIGHT_OPENENV_PYTHON to the interpreter of an environment with openenv and callwright")
    path = os.pathsep.join([str(ROOT / "core"), str(ROOT / "plugins")])
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not own_environment", str(HERE)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout


def test_without_openenv_an_environment_by_class_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("openenv", "openenv.core", "openenv.core.env_server"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"pip install openenv .* environment of its own"):
        cw.environment("openenv", environment="shop:Shop")


SHOP = '''
from typing import Any, Optional
from fastmcp import FastMCP
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.types import Observation, State


class Shop(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        mcp = FastMCP("shop")
        self.shelf: dict[str, int] = {}

        @mcp.tool
        def put(name: str, number: int = 1) -> dict[str, Any]:
            """Put something on the shelf."""
            self.shelf[name] = self.shelf.get(name, 0) + number
            return {"name": name, "number": self.shelf[name]}

        @mcp.tool
        def take(name: str) -> int:
            """Take one; how many are left."""
            if not self.shelf.get(name):
                raise ValueError(f"no {name} found: an invalid argument")
            self.shelf[name] -= 1
            return self.shelf[name]

        @mcp.tool
        def names() -> list[str]:
            return sorted(self.shelf)

        super().__init__(mcp)
        self._state = State(episode_id="random", step_count=0)

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **more: Any) -> Observation:
        self.shelf.clear()
        self.shelf["bread"] = seed or 0
        return Observation(done=False, reward=0.0, metadata={"status": "ready"})

    def _step_impl(self, action: Any, timeout_s: Optional[float] = None, **more: Any) -> Observation:
        return Observation(metadata={"error": "unknown action"})

    @property
    def state(self) -> State:
        return self._state
'''


@pytest.fixture(autouse=True)
def _their_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on the path with the package's own example environment, from its template, and a shop of MCP tools."""
    from openenv import cli

    folder = tmp_path_factory.mktemp("openenv")
    template = Path(str(cli.__file__)).parent / "templates" / "openenv_env"
    words = {"__ENV_NAME__": "echo_example", "__ENV_CLASS_NAME__": "EchoExample", "__ENV_TITLE_NAME__": "Echo Example"}
    for source, target in (
        (template / "models.py", "models.py"),
        (template / "server" / "__ENV_NAME___environment.py", "echo_example_environment.py"),
    ):
        text = source.read_text("utf-8")
        for old, new in words.items():
            text = text.replace(old, new)
        (folder / target).write_text(text, "utf-8")
    (folder / "shop.py").write_text(SHOP, "utf-8")
    sys.path.insert(0, str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield folder
    sys.path.remove(str(folder))


@pytest.fixture
def theirs(written: Path) -> Iterator[Callable[..., str]]:
    """``theirs(kind, action, observation, most)``: the URL of an environment behind openenv's own server."""
    import asyncio
    import socket
    from types import SimpleNamespace

    import uvicorn
    from openenv.core.env_server.http_server import create_app

    running: list[Any] = []

    def start(kind: Any, action: Any, observation: Any, most: int) -> str:
        import threading

        app = create_app(kind, action, observation, env_name="theirs", max_concurrent_envs=most)
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="websockets-sansio"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
        thread.start()
        running.append(SimpleNamespace(server=server, thread=thread))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for one in running:
        one.server.should_exit = True
        one.thread.join(60)


@pytest.fixture(params=["url", "class"])
def shop(request: pytest.FixtureRequest, theirs: Callable[..., str]) -> Any:
    """The shop, behind openenv's server or in this process."""
    if request.param == "class":
        return cw.environment("openenv", environment="shop:Shop")
    from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
    from shop import Shop

    return cw.environment("openenv", url=theirs(Shop, CallToolAction, CallToolObservation, 8))


@needs_openenv
def test_an_environment_of_mcp_tools(shop: Any) -> None:
    assert list(shop.tools) == ["put", "take", "names"]
    assert shop.tools["put"].parameters["required"] == ["name"]
    one, other = shop.open("", 3), shop.open("", 3)
    assert one.digest() == other.digest()
    kinds = [
        one.call("put", {"name": "milk"}),
        one.call("put", {"name": "milk", "number": "x"}),
        one.call("take", {"name": "cheese"}),
        one.call("take", {"name": "bread"}),
        one.call("names", {}),
        one.call("nobody", {}),
    ]
    assert [(found.kind, found.value) for found in kinds] == [
        ("ok", {"name": "milk", "number": 1}),
        ("schema_error", None),
        ("execution_error", None),
        ("ok", 2),
        ("ok", ["bread", "milk"]),
        ("unknown_tool", None),
    ]
    assert "no cheese found" in kinds[2].message
    assert other.call("names", {}).value == ["bread"]
    assert one.digest() != other.digest()
    one.close()
    other.close()


@pytest.fixture(params=["url", "class"])
def echo(request: pytest.FixtureRequest, theirs: Callable[..., str]) -> Any:
    """The package's own example."""
    if request.param == "class":
        return cw.environment("openenv", environment="echo_example_environment:EchoExampleEnvironment", tool="echo")
    from echo_example_environment import EchoExampleEnvironment
    from models import EchoExampleAction, EchoExampleObservation

    url = theirs(EchoExampleEnvironment, EchoExampleAction, EchoExampleObservation, 1)
    return cw.environment("openenv", url=url, tool="echo")


@needs_openenv
def test_the_packages_own_example_environment(echo: Any) -> None:
    assert list(echo.tools) == ["echo"]
    assert "Environment environment" not in echo.tools["echo"].description
    session = echo.open("", 1)
    assert "Echo Example environment ready!" in session.greeting
    found = session.call("echo", {"message": "hello"})
    assert (found.kind, found.value) == ("ok", {"echoed_message": "hello", "message_length": 5})
    assert session.rewards == [0.5]
    assert session.call("echo", {"words": "hello"}).kind == "schema_error"
    session.close()


@needs_openenv
def test_its_reward_is_ours(echo: Any) -> None:
    form = cw.parser("json")
    task = cw.Task("t", "Say hello.", echo.tools, cw.Answer(), echo)
    text = form.render(cw.Program((cw.Call(0, "echo", {"message": "hello"}),)))
    assert cw.reward("openenv").score(task, text, ir=form).total == 0.5


@needs_openenv
def test_a_server_of_one_session_is_waited_for(theirs: Callable[..., str]) -> None:
    from echo_example_environment import EchoExampleEnvironment
    from models import EchoExampleAction, EchoExampleObservation

    url = theirs(EchoExampleEnvironment, EchoExampleAction, EchoExampleObservation, 1)
    # The session of the listing is closed just before: its place is waited for.
    session = cw.environment("openenv", url=url).open()
    impatient = cw.environment("openenv", url=url, wait_limit=0)
    with pytest.raises(InfrastructureFailure, match=r"1/1 sessions active.*max_concurrent_envs"):
        impatient.open()
    session.close()
    cw.environment("openenv", url=url).open().close()


@needs_openenv
def test_what_openenvs_validator_asks_of_a_server_holds(serve: Callable[..., Any]) -> None:
    from openenv.cli._validation import validate_running_environment

    report = validate_running_environment(serve(cw.environment("banking")).url)
    assert report["passed"], report
    assert report["mode"] == "simulation"


@needs_openenv
@pytest.mark.parametrize("name", ["banking", "email", "filesystem", "village-bakery", "travel_booking"])
def test_openenvs_generic_client_drives_ours(name: str, serve: Callable[..., Any]) -> None:
    from openenv.core import GenericEnvClient

    ours = cw.environment(name)
    here = ours.open("", 3)
    with GenericEnvClient(base_url=serve(ours).url).sync() as client:
        first = client.reset(seed=3)
        assert first.done is False
        listed = client.step({"type": "list_tools"}).observation["tools"]
        assert [tool["name"] for tool in listed] == [one for one, spec in ours.tools.items() if not spec.hidden]
        assert client.state()["digest"] == here.digest()
        for tool in listed:
            found = client.step({"type": "call_tool", "tool_name": tool["name"], "arguments": {}})
            outcome = here.call(tool["name"], {})
            assert found.observation["result"] == outcome.value
            assert (found.observation["error"] is None) == outcome.executed
        assert client.state()["digest"] == here.digest()
        with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
            client.step({"message": "hello"})
        with pytest.raises(RuntimeError, match="scenario"):
            client.reset(scenario="nowhere")


@needs_openenv
def test_openenvs_tool_client_drives_ours(serve: Callable[..., Any]) -> None:
    from openenv.core import MCPToolClient

    service = serve(cw.environment("banking"))
    with MCPToolClient(base_url=service.url).sync() as client:
        client.reset(seed=3)
        assert len(client.list_tools()) == 17
        assert (
            client.call_tool("find_customer", limit=1)
            == cw.environment("banking").open("", 3).call("find_customer", {"limit": 1}).value
        )
    assert len(service) == 0


@needs_openenv
def test_their_models_read_what_we_write(serve: Callable[..., Any], ask: Callable[..., tuple[int, Any]]) -> None:
    from openenv.core.env_server import mcp_types, types

    url = serve(cw.environment("banking")).url
    types.SchemaResponse.model_validate(ask(f"{url}/schema")[1])
    types.EnvironmentMetadata.model_validate(ask(f"{url}/metadata")[1])
    types.HealthResponse.model_validate(ask(f"{url}/health")[1])
    types.ResetResponse.model_validate(ask(f"{url}/reset", {})[1])
    types.State.model_validate(ask(f"{url}/state")[1])
    call = {"action": {"type": "call_tool", "tool_name": "find_customer", "arguments": {"limit": "x"}}}
    step = types.StepResponse.model_validate(ask(f"{url}/step", call)[1])
    failed = mcp_types.CallToolObservation.model_validate(step.observation)
    assert failed.error is not None
    assert failed.error.error_type == mcp_types.ToolErrorType.INVALID_ARGS
    listing = ask(f"{url}/step", {"action": {"type": "list_tools"}})[1]
    assert len(mcp_types.ListToolsObservation.model_validate(listing["observation"]).tools) == 17
