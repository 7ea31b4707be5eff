"""A depot whose dependencies are known, because it is small: what a graph of it must hold, and what it must not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Annotated, Any

from pydantic import Field

import callwright as cw
from callwright.environments.protocol import Outcome
from callwright.tools.spec import Refused

#: What needs what, in the rules below.
STEPS = {("open_gate", "drive_out"), ("open_gate", "close_gate"), ("close_gate", "open_gate")}
TOLD = {("list_parcels", "fetch_parcel"), ("sign_in", "fetch_parcel")}


@cw.row("parcels", prefix="P")
class Parcel:
    id: str
    shelf: str
    fetched: bool


@cw.row("gates", prefix="G")
class Gate:
    id: str
    open: bool
    pin: str
    token: str


@cw.tool(read_only=True, discovery=True)
def list_parcels(world: cw.World, /) -> dict[str, list[dict[str, str]]]:
    """The parcels that wait in the depot."""
    return {"items": [{"parcel_id": one.id, "shelf": one.shelf} for one in world.rows(Parcel) if not one.fetched]}


@cw.tool
def sign_in(world: cw.World, /, pin: Annotated[str, Field(pattern="^[0-9]{4}$")]) -> dict[str, str]:
    """Sign in with a PIN; fetch_parcel takes the token."""
    gate = world.need(Gate, "G1")
    if pin != gate.pin:
        raise Refused("BAD_PIN", "that is not the PIN")
    return {"token": world.update(gate, token=f"tok-{world.random().randrange(10**8)}").token}


@cw.tool
def fetch_parcel(world: cw.World, /, token: str, parcel_id: str) -> dict[str, str]:
    """Take a parcel out of the depot."""
    if not token or token != world.need(Gate, "G1").token:
        raise cw.ToolError("AUTH_REQUIRED", "sign_in gives a token first")
    parcel = world.get(Parcel, parcel_id)
    if parcel is None or parcel.fetched:
        raise cw.ToolError("NOT_FOUND", f"there is no parcel {parcel_id!r}")
    world.update(parcel, fetched=True)
    return {"shelf": parcel.shelf}


@cw.tool
def open_gate(world: cw.World, /) -> str:
    """Open the gate."""
    gate = world.need(Gate, "G1")
    if gate.open:
        raise cw.ToolError("ALREADY_OPEN", "the gate is open")
    world.update(gate, open=True)
    return "open"


@cw.tool(destructive=True)
def close_gate(world: cw.World, /) -> str:
    """Close the gate."""
    gate = world.need(Gate, "G1")
    if not gate.open:
        raise cw.ToolError("ALREADY_CLOSED", "the gate is closed")
    world.update(gate, open=False)
    return "closed"


@cw.tool
def drive_out(world: cw.World, /) -> str:
    """Leave the yard."""
    if not world.need(Gate, "G1").open:
        raise cw.ToolError("GATE_CLOSED", "the gate is closed")
    return "out"


def _rows(rng: Random, scale: float) -> Iterator[Any]:
    yield Gate("G1", False, f"{rng.randrange(10**4):04}", "")
    for number in range(6):
        yield Parcel(f"P{rng.randrange(10**6):06}{number}", rng.choice("ABC"), False)


def _knowledge(world: cw.World, entity: str) -> Mapping[str, Any] | None:
    return {"pin": world.need(Gate, "G1").pin} if entity == "me" else None


def depot(name: str = "depot") -> cw.StatefulEnvironment:
    return cw.StatefulEnvironment(
        name,
        rows=[Parcel, Gate],
        tools=[list_parcels, sign_in, fetch_parcel, open_gate, close_gate, drive_out],
        scenarios={"yard": cw.Scenario(_rows, "a yard")},
        knowledge=_knowledge,
    )


class Far:
    """The depot as somebody else's server: sessions live elsewhere, do not fork, and are counted."""

    out_of_process = True
    pure = True

    def __init__(self, disposable: bool | None = None) -> None:
        self.inner = depot("far-depot")
        self.name, self.tools = self.inner.name, self.inner.tools
        self.calls: list[str] = []
        if disposable is not None:
            self.disposable = disposable

    def open(self, scenario: str = "", seed: int = 0) -> FarSession:
        return FarSession(self, self.inner.open(scenario, seed))


class FarSession:
    def __init__(self, environment: Far, session: Any) -> None:
        self.environment, self.session = environment, session

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        self.environment.calls.append(tool)
        found: Outcome = self.session.call(tool, arguments)
        return found

    def digest(self) -> str:
        return str(self.session.digest())

    def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.session.knowledge(entity)
        return found

    def close(self) -> None:
        self.session.close()
