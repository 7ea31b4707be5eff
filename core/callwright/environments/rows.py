"""Rows: the frozen values that the state of a session is made of.

    @row("accounts", prefix="A", index=("owner",))
    class Account:
        id: str
        owner: str
        balance: int  # cents

A row holds JSON scalars, ``None`` and tuples of them, so nothing inside it can change: a session shares the rows of its
scenario with thousands of others, and to change one is to put another in its place (:class:`callwright.World`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeVar, dataclass_transform

import attrs

from callwright.errors import DataError, UsageError

R = TypeVar("R")
#: The attribute of a row class that holds its :class:`Table`.
_TABLE: Final = "__callwright_table__"
_SCALARS: Final = (str, int, float, bool, type(None))
#: The same as classes themselves: what a row of a scenario holds, nearly always.
_EXACTLY: Final = frozenset(_SCALARS)


@attrs.frozen(eq=False)
class Table:
    """What a row class says of its table: name, key, prefix of its ids, and the fields with an index."""

    name: str
    key: tuple[str, ...]
    prefix: str
    index: tuple[str, ...]
    fields: tuple[str, ...]
    #: The key of a row: the value of the key field, or a tuple of them where there are several.
    key_of: Callable[[Any], Any] = attrs.field(repr=False)
    #: The values of a row, in the order of its fields.
    values_of: Callable[[Any], tuple[Any, ...]] = attrs.field(repr=False)
    #: The row that has these values, in the order of its fields.
    made: Callable[[Sequence[Any]], Any] = attrs.field(repr=False)
    #: Where each field stands among the values.
    places: Mapping[str, int] = attrs.field(repr=False)
    #: Fields of new rows whose values the session chooses, so that others would do as well.
    generated: frozenset[str] = frozenset()
    #: Fields that no comparison of end states looks at: all of them where the whole table is bookkeeping.
    bookkeeping: frozenset[str] = frozenset()
    #: Times of which any within the session is as good as another.
    stamps: frozenset[str] = frozenset()
    #: Times that count from another field: by name, that field.
    relative: Mapping[str, str] = attrs.field(factory=dict)
    #: Fields that hold a tuple whose order means nothing.
    unordered: frozenset[str] = frozenset()

    @property
    def is_compared(self) -> bool:
        """Whether a comparison of end states looks at this table at all."""
        return len(self.bookkeeping) < len(self.fields)

    def fingerprint(self, row: Any) -> int:
        """A 256-bit number of a row: equal rows have equal ones, in every process and on every machine."""
        text = repr((self.name, self.values_of(row)))
        return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest())

    def identifier(self, number: int) -> str:
        """The id of row ``number``: ``A00017``. Generated data and :meth:`callwright.World.new_id` write them alike."""
        return f"{self.prefix}{number:05d}"


@dataclass_transform(frozen_default=True, field_specifiers=(attrs.field,))
def row(
    table: str,
    *,
    key: str | Sequence[str] = "",
    prefix: str = "",
    index: Sequence[str] = (),
    generated: Sequence[str] = (),
    bookkeeping: bool | Sequence[str] = False,
    stamps: Sequence[str] = (),
    relative: Mapping[str, str] = MappingProxyType({}),
    unordered: Sequence[str] = (),
) -> Callable[[type[R]], type[R]]:
    """Make a class of annotated fields the frozen rows of ``table``.

    ``key`` names the field (or fields) that identify a row; left out, it is the first one. ``prefix`` begins the ids
    that :meth:`callwright.World.new_id` makes. Fields listed in ``index`` are found without reading the whole table.

    The others say what two end states are compared by (:mod:`callwright.environments.goals`); digests hold everything.
    ``bookkeeping`` is the whole table (``True``) or fields that follow from what else is compared, or that say in which
    order things were done. ``stamps`` are times: any within the session is as good as another. Times that are
    ``relative`` count from the field that is given for each (``{"expires_at": "created_at"}``). ``unordered`` fields
    hold a tuple whose order means nothing. ``generated`` are fields of which the session chooses the values in new
    rows, so that others would do as well; ids that :meth:`callwright.World.new_id` made always are.

    Raises :class:`callwright.UsageError` for a name that is no field.
    """

    def wrap(target: type[R]) -> type[R]:
        made: type[Any] = attrs.frozen(target)
        names = tuple(attribute.name for attribute in attrs.fields(made))
        keys = (key,) if isinstance(key, str) and key else tuple(key) or names[:1]
        ignored = (names if bookkeeping else ()) if isinstance(bookkeeping, bool) else tuple(bookkeeping)
        for name in (*keys, *index, *generated, *ignored, *stamps, *relative, *relative.values(), *unordered):
            if name not in names:
                raise UsageError(f"rows of {table!r} have no field {name!r}; they have {', '.join(names)}")
        values = attrgetter(*names)
        by_name = any(attribute.kw_only for attribute in attrs.fields(made))
        described = Table(
            name=table,
            key=keys,
            prefix=prefix,
            index=tuple(index),
            fields=names,
            key_of=attrgetter(*keys),
            values_of=values if len(names) > 1 else lambda one: (values(one),),
            made=lambda given: made(**dict(zip(names, given, strict=True))) if by_name else made(*given),
            places={name: place for place, name in enumerate(names)},
            generated=frozenset(generated),
            bookkeeping=frozenset(ignored),
            stamps=frozenset(stamps),
            relative=dict(relative),
            unordered=frozenset(unordered),
        )
        setattr(made, _TABLE, described)
        return made

    return wrap


def table_of(kind: type[Any]) -> Table:
    """The table of a row class. Raises :class:`callwright.UsageError` for another class."""
    table: Table | None = getattr(kind, _TABLE, None)
    if table is None:
        raise UsageError(f"{kind.__name__} is not a class of rows; decorate it with @callwright.row('table')")
    return table


def row_json(row: Any) -> dict[str, Any]:
    """A row as a JSON object; tuples become lists."""
    table = table_of(type(row))
    return {name: _listed(value) for name, value in zip(table.fields, table.values_of(row), strict=True)}


def row_from_json(kind: type[R], value: Mapping[str, Any]) -> R:
    """The row that :func:`row_json` wrote.

    Raises :class:`callwright.errors.DataError` if the fields are not those of rows.
    """
    table = table_of(kind)
    try:
        made = kind(**{name: _frozen(inner) for name, inner in value.items()})
        check_row(made)
    except (TypeError, ValueError) as error:
        raise DataError(f"not a row of {table.name!r}: {error}") from error
    return made


def check_row(row: Any) -> None:
    """Raises :class:`callwright.errors.DataError` for a row that holds anything but scalars and tuples of them."""
    table = table_of(type(row))
    values = table.values_of(row)
    if _EXACTLY.issuperset(map(type, values)):  # nearly every row: a scenario has thousands
        return
    for name, value in zip(table.fields, values, strict=True):
        if not _is_frozen(value):
            raise DataError(
                f"the field {name!r} of a row of {table.name!r} holds {value!r:.80}: rows hold text, numbers, "
                "booleans, None, and tuples of them"
            )


def key_text(key: Any) -> str:
    """A key as text for people and for JSON objects: the parts of a compound key with ``/`` between them."""
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _is_frozen(value: Any) -> bool:
    return isinstance(value, _SCALARS) or (type(value) is tuple and all(map(_is_frozen, value)))


def _listed(value: Any) -> Any:
    return [_listed(inner) for inner in value] if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(inner) for inner in value) if isinstance(value, list | tuple) else value
