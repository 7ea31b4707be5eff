"""Near-duplicates: whether the decisions are those of comparing all pairs, and how the time grows.

    python benchmarks/near_duplicates.py [--largest 1000000] [--brute 10000]

Sequences of one to five calls are drawn from servers of ten tools with two to five parameters each; values are drawn so
that a few are common and most are rare. A third of the sequences are an earlier one with one value changed, one call
left out, or nothing changed. The last rows are texts of such sequences, compared by shingles of three words.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from random import Random

import click

from callwright.language.program import Call
from callwright_plugins.synthesis.duplicates.elements import elements, shingles
from callwright_plugins.synthesis.duplicates.jaccard import THRESHOLD, jaccard, near_duplicates

SERVERS = 20
TOOLS = 10


def sequences(count: int, seed: int = 0) -> Iterator[tuple[Call, ...]]:
    """Call sequences, some of them near an earlier one."""
    random = Random(seed)
    keys = {
        (server, tool): [f"key{random.randrange(12)}_{place}" for place in range(random.randint(2, 5))]
        for server in range(SERVERS)
        for tool in range(TOOLS)
    }
    made: list[tuple[Call, ...]] = []
    for _ in range(count):
        if made and random.random() < 1 / 3:
            one = _near(random.choice(made[-5000:]), random)
        else:
            server = random.randrange(SERVERS)
            one = tuple(_call(place, server, keys, random) for place in range(random.randint(1, 5)))
        made.append(one)
        yield one


def _call(place: int, server: int, keys: dict[tuple[int, int], list[str]], random: Random) -> Call:
    tool = random.randrange(TOOLS)
    return Call(place, f"s{server}_t{tool}", {key: _value(random) for key in keys[server, tool]})


def _value(random: Random) -> str:
    return f"v{int(random.paretovariate(0.5)) % 20_000}"


def _near(one: tuple[Call, ...], random: Random) -> tuple[Call, ...]:
    kind = random.randrange(3)
    place = random.randrange(len(one))
    if kind == 0:
        return one
    if kind == 1 and len(one) > 1:
        return (*one[:place], *one[place + 1 :])
    call = one[place]
    key = random.choice(list(call.arguments))
    changed = Call(call.id, call.tool, {**call.arguments, key: _value(random)})
    return (*one[:place], changed, *one[place + 1 :])


def brute(sets: list[frozenset[str]], threshold: float = THRESHOLD) -> dict[int, int]:
    """The same decisions by comparing every set with every earlier one that stays."""
    kept: list[int] = []
    dropped: dict[int, int] = {}
    hundredths = round(threshold * 100)
    for index, one in enumerate(sets):
        for other in kept:
            common = len(one & sets[other])
            if common and 100 * common >= hundredths * (len(one) + len(sets[other]) - common):
                dropped[index] = other
                break
        else:
            kept.append(index)
    return dropped


@click.command()
@click.option("--largest", default=1_000_000, show_default=True)
@click.option("--brute", "pairs", default=10_000, show_default=True, help="How many are compared in all pairs.")
def main(largest: int, pairs: int) -> None:
    """Print a row for each number of sequences."""
    few = [elements(one) for one in sequences(pairs)]
    found = near_duplicates(few)
    began = time.process_time()
    same = brute(few) == found
    click.echo(
        f"{pairs:,} in all pairs: {'the same' if same else 'OTHER'} decisions, {time.process_time() - began:.1f} s"
    )
    assert all(jaccard(few[one], few[other]) >= THRESHOLD for one, other in found.items())
    click.echo(f"{'what':10} {'sets':>10} {'elements':>9} {'dropped':>9} {'seconds':>8} {'us each':>8} {'peak MiB':>9}")
    for count in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        if count <= largest:
            _row("calls", [elements(one) for one in sequences(count)])
    _row("texts", [shingles(_words(one)) for one in sequences(min(largest, 100_000))])
    raise SystemExit(0 if same else 1)


def _words(calls: tuple[Call, ...]) -> str:
    return " ".join(f"{call.tool} {key} {value}" for call in calls for key, value in call.arguments.items())


def _row(what: str, sets: list[frozenset[str]]) -> None:
    began = time.process_time()
    dropped = near_duplicates(sets)
    took = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    mean = sum(map(len, sets)) / len(sets)
    each = took / len(sets) * 1e6
    click.echo(f"{what:10} {len(sets):>10,} {mean:>9.1f} {len(dropped):>9,} {took:>8.2f} {each:>8.1f} {peak:>9.0f}")


if __name__ == "__main__":
    main()
