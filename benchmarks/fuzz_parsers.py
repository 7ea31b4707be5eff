"""Throw mutated completions at every registered parser and look for an exception, a hang or a broken promise.

    python benchmarks/fuzz_parsers.py --count 1000000 --seed 0 [--data DIR]

Every mutated completion goes to every parser. Checked each time: the result is a program or a parse failure; the span
of a failure lies inside the text; a program that was read is rendered to a text that reads back as an equal program, or
refused with ``CannotExpress``. ``--data`` adds the official completions to the seeds. Exit status 1 if anything was
found; the first finding of each parser is printed so that it can be pasted into a test.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from callwright.errors import CannotExpress
from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Call, Program, Reference
from callwright.plugins import load_plugins

OUTCOMES = ("program", "arguments", "structure", "syntax", "envelope", "limit")

PROGRAMS = (
    Program((), "one", "Nothing fits."),
    Program((Call(0, "GetTime"),), "one", "The time."),
    Program((Call(0, "Search", {"query": "São Paulo & <b>", "limit": 3, "price": 4.5, "open": True, "tag": None}),)),
    Program((Call(0, "Cart", {"items": [{"sku": "A 1", "qty": 2}, {"sku": "B", "qty": 1}], "note": ""}),)),
    Program(
        (Call(0, "A", {"x": 10**25}), Call(1, "B.c", {"y": [[], {}, [[-0.5]]]})), "all", "a </think> b <tool_call>"
    ),
)
CHAINS = (
    Program(
        (
            Call(0, "GetLocation"),
            Call(1, "Find", {"location": Reference(0)}),
            Call(
                2, "Filter", {"of": Reference(1, ("items", 0, "unit price")), "max": 20, "deep": {"k": [Reference(0)]}}
            ),
        ),
        "one",
        "First the place, then the list.",
    ),
)
WRITTEN = (
    "<think>x</think>\n<tool_call>\n[\"f(a='x', b=[1, {'k': true}])\", \"g(c=API_RESPONSE_0.items[0])\"]\n</tool_call>",
    '<think>x</think><tool_call return="one">[f(a="\\x41\\u00e9\\n", b=-1.5e3, c=API_RESPONSE_0)]</tool_call>',
    "<think>x</think>\n<response>It is 3.</response>",
    "It is three o'clock.",
    "",
)

#: What grammars are made of, and what readers stumble over.
PIECES = (
    *"{}[]()<>\"'\\,:=&;#/.-+eE0123456789 \n\r\t\x00\x0b\x1f\x7f\x85\xa0\u2028\ufeff\uffff",
    "\ud800", "\udfff", "😀", "é", "٣", "²", "\\ud800", "\\udc00", "\\u0000", "\\x4", "\\N{DASH}", "\\\n",
    "<think>", "</think>", "<think ", "<tool_call>", "</tool_call>", '<tool_call return="one">', ' return="x"',
    "<tool_call", "<response>", "</response>", "<api id=\"0\">", "</api>", "<name>", "</name>", "<none/>", "</param>",
    '<param name="a" type="integer">', '<param name="a" type="array">', "<item type=\"dict\">", "</item>",
    '<field name="k" type="eval">', '<response api_id="0" api_name="GetTime"/>', ' xml:space="preserve"', ' id="0"',
    "<!DOCTYPE a [<!ENTITY b \"c\">]>", "&b;", "&#x110000;", "&#0;", "<![CDATA[", "]]>", "<!--", "<?xml", "</body>",
    "API_RESPONSE_0", "API_RESPONSE_9999999999", "API_RESPONSE_0.a[0]..b", '"0": ', '"00": ', "null", "true", "NaN",
    "-Infinity", "1e999", "9" * 30, "9" * 5000, "0." + "9" * 400, "[" * 70, "{\"a\":" * 70, "]" * 70, "```json\n",
    "__import__('os').system('true')", "**", "lambda: 0", '"name": ', '"arguments": ', '"parameters": ', "\\" * 9,
)  # fmt: skip


LONGEST = 20_000
_BLOCK = re.compile(r"(?<=</think>)\s*<tool_call[^>]*>(.*?)</tool_call>", re.DOTALL)


class Hang(BaseException):
    """A parser took longer than the guard allows. Not an Exception, so that nothing on the way can catch it."""


def seeds(parsers: Sequence[Parser], data: Path | None) -> list[str]:
    """Completions to mutate: programs in every form that can write them, some by hand, and the official ones."""
    found = list(WRITTEN)
    for parser in parsers:
        for program in (*PROGRAMS, *CHAINS):
            try:
                found.append(parser.render(program))
            except CannotExpress:
                continue
    if data is not None:
        with gzip.open(data / "reference_scores.jsonl.gz", "rt", encoding="utf-8") as lines:
            found.extend(sorted({json.loads(line)["completion"] for line in lines}))
    return found


def mutate(text: str, chance: random.Random, pool: Sequence[str]) -> str:
    """A few random edits; three times in four only inside the tool-call block, so that its reader gets to work."""
    block = _BLOCK.search(text) if chance.random() < 0.75 else None
    if block is not None:
        inside = edit(block[1], chance, pool)
        return (text[: block.start(1)] + inside + text[block.end(1) :])[:LONGEST]
    return edit(text, chance, pool)[:LONGEST]


def edit(text: str, chance: random.Random, pool: Sequence[str]) -> str:
    """Insert, replace, delete, repeat, cut, splice, copy or flip bits."""
    for _ in range(1 + int(chance.expovariate(1.0))):
        at = chance.randrange(len(text) + 1)
        to = min(len(text), at + 1 + int(chance.expovariate(0.1)))
        kind = chance.randrange(10)
        if kind < 3:
            text = text[:at] + chance.choice(PIECES) + text[at:]
        elif kind == 3:
            text = text[:at] + chance.choice(PIECES) + text[to:]
        elif kind == 4:
            text = text[:at] + text[to:]
        elif kind == 5:
            text = text[:at] + text[at:to] * chance.choice((2, 2, 3, 50)) + text[to:]
        elif kind == 6:
            text = text[:at]
        elif kind == 7:
            other = chance.choice(pool)
            text = text[:at] + other[chance.randrange(len(other) + 1) :]
        elif kind == 8:
            source = chance.randrange(len(text) + 1)
            text = text[:at] + text[source : source + to - at] + text[to:]
        elif at < len(text):
            text = text[:at] + chr(ord(text[at]) ^ (1 << chance.randrange(7))) + text[at + 1 :]
    return text


def examine(parser: Parser, text: str) -> str:
    """Parse once and check every promise; returns the outcome or raises."""
    result = parser.parse(text)
    if isinstance(result, ParseFailure):
        start, end = result.span
        assert 0 <= start <= end <= len(text), f"span {result.span} outside of {len(text)} characters"
        assert result.code
        assert result.message
        result.message.encode()  # a message can be printed whatever the text holds
        return result.stage
    assert isinstance(result, Program), f"{type(result).__name__} instead of a program or a failure"
    try:
        rendered = parser.render(result)
    except CannotExpress:
        return "program"
    assert parser.parse(rendered) == result, "the rendered program reads differently"
    return "program"


@contextmanager
def guard(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer, on systems that have interval timers."""

    def stop(*_: Any) -> None:
        raise Hang(f"no result after {seconds} s")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep a pause for garbage collection, of what others left, out of a measurement."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def fuzz(
    parsers: Sequence[Parser], count: int, seed: int, pool: Sequence[str], seconds: float = 5.0
) -> tuple[dict[str, Counter[str]], dict[str, tuple[float, int]], dict[str, tuple[str, str]]]:
    """Outcomes, slowest examination (seconds of CPU time, characters) and first finding (error, text), by parser."""
    chance = random.Random(seed)
    outcomes: dict[str, Counter[str]] = {parser.name: Counter() for parser in parsers}
    slowest = {parser.name: (0.0, 0) for parser in parsers}
    findings: dict[str, tuple[str, str]] = {}
    begun = time.monotonic()
    for number in range(count):
        text = mutate(chance.choice(pool), chance, pool)
        for parser in parsers:
            start = time.process_time()  # the machine may be doing other things
            try:
                with guard(seconds), uncollected():
                    outcome = examine(parser, text)
            except (Exception, Hang) as error:
                outcome = "error"
                findings.setdefault(parser.name, (f"{type(error).__name__}: {error}", text))
            taken = time.process_time() - start
            outcomes[parser.name][outcome] += 1
            if taken > slowest[parser.name][0]:
                slowest[parser.name] = (taken, len(text))
        if number % 1000 == 999 and sys.stderr.isatty():
            rate = (number + 1) / (time.monotonic() - begun)
            sys.stderr.write(f"\r{number + 1:,} of {count:,}, {(count - number) / rate:,.0f} s to go   ")
    if sys.stderr.isatty():
        sys.stderr.write("\r" + " " * 60 + "\r")
    return outcomes, slowest, findings


