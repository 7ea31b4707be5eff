"""A small world in which components of other kinds are tried: a form, a shop with a cart, and tasks of every shape."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any, ClassVar, Final

from attrs import define, evolve, field, frozen

from callwright.environments.functions import FunctionEnvironment
from callwright.environments.protocol import Environment, Outcome
from callwright.errors import InfrastructureFailure
from callwright.language.parser import DEFAULT_LIMITS, ParseFailure, ParseLimits
from callwright.language.program import Call, Program, Reference, revive
from callwright.language.strict_json import Duplicated, decode, encode
from callwright.language.writable import check_program
from callwright.tools.spec import ToolError, ToolSpec, tool
from callwright.walk.tasks import Answer, Task


@frozen
class SampleForm:
    """The kit's own form, a JSON object ``{"thought": …, "returns": …, "calls": [[id, tool, arguments], …]}``."""

    limits: ParseLimits = DEFAULT_LIMITS
    name: ClassVar[str] = "sample"

    def parse(self, text: str) -> Program | ParseFailure:
        span = (0, len(text))
        if len(text) > self.limits.characters:
            return ParseFailure("limit", "too_long", "the text is longer than the limit", span)
        tree = decode(text, 0, self.limits.nesting + 3)
        if isinstance(tree, ParseFailure):
            return tree
        if isinstance(tree, Duplicated):
            return ParseFailure("syntax", "duplicate_key", f"an object has the key {tree.key!r:.40} twice", tree.span)
        match tree:
            case {"thought": str(thought), "returns": "one" | "all" as returns, "calls": list(rows)} if len(tree) == 3:
                if len(rows) > self.limits.calls:
                    return ParseFailure("limit", "too_many_calls", "there are more calls than the limit", span)
                calls = [_read_call(row) for row in rows]
                ids = [-1, *(call.id for call in calls if call is not None)]
                if None not in calls and all(a < b for a, b in pairwise(ids)):
                    return Program(tuple(call for call in calls if call is not None), returns, thought)
        return ParseFailure("structure", "not_a_program", "the object is not one of thought, returns and calls", span)

    def render(self, program: Program) -> str:
        """Write a completion. Raises :class:`callwright.errors.CannotExpress`."""
        check_program(program, self.limits, "ascending", "strings")
        rows = [[call.id, call.tool, call.arguments] for call in program.calls]
        return encode({"thought": program.thought, "returns": program.returns, "calls": rows})

    def instructions(self) -> str:
        """How to write it."""
        return "Write a JSON object of thought, returns and calls. For no call, leave the list of calls empty."


def _read_call(row: Any) -> Call | None:
    match row:
        case [bool(), *_]:
            return None
        case [int(number), str(name), dict(arguments)] if 0 <= number < 1_000_000_000:
            return Call(number, name, revive(arguments))
    return None


@define
class Shop:
    """What the tools of the shop read and change."""

    prices: dict[str, float]
    cart: list[str] = field(factory=list)


@tool(read_only=True, result_field="names")
def find_items(shop: Shop, /, below: float) -> dict[str, list[str]]:
    """The names of the items that cost less."""
    return {"names": sorted(name for name, price in shop.prices.items() if price < below)}


@tool(read_only=True)
def price_of(shop: Shop, /, name: str) -> float:
    """The price of an item."""
    if name not in shop.prices:
        raise ToolError("unknown_item", f"there is no {name!r:.40}")
    return shop.prices[name]


@tool(read_only=True)
def total(prices: list[float], discount: float = 0.0) -> float:
    """The sum of prices, less a discount."""
    return round(sum(prices) - discount, 2)


@tool(destructive=True)
def put_in_cart(shop: Shop, /, name: str, count: int = 1) -> dict[str, Any]:
    """Put an item into the cart."""
    if name not in shop.prices:
        raise ToolError("unknown_item", f"there is no {name!r:.40}")
    if not 0 < count <= 9:
        raise ToolError("bad_count", "a count is between 1 and 9")
    shop.cart.extend([name] * count)
    return {"cart": list(shop.cart)}


_ITEMS: Final = ("apple", "book", "comb", "drum", "egg")


def _open(scenario: str, seed: int) -> Shop:
    rng = Random(f"{scenario}/{seed}")
    return Shop({name: float(rng.randint(1, 20)) for name in _ITEMS})


SHOP: Final[Environment] = FunctionEnvironment("sample-shop", [find_items, price_of, total, put_in_cart], state=_open)


class BrokenShop:
    """The same shop on a day on which its server is down."""

    name: ClassVar[str] = "sample-shop-down"
    pure: ClassVar[bool] = True

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools of the shop."""
        return SHOP.tools

    def open(self, scenario: str = "", seed: int = 0) -> BrokenShop:
        """A session, which is this object: nothing works in it."""
        return self

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Fail as machinery fails."""
        raise InfrastructureFailure("the server of the shop is down")

    def digest(self) -> str:
        """There is no state."""
        return ""

    def close(self) -> None:
        """Nothing to give back."""


def _task(number: int, query: str, program: Program, *values: Any) -> Task:
    return Task(
        id=f"sample-{number}",
        query=query,
        tools=SHOP.tools,
        answer=Answer(values),
        environment=SHOP,
        depth=program.depth,
        chain=program.chain,
        structure=program.structure,
        returns=program.returns,
        program=program,
    )


def sample_tasks() -> list[Task]:
    """Tasks with reference programs: no call, single, parallel, linear, funnel, and one that changes the state."""
    prices = _open("", 0).prices
    apple, book = Call(0, "price_of", {"name": "apple"}), Call(1, "price_of", {"name": "book"})
    below = {"names": sorted(name for name, price in prices.items() if price < 100)}
    first = below["names"][0]
    return [
        _task(0, "What is the weather?", Program(())),
        _task(1, "What does an apple cost?", Program((apple,)), prices["apple"]),
        _task(2, "What do an apple and a book cost?", Program((apple, book), "all"), prices["apple"], prices["book"]),
        _task(
            3,
            "What does the first item below 100 cost?",
            Program((Call(0, "find_items", {"below": 100}), Call(1, "price_of", {"name": Reference(0, ("names", 0))}))),
            prices[first],
        ),
        _task(
            4,
            "What do an apple and a book cost together?",
            Program((apple, book, Call(2, "total", {"prices": [Reference(0), Reference(1)], "discount": 0.5}))),
            round(prices["apple"] + prices["book"] - 0.5, 2),
        ),
        _task(
            5,
            "Two eggs, please.",
            Program((Call(0, "put_in_cart", {"name": "egg", "count": 2}),)),
            {"cart": ["egg"] * 2},
        ),
    ]


def spoiled(program: Program) -> list[Program]:
    """Programs that are wrong in one way each: name, parameter, type, value, reference, order, number of calls."""
    found = [
        Program((), program.returns),
        Program((*program.calls, Call(900, "no_such_tool", {"a": 1})), program.returns),
        Program(program.calls, "all" if program.returns == "one" else "one"),
        Program((*program.calls, *(evolve(call, id=call.id + 500) for call in program.calls)), program.returns),
    ]
    for index, call in enumerate(program.calls):
        variants: list[Mapping[str, Any]] = [{}, {**call.arguments, "surplus": None}]
        for key in call.arguments:
            for value in (None, "four", 4, [4], {"k": 4}, Reference(0), Reference(700, ("a", 0))):
                variants.append({**call.arguments, key: value})
        for arguments in variants:
            calls = [*program.calls[:index], evolve(call, arguments=arguments), *program.calls[index + 1 :]]
            found.append(Program(tuple(calls), program.returns))
    return found
