"""A world's server in this process: its code over one copy of the database, asked without a socket.

Arguments become a request as fastapi-mcp does it: those of the path and the query go there, the others into the body.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sqlite3
import sys
import tempfile
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from attrs import frozen

from callwright.errors import DataError, MissingExtra
from callwright_plugins.awm.files import WorldFiles

_numbers: Final = itertools.count()
_METHODS: Final = ("get", "post", "put", "patch", "delete")


@frozen
class Operation:
    """An operation of a server: how its request is made, what it is for, and the JSON Schema of its arguments."""

    name: str
    method: str
    path: str
    description: str
    in_path: frozenset[str]
    in_query: frozenset[str]
    parameters: dict[str, Any]


class WorldServer:
    """One copy of a world, until it is closed.

    Raises :class:`callwright.errors.DataError` for code that does not make a FastAPI ``app``, and
    :class:`callwright.errors.MissingExtra` without the packages that such code imports.
    """

    def __init__(self, files: WorldFiles, database: bytes) -> None:
        try:
            for package in ("fastapi", "sqlalchemy", "httpx"):
                import_module(package)
            client = import_module("starlette.testclient").TestClient
        except (ImportError, RuntimeError) as error:
            raise MissingExtra("the environment 'awm'", "awm", getattr(error, "name", None) or "httpx") from error
        self._folder = tempfile.mkdtemp(prefix="callwright-awm-")
        self._path = Path(self._folder) / "world.db"
        place = Path(self._folder) / "server.py"
        name = f"callwright_awm_world_{os.getpid()}_{next(_numbers)}"
        loader = SourceFileLoader(name, str(place))
        self._module = module_from_spec(ModuleSpec(name, loader, origin=str(place)))
        self._client: Any = None
        try:
            self.restore(database)
            sys.modules[self._module.__name__] = self._module  # where pydantic looks up names of annotations
            try:
                place.write_text(_placed(files.code, self._path), encoding="utf-8")
                loader.exec_module(self._module)
                self._app = self._module.__dict__["app"]
                self._client = client(self._app, raise_server_exceptions=False).__enter__()
                self.openapi: dict[str, Any] = self._app.openapi()
            except Exception as error:
                raise DataError(
                    f"the code of {files.name!r} makes no server: {type(error).__name__}: {error}"
                ) from error
        except BaseException:
            self.close()
            raise

    def ask(self, operation: Operation, arguments: dict[str, Any]) -> tuple[int, Any]:
        """The status and the body of an answer; a body that is no JSON is a text."""
        path = operation.path
        for name in operation.in_path & arguments.keys():
            path = path.replace("{" + name + "}", quote(str(arguments[name]), safe=""))
        query = {name: arguments[name] for name in operation.in_query & arguments.keys() if arguments[name] is not None}
        rest = operation.in_path | operation.in_query
        body = {name: value for name, value in arguments.items() if name not in rest}
        answer = self._client.request(operation.method.upper(), path, params=query, json=body or None)
        try:
            return answer.status_code, answer.json()
        except ValueError:
            return answer.status_code, answer.text

    def dump(self) -> bytes:
        """The database as it is."""
        with contextlib.closing(sqlite3.connect(self._path)) as base:
            return bytes(base.serialize())

    def rows(self) -> list[str]:
        """The database as statements of SQL, which are equal where tables and rows are."""
        with contextlib.closing(sqlite3.connect(self._path)) as base:
            return list(base.iterdump())

    def restore(self, database: bytes) -> None:
        """Put another state of it there, also while the server holds connections."""
        with (
            contextlib.closing(sqlite3.connect(":memory:")) as held,
            contextlib.closing(sqlite3.connect(self._path)) as base,
        ):
            held.deserialize(database)
            held.backup(base)

    def close(self) -> None:
        """Stop the server and remove its database. Closing twice is allowed."""
        client, self._client = self._client, None
        if client is not None:
            client.__exit__(None, None, None)
            for value in list(self._module.__dict__.values()):
                if hasattr(value, "dispose") and hasattr(value, "dialect"):
                    value.dispose()  # an engine, whose connections would stay open
        sys.modules.pop(self._module.__name__, None)
        shutil.rmtree(self._folder, ignore_errors=True)


def _placed(code: str, path: Path) -> str:
    """The code with its engine on a file: AWM's runner replaces the rest of such a line, too."""
    engine = f"create_engine({f'sqlite:///{path}'!r}, connect_args={{'check_same_thread': False}})"
    lines = (
        line.split("create_engine(")[0] + engine if "create_engine(" in line else line for line in code.split("\n")
    )
    return "\n".join(lines)


def operations(openapi: dict[str, Any]) -> dict[str, Operation]:
    """What a server offers, by operation id. Raises :class:`callwright.errors.DataError` for two of one name."""
    found: dict[str, Operation] = {}
    for path, methods in openapi.get("paths", {}).items():
        for method in _METHODS:
            if method in methods:
                one = _operation(openapi, path, method, methods[method])
                if one.name in found:
                    raise DataError(f"two operations of the world are called {one.name!r}")
                found[one.name] = one
    return found


def _operation(openapi: dict[str, Any], path: str, method: str, told: dict[str, Any]) -> Operation:
    properties: dict[str, Any] = {}
    required: list[str] = []
    places: dict[str, set[str]] = {"path": set(), "query": set()}
    for one in told.get("parameters", []):
        if one["in"] in places:
            places[one["in"]].add(one["name"])
            described = {"description": one["description"]} if one.get("description") else {}
            properties[one["name"]] = {**described, **_resolved(one.get("schema", {}), openapi)}
            required += [one["name"]] if one.get("required") else []
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    body = _resolved(body, openapi)
    properties |= body.get("properties", {})
    required += [name for name in body.get("required", []) if name not in required]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema |= {"required": required} if required else {}
    description = "\n\n".join(text for text in (told.get("summary"), told.get("description")) if text)
    name = told.get("operationId") or f"{method}_{path}"
    return Operation(name, method, path, description, frozenset(places["path"]), frozenset(places["query"]), schema)


def _resolved(schema: Any, openapi: dict[str, Any], within: tuple[str, ...] = ()) -> Any:
    """A schema without references; one that leads back to itself takes anything there."""
    if isinstance(schema, list):
        return [_resolved(one, openapi, within) for one in schema]
    if not isinstance(schema, dict):
        return schema
    target = schema.get("$ref")
    if isinstance(target, str):
        found = openapi.get("components", {}).get("schemas", {}).get(target.rpartition("/")[2], {})
        return {} if target in within else _resolved(found, openapi, (*within, target))
    return {name: _resolved(value, openapi, within) for name, value in schema.items()}
