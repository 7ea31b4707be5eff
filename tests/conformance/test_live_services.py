"""Live services are kept out of the checks: stand-ins for what declares them, and no connection for anything."""

from __future__ import annotations

import http.client
import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

import callwright as cw
from callwright.cli.plugin_checks import PluginFinding, check_plugin
from callwright.conformance import ExpectsFailures, NeedsNetwork
from callwright.plugins import Lazy, load_plugins
from callwright.testing import CheckSkipped, check_component, checks_for
from callwright.testing.services.network import WouldConnect, no_connections


class Listener:
    """Counts who connects."""

    def __init__(self) -> None:
        self.connections = 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.socket.shutdown(socket.SHUT_RDWR)
    made.socket.close()
    made.thread.join()


class Asks(cw.RewardComponent):
    """A judge as people write one: it asks a server, and masks what fails."""

    name = "asks"

    def __init__(self, port: int) -> None:
        self.port = port

    def score(self, attempt: cw.Attempt) -> cw.Score:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=5) as answer:
                return cw.Score(float(answer.read()))
        except (OSError, http.client.HTTPException) as error:
            return cw.Score(0.0, evidence=(cw.Evidence("down", "no answer"),), masked=str(error))


class Scores(Asks):
    """The same with answers of its own."""

    def score(self, attempt: cw.Attempt) -> cw.Score:
        return cw.Score(1.0)


class Declares(Asks):
    """It says that it needs the network, and what stands in for it."""

    network_checks = ("*",)
    recording: type[Asks] | None = Scores

    def stand_in(self) -> Any:
        return self.recording(self.port) if self.recording is not None else None


class NoRecording(Declares):
    recording = None


def findings(made: Any, **lazy: Any) -> list[PluginFinding]:
    class Plugin:
        @cw.hookimpl
        def callwright_reward_components(self) -> Any:
            yield Lazy(made.name, lambda: made, "a component of a test", **lazy)

    registry = load_plugins(entry_points=False, extra={"somebodys": Plugin()})
    return [one for one in check_plugin(registry, registry.plugin("somebodys")) if one.what.startswith("reward")]


def test_a_component_that_says_nothing_is_found_out_before_it_connects(listener: Listener) -> None:
    (found,) = findings(Asks(listener.port))
    assert found.level == "error"
    assert f"would connect to 127.0.0.1:{listener.port}" in found.message
    assert "NeedsNetwork" in found.message
    assert listener.connections == 0


def test_one_that_names_a_stand_in_is_checked_on_it(listener: Listener) -> None:
    assert [one.level for one in findings(Declares(listener.port))] == ["ok"]
    assert listener.connections == 0


def test_one_without_a_stand_in_is_skipped_with_words(listener: Listener) -> None:
    (found,) = findings(NoRecording(listener.port))
    assert found.level == "skipped"
    assert "check_purity would ask a live service" in found.message
    assert listener.connections == 0


def test_a_registration_may_name_the_stand_in_of_what_needs_options(listener: Listener) -> None:
    made = Scores(0)
    (found,) = findings(Asks(listener.port), stand_in=lambda: made)
    assert (found.level, found.message) == ("ok", "on its stand-in")
    assert listener.connections == 0


def test_the_kit_puts_stand_ins_into_recipes_too(listener: Listener) -> None:
    recipe = cw.RewardRecipe("asks", (cw.Term(Declares(listener.port)),))
    assert check_component("reward recipe", recipe) == ()
    without = cw.RewardRecipe("asks", (cw.Term(NoRecording(listener.port)),))
    assert len(check_component("reward recipe", without)) == len(checks_for("reward recipe"))
    assert listener.connections == 0
    assert recipe.terms[0].component.port == listener.port, "the recipe itself is left as it is"


def test_only_the_checks_that_are_named_are_placed(listener: Listener) -> None:
    class Some(Declares):
        network_checks = ("check_purity",)

    with no_connections() as tried, pytest.raises(WouldConnect):
        next(check for check in checks_for("reward component") if check.name == "check_range")(Some(listener.port))
    assert tried == [f"127.0.0.1:{listener.port}"]
    next(check for check in checks_for("reward component") if check.name == "check_purity")(Some(listener.port))
    assert isinstance(Some(0), NeedsNetwork)
    assert not isinstance(Asks(0), NeedsNetwork)


def test_connections_are_refused_in_every_thread_and_allowed_again(listener: Listener) -> None:
    raised: list[type[BaseException]] = []

    def connect() -> None:
        try:
            socket.create_connection(("127.0.0.1", listener.port), timeout=5).close()
        except BaseException as error:
            raised.append(type(error))

    with no_connections() as tried:
        thread = threading.Thread(target=connect)
        thread.start()
        thread.join()
        connect()
        left, right = socket.socketpair()  # between threads and processes of this machine
        left.close()
        right.close()
    assert raised == [WouldConnect, WouldConnect]
    assert len(tried) == 2
    connect()
    assert len(raised) == 2


class Draws(cw.RewardComponent):
    """Known not to be pure, and says so."""

    name = "draws"
    expected_failures: ClassVar[dict[str, str]] = {"check_purity": "it counts what it was asked"}

    def __init__(self) -> None:
        self.count = 0

    def score(self, attempt: cw.Attempt) -> cw.Score:
        self.count += 1
        return cw.Score((self.count % 7) / 7, evidence=(cw.Evidence("drawn", "by count"),))


def test_a_declared_failure_is_run_and_told_and_one_that_passes_is_a_failure() -> None:
    assert isinstance(Draws(), ExpectsFailures)
    (check,) = (one for one in checks_for("reward component") if one.name == "check_purity")
    with pytest.raises(CheckSkipped, match="it counts what it was asked"):
        check(Draws())

    class Pure(Draws):
        def score(self, attempt: cw.Attempt) -> cw.Score:
            return cw.Score(1.0)

    with pytest.raises(AssertionError, match="passes, though the component declares"):
        check(Pure())


def test_the_judge_of_callwright_is_checked_without_a_server() -> None:
    registry = cw.default_registry()
    found = list(check_plugin(registry, registry.plugin("judge")))
    assert {one.level for one in found} == {"ok"}
    assert sum(one.message == "on its stand-in" for one in found) == 3
