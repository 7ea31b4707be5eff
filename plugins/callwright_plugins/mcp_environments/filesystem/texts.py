"""Content of generated files: notes, reports, tables, logs, configuration and code."""

from __future__ import annotations

import json
from random import Random
from typing import Final

from callwright.environments.stateful import NOW
from callwright_plugins.mcp_environments.people import CITIES, company, full_name
from callwright_plugins.mcp_environments.times import DAY, iso, iso_date

WORDS: Final = tuple(
    "amber anchor basin beacon birch cedar cobalt copper coral delta ember fern flint garnet harbor heron indigo "
    "juniper kelp lantern lichen maple marble meadow mica nectar oak onyx opal orchid pebble pine quartz reed river "
    "saffron sage slate spruce thistle timber topaz tulip umber violet willow".split()
)
SERVICES: Final = ("web", "mail", "queue", "search", "cache", "billing", "auth", "sync")
TABLES: Final = ("customers", "orders", "inventory", "expenses", "shipments")
_LEVELS: Final = ("INFO", "INFO", "INFO", "INFO", "WARN", "ERROR")
_EVENTS: Final = (
    "request served in {n} ms",
    "connection to {city} timed out after {n} s",
    "worker {n} started",
    "cache miss for key {word}-{n}",
    "disk usage at {p} %",
    "user {word} logged in",
    "retry {p} of job {n} failed",
)


def _sentence(rng: Random) -> str:
    return (
        f"{full_name(rng)} of {company(rng)} asked for the {rng.choice(WORDS)} figures of {rng.choice(CITIES)} by "
        f"{iso_date(NOW + rng.randrange(-90, 60) * DAY)}."
    )


def note(rng: Random) -> str:
    """A few sentences, some with a TODO."""
    lines = [_sentence(rng) for _ in range(rng.randrange(2, 6))]
    if rng.random() < 0.4:
        lines.insert(
            rng.randrange(len(lines)), f"TODO: call {full_name(rng)} about invoice {rng.randrange(1000, 9999)}"
        )
    return "\n".join(lines) + "\n"


def todo(rng: Random) -> str:
    """A list with done and open items."""
    return "".join(
        f"[{rng.choice('x ')}] {rng.choice(('review', 'send', 'archive', 'check'))} {rng.choice(WORDS)} "
        f"for {company(rng)}\n"
        for _ in range(rng.randrange(5, 12))
    )


def report(rng: Random) -> str:
    """Markdown with headings and a list of figures."""
    parts = [f"# {company(rng)}: {rng.choice(WORDS)}\n", _sentence(rng) + "\n", "## Figures\n"]
    parts += [f"- {rng.choice(CITIES)}: {rng.randrange(10, 5000)} units\n" for _ in range(rng.randrange(3, 9))]
    return "\n".join(parts[:3]) + "\n" + "".join(parts[3:])


def table(rng: Random, name: str) -> str:
    """CSV with a header."""
    rows = ["id,name,city,amount_cents,day"]
    rows += [
        f"{name[:3].upper()}{number:04d},{full_name(rng)},{rng.choice(CITIES)},{rng.randrange(100, 99999)},"
        f"{iso_date(NOW - rng.randrange(400) * DAY)}"
        for number in range(rng.randrange(8, 30))
    ]
    return "\n".join(rows) + "\n"


def log(rng: Random, count: int) -> str:
    """Lines with a time, a level and an event."""
    at = NOW - rng.randrange(1, 30) * DAY
    lines = []
    for _ in range(count):
        at += rng.randrange(1, 600)
        event = rng.choice(_EVENTS).format(
            n=rng.randrange(1, 900), p=rng.randrange(1, 100), word=rng.choice(WORDS), city=rng.choice(CITIES)
        )
        lines.append(f"{iso(at)} {rng.choice(_LEVELS)} {event}\n")
    return "".join(lines)


def settings(rng: Random) -> str:
    """JSON."""
    value = {
        "name": rng.choice(WORDS),
        "port": rng.randrange(1024, 65000),
        "debug": rng.random() < 0.3,
        "retries": rng.randrange(10),
        "hosts": [f"{rng.choice(WORDS)}.example.com" for _ in range(rng.randrange(1, 4))],
    }
    return json.dumps(value, indent=2) + "\n"


def config(rng: Random, service: str) -> str:
    """Lines of ``key = value``."""
    return (
        f"# {service}\nport = {rng.randrange(1024, 65000)}\nworkers = {rng.randrange(1, 17)}\n"
        f"timeout_s = {rng.choice((5, 10, 30, 60))}\nlog_level = {rng.choice(('debug', 'info', 'warning'))}\n"
    )


def script(rng: Random) -> str:
    """A shell script."""
    return f"#!/bin/sh\nset -e\necho building {rng.choice(WORDS)}\nmake -j{rng.randrange(1, 9)} all\n"


def module(rng: Random) -> str:
    """A small Python module."""
    name, other = rng.sample(WORDS, 2)
    lines = [f'"""{name.capitalize()} for {company(rng)}."""', "", f"LIMIT = {rng.randrange(10, 500)}", ""]
    for function in (name, other):
        lines += ["", f"def {function}(values):", f"    # TODO: {rng.choice(('document', 'test', 'speed up'))} this"]
        lines += [f"    return [value * {rng.randrange(2, 9)} for value in values if value < LIMIT]", ""]
    return "\n".join(lines)


def project(rng: Random, number: int) -> str:
    """A name that no two numbers share."""
    return f"{rng.choice(WORDS)}-{rng.choice(WORDS)}-{number:02d}"
