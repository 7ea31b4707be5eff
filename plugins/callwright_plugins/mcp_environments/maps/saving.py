"""Tools for saved places and home."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.maps.geometry import Location, point_of
from callwright_plugins.mcp_environments.maps.rows import Place, Profile, SavedPlace

_MOST_SAVED: Final = 50


class SavedView(TypedDict):
    """A saved place; give ``saved_id`` or ``location`` to the tools for routes."""

    saved_id: str
    label: str
    location: str
    place_id: str | None


class HomeView(TypedDict):
    """Where home is."""

    home: str
    name: str


def _view(saved: SavedPlace) -> SavedView:
    return {
        "saved_id": saved.id,
        "label": saved.label,
        "location": f"{saved.lat:.5f},{saved.lon:.5f}",
        "place_id": saved.place or None,
    }


@tool(read_only=True, discovery=True)
def list_saved_places(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[SavedView]:
    """List the saved places with their labels."""
    return page(list(world.rows(SavedPlace)), _view, limit, cursor)


@tool
def save_place(
    world: World,
    /,
    location: Location,
    label: Annotated[str, Field(min_length=1, max_length=60, pattern=r"\S", description="Name to keep it under.")],
) -> SavedView:
    """Save a location under a label. Fails with LABEL_TAKEN, SAVED_LIMIT (50), OUT_OF_COVERAGE, HOME_NOT_SET,
    NOT_FOUND, BAD_LOCATION."""
    point = point_of(world, location)
    there = list(world.rows(SavedPlace))
    taken = [saved for saved in there if saved.label.casefold() == label.casefold()]
    if taken:
        raise ToolError("LABEL_TAKEN", f"{taken[0].id} is saved as {taken[0].label!r}; choose another label")
    if len(there) >= _MOST_SAVED:
        raise ToolError("SAVED_LIMIT", f"{_MOST_SAVED} places are saved, which is the limit; delete one first")
    place = location if world.get(Place, location) else ""
    return _view(world.put(SavedPlace(world.new_id(SavedPlace), label, point.lat, point.lon, place)))


@tool(destructive=True)
def delete_saved_place(
    world: World, /, saved_id: Annotated[str, Field(max_length=20, description="Id of a saved place.")]
) -> SavedView:
    """Delete a saved place. Fails with NOT_FOUND, and with IN_USE if it is home."""
    saved = world.need(SavedPlace, saved_id, message=f"there is no saved place {saved_id!r}; see list_saved_places")
    if world.need(Profile, "me").home == saved.id:
        raise ToolError("IN_USE", f"{saved.id} ({saved.label}) is home; set_home to another location first")
    world.drop(saved)
    return _view(saved)


@tool(idempotent=True)
def set_home(world: World, /, location: Location) -> HomeView:
    """Make a location home, where routes begin unless they say otherwise. Fails with OUT_OF_COVERAGE, NOT_FOUND,
    BAD_LOCATION, HOME_NOT_SET."""
    point = point_of(world, location)
    profile = world.need(Profile, "me")
    if location != "home":
        profile = world.update(profile, home=location)
    return {"home": profile.home, "name": point.name}


TOOLS: Final[list[FunctionTool]] = [list_saved_places, save_place, delete_saved_place, set_home]