def main() -> int:
    arguments = argparse.ArgumentParser(description="Throw mutated completions at every registered parser.")
    arguments.add_argument("--count", type=int, default=100_000, help="completions; each goes to every parser")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument(
        "--data", type=Path, help="folder with the official reference_scores.jsonl.gz, for more seeds"
    )
    arguments.add_argument("--seconds", type=float, default=5.0, help="what counts as a hang")
    options = arguments.parse_args()
    registry = load_plugins()
    parsers = [registry.create("parser", name) for name in registry.names("parser")]
    pool = seeds(parsers, options.data)
    outcomes, slowest, findings = fuzz(parsers, options.count, options.seed, pool, options.seconds)
    columns = (*OUTCOMES, "error")
    print(f"{options.count:,} mutations (seed {options.seed}) of {len(pool):,} completions, each given to every parser")
    print("parser    " + "".join(f"{name:>12}" for name in columns) + "   slowest")
    for parser in parsers:
        counts = "".join(f"{outcomes[parser.name][name]:>12,}" for name in columns)
        seconds, length = slowest[parser.name]
        print(f"{parser.name:<10}{counts}   {seconds * 1e3:.1f} ms ({length:,} characters)")
    for name, (error, text) in findings.items():
        print(f"\n{name}: {error}\n  {text!r}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
