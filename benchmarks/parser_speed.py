"""How long the parsers take: for a typical completion, and as adversarial input grows.

    python benchmarks/parser_speed.py [--no-growth] [--length 50000] [--form NAME]

First table: microseconds of CPU time for one completion of three chained calls in each form, beside the standard
library's ``json.loads`` on the same JSON body (which checks nothing). Second table: for every parser the family of
input on which four times the length costs the most more time, and the one that takes the most time. Linear is a factor
of 4; exit status 1 if some family takes more than 10 times as long, and long enough to be measured.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import sys
import timeit
from collections.abc import Iterator
from time import process_time

from callwright.errors import CannotExpress
from callwright.language.parser import ParseLimits, Parser
from callwright.language.program import Call, Program, Reference
from callwright.plugins import load_plugins

TYPICAL = Program(
    (
        Call(0, "FindDealershipsByLocation", {"location": "Los Angeles"}),
        Call(1, "GetCarListingByDealerships", {"dealerships": Reference(0)}),
        Call(2, "FilterByCarPrice", {"listings": Reference(1), "price": 37000}),
    ),
    "one",
    "First the dealerships of the city, then what they list, and from that the cars within the budget.",
)
WITHOUT_REFERENCES = Program(
    (
        Call(0, "FindDealershipsByLocation", {"location": "Los Angeles"}),
        Call(1, "GetCarListingByDealerships", {"dealerships": ["Sunset Motors"]}),
        Call(2, "FilterByCarPrice", {"listings": "all", "price": 37000}),
    ),
    "all",
    TYPICAL.thought,
)

CALL = '<think>x</think>\n<tool_call return="one">'
PLAIN = "<think>x</think>\n<tool_call>"
PREFIXES = (
    "", "<think>", "<think>x</think>", CALL, PLAIN, f'{CALL}{{"0": {{"T": {{"a": ', f'{CALL}{{"0": {{"T": {{"a": "',
    f"{CALL}[f(a=", f"{CALL}[f(a='", f'{CALL}["f(a=', f'{CALL}<api id="0"><name>T</name><param name="a" type="string">',
    f'{CALL}<api id="0"><name>T</name><param name="', f'{PLAIN}{{"name": "f", "parameters": {{"a": ',
    f'{PLAIN}{{"name": "f", "arguments": {{"a": "', f"{PLAIN}{{}}</tool_call>",
)  # fmt: skip
UNITS = (
    "<think>", "<think ", "<think a='", "</think>", "</think> ", "</think>\n<tool_call ", "</think><tool_call a='b' ",
    "<tool_call>", "</tool_call>", "<tool_call", "<response>", "[", "{", "]", "}", '{"0":', '{"a":{},', "[[],", "(",
    "f(", "'", '"', "\\", '\\"', '"\\', "\\u", "\\u0041", "\\ud800", "\\x", ",", ", ", "a=1,", "a", "1", "9.", "-",
    ".", "e1", " ", "\n", " \n", "\xa0", "é", "😀", "\ud800", "&", "&amp;", "&#65;", "<", "<a>", "<a ", "<a/>",
    "<a b='c'/>", "</a>", "<!", "<!--", "<?", "]]>", '<api id="0">', "<item>", "API_RESPONSE_0", "API_RESPONSE_0.",
    "API_RESPONSE_0[0]", "[0]", ".a", "null,", '"k": 1, ', "{}\n", "'f()', ", "\x00", "a:b/", "= ",
)  # fmt: skip
SUFFIXES = ("", "</tool_call>")


def typical(parsers: list[Parser], number: int) -> None:
    print("Typical completion      characters   parse us   render us")
    for parser in parsers:
        program = TYPICAL
        try:
            text = parser.render(program)
        except CannotExpress:
            program = WITHOUT_REFERENCES
            text = parser.render(program)
        parse = best(lambda parser=parser, text=text: parser.parse(text), number)
        render = best(lambda parser=parser, program=program: parser.render(program), number)
        note = "" if program is TYPICAL else "   (without references, which the form does not have)"
        print(f"{parser.name:<24}{len(text):>10}{parse:>11.2f}{render:>12.2f}{note}")
        if parser.name == "json":
            body = text[text.index("{") : text.rindex("}") + 1]
            reference = best(lambda body=body: json.loads(body), number)
            print(f"{'  json.loads of the body':<24}{len(body):>10}{reference:>11.2f}")


def best(work: object, number: int) -> float:
    assert callable(work)
    return min(timeit.repeat(work, number=number, repeat=7, timer=process_time)) / number * 1e6


def families() -> Iterator[tuple[str, str, str]]:
    yield from itertools.product(PREFIXES, UNITS, SUFFIXES)


def cost(parser: Parser, text: str) -> float:
    """Milliseconds of CPU time, the best of three, without the interpreter's passes for cyclic garbage.

    Those depend on how many objects are alive; they cost up to 2.5 times a parse that builds a large tree.
    """
    times = []
    gc.disable()
    for _ in range(3):
        start = process_time()
        parser.parse(text)
        times.append(process_time() - start)
    gc.enable()
    return min(times) * 1e3


def growth(parsers: list[Parser], length: int) -> bool:
    """Print the worst families by parser; returns whether all of them grew linearly."""
    linear = True
    count = len(list(families()))
    print(f"\nGrowth from {length:,} to {4 * length:,} characters, {count:,} families of input (linear: 4)")
    for parser in parsers:
        worst: tuple[float, float, str] = (0.0, 0.0, "")
        slowest: tuple[float, str] = (0.0, "")
        for prefix, unit, suffix in families():
            texts = [prefix + unit * ((size - len(prefix)) // len(unit)) + suffix for size in (length, 4 * length)]
            name = f"{prefix!r} + {unit!r} … + {suffix!r}"
            after = cost(parser, texts[1])
            slowest = max(slowest, (after, name))
            if after < 2:  # too short to tell from noise, and 100 characters a microsecond
                continue
            before = cost(parser, texts[0])
            if after / before > 6:  # measure again: the machine may have been busy
                before, after = cost(parser, texts[0]), cost(parser, texts[1])
            worst = max(worst, (after / before, after, name))
        linear = linear and worst[0] < 10
        print(f"{parser.name:<8} most growth  {worst[0]:>5.1f}   {worst[1]:>7.1f} ms   {worst[2]}")
        print(f"{'':<8} most time           {slowest[0]:>7.1f} ms   {slowest[1]}")
    return linear


def main() -> int:
    arguments = argparse.ArgumentParser(description="How long the parsers take.")
    arguments.add_argument("--number", type=int, default=5000, help="repetitions of each measurement")
    arguments.add_argument("--length", type=int, default=50_000, help="where growth is measured from")
    arguments.add_argument("--form", help="only this parser")
    arguments.add_argument("--no-growth", action="store_true", help="only the typical completion")
    options = arguments.parse_args()
    registry = load_plugins()
    names = [options.form] if options.form else registry.names("parser")
    typical([registry.create("parser", name) for name in names], options.number)
    if options.no_growth:
        return 0
    # without the limit on nesting, so that the readers themselves are measured and not the check before them
    limits = ParseLimits(characters=10**7, nesting=150, calls=10**6)
    parsers = [registry.create("parser", name, limits=limits) for name in names]
    return 0 if growth(parsers, options.length) else 1


if __name__ == "__main__":
    sys.exit(main())
