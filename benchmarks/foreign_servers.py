"""Others' MCP servers: whether each gives as many tasks as are wanted, over its tools, in chains, and none by one tool.

    python benchmarks/foreign_servers.py --installed FOLDER [--server sqlite] [-o OUT] [--count 200]

FOLDER has ``npm install @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory`` and, in a virtual
environment ``py``, ``mcp-server-sqlite`` with ``mcp<2``; what is missing is installed there. For each server it fills a
folder that sessions begin with (files, a graph, a database), runs ``callwright synthesize mcp`` as a user would, then
``callwright synthesize check`` in a process of its own, and prints a row: the tasks, how many of them pass every gate
again, the tools that are called of those that the server lists, the tasks whose longest chain of calls that need one
another has three or more, and the largest share of all calls that one tool makes. The exit status is 1 where one of
the four conditions does not hold.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import venv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

PACKAGES = ("@modelcontextprotocol/server-filesystem", "@modelcontextprotocol/server-memory")
PYTHON_PACKAGES = ("mcp-server-sqlite", "mcp<2")
#: What is wanted of each server: tasks, the share of its tools, tasks with a chain of three, the share of one tool.
TASKS, TOOLS, CHAINS, MOST = 200, 0.8, 60, 0.3
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

FILES = {
    "garden/plants.txt": "tomato: three rows\nbasil: one pot\nbeans: along the fence\n",
    "garden/tools.txt": "spade\nrake\nwatering can\n",
    "garden/calendar/spring.txt": "March: sow tomatoes\nApril: repair the greenhouse\n",
    "garden/calendar/autumn.txt": "September: harvest beans\nOctober: cover the beds\n",
    "house/repairs.txt": "roof: two tiles are loose\nboiler: serviced in May\n",
    "house/bills/water.txt": "meter: 4711\namount: 38.20\n",
    "house/bills/power.txt": "meter: 1180\namount: 61.75\n",
    "house/keys.txt": "cellar: on the hook\nshed: with the neighbour\n",
    "letters/landlord.txt": "Dear Ms Okafor,\nthe window in the hall does not close.\n",
    "letters/library.txt": "Dear library,\nplease keep the atlas for me.\n",
    "recipes/soup.md": "# Soup\n\n- leek\n- potato\n- cream\n",
    "recipes/bread.md": "# Bread\n\n- flour\n- salt\n- yeast\n",
    "pictures/pixel.png": PIXEL,
    "todo.txt": "call the plumber\norder seeds\nreturn the atlas\n",
}
ENTITIES = {
    "Amara Okafor": ("person", ["owns the house in Mill Lane", "prefers letters to calls"]),
    "Jonas Lind": ("person", ["plays the cello", "is allergic to nuts"]),
    "Priya Nair": ("person", ["leads the harbour survey", "speaks Tamil"]),
    "Tomas Rey": ("person", ["repairs bicycles", "lives above the bakery"]),
    "Harbour Survey": ("project", ["started in March", "needs a second boat"]),
    "Garden Club": ("club", ["meets on Tuesdays", "has forty members"]),
    "String Quartet": ("club", ["rehearses in the chapel", "looks for a viola"]),
    "Mill Lane 4": ("place", ["has a slate roof", "was built in 1912"]),
    "Old Chapel": ("place", ["holds eighty people", "is heated on Sundays"]),
    "North Quay": ("place", ["is closed at night", "has two cranes"]),
}
RELATIONS = (
    ("Amara Okafor", "owns", "Mill Lane 4"),
    ("Jonas Lind", "plays in", "String Quartet"),
    ("Priya Nair", "leads", "Harbour Survey"),
    ("Tomas Rey", "belongs to", "Garden Club"),
    ("String Quartet", "rehearses in", "Old Chapel"),
    ("Harbour Survey", "works at", "North Quay"),
)
TABLES = {
    "plants": [("tomato", 12), ("basil", 3), ("beans", 40), ("leek", 25)],
    "books": [("atlas", 1), ("cookbook", 4), ("novel", 17)],
    "guests": [("Amara", 2), ("Jonas", 4), ("Priya", 1), ("Tomas", 3)],
}


def start_of(server: str, folder: Path) -> None:
    """Fill the folder that every session of a server begins with."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    match server:
        case "filesystem":
            for name, text in FILES.items():
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(base64.b64decode(text) if name.endswith(".png") else text.encode())
        case "memory":
            rows: list[dict[str, Any]] = [
                {"type": "entity", "name": name, "entityType": kind, "observations": told}
                for name, (kind, told) in ENTITIES.items()
            ]
            rows += [
                {"type": "relation", "from": one, "to": other, "relationType": how} for one, how, other in RELATIONS
            ]
            (folder / "memory.json").write_text("\n".join(json.dumps(row) for row in rows))
        case "sqlite":
            with sqlite3.connect(folder / "data.db") as base:
                for name, things in TABLES.items():
                    base.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, name TEXT, amount INTEGER)")
                    base.executemany(f"INSERT INTO {name} (name, amount) VALUES (?, ?)", things)
            base.close()


def words_of(server: str, installed: Path, start: Path) -> list[str]:
    """What a user types after ``callwright synthesize mcp -o DIR --count N``."""
    common = ["--option", f"workspace_template={start}", "--option", "reset=workspace"]
    binaries = installed / "node_modules" / ".bin"
    match server:
        case "filesystem":
            told = ["--option", "suggestions=filesystem", "--option", 'hide=["get_file_info"]']
            return [*common, *told, "--", str(binaries / "mcp-server-filesystem"), "{workspace}"]
        case "memory":
            told = ["--option", "suggestions=memory", "-e", "MEMORY_FILE_PATH={workspace}/memory.json"]
            return [*common, *told, "--", str(binaries / "mcp-server-memory")]
    told = ["--option", "suggestions=sqlite", "--option", 'errors=["^Database error"]']
    told += ["--option", 'read_only=["list_tables","describe_table","read_query"]']
    command = [str(installed / "py" / "bin" / "mcp-server-sqlite"), "--db-path", "{workspace}/data.db"]
    return [*common, *told, "--", *command]


#: How many tools each server lists.
LISTED = {"filesystem": 14, "memory": 9, "sqlite": 6}


def install(folder: Path) -> None:
    """Install what is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    if not all((folder / "node_modules" / name).is_dir() for name in PACKAGES):
        words = ["npm", "install", "--no-fund", "--no-audit", "--prefix", str(folder), *PACKAGES]
        subprocess.run(words, cwd=folder, check=True)
    if not (folder / "py" / "bin" / "mcp-server-sqlite").exists():
        venv.create(folder / "py", with_pip=True)
        words = [str(folder / "py" / "bin" / "python"), "-m", "pip", "install", "--quiet", *PYTHON_PACKAGES]
        subprocess.run(words, check=True)


def calls_of(row: dict[str, Any]) -> Iterator[str]:
    """The tools that the reference of a task calls."""
    for turn in row["facts"].get("gold", ()):
        for call in turn.get("calls", ()):
            yield call["tool"]


def measure(server: str, installed: Path, output: Path, count: int, seed: int) -> dict[str, Any]:
    """Make the tasks of a server, check them, and measure."""
    callwright = [sys.executable, "-m", "callwright"]
    start = output / f"start-{server}"
    start_of(server, start)
    made = output / server
    began = time.monotonic()
    words = ["synthesize", "mcp", "-o", str(made), "--count", str(count), "--seed", str(seed), "--no-probe"]
    with (output / f"{server}.log").open("w") as log:
        subprocess.run(
            [*callwright, *words, *words_of(server, installed, start)], stdout=log, stderr=subprocess.STDOUT, check=True
        )
        took = time.monotonic() - began
        check = [*callwright, "synthesize", "check", str(made / "tasks" / "tasks.jsonl"), "--trust"]
        found = subprocess.run(check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        log.write(found.stdout)
    checked = re.search(r"([\d,]+) of ([\d,]+)", found.stdout)
    rows = [json.loads(line) for line in (made / "tasks" / "tasks.jsonl").read_text().splitlines()]
    rows = [row for row in rows if "query" in row]
    called = Counter(tool for row in rows for tool in calls_of(row))
    total = max(1, sum(called.values()))
    most = called.most_common(1)[0] if called else ("", 0)
    return {
        "server": server,
        "tasks": len(rows),
        "pass": int(checked[1].replace(",", "")) if checked else 0,
        "tools": len(called),
        "listed": LISTED[server],
        "chains": sum(row.get("chain", 0) >= 3 for row in rows),
        "most": most[1] / total,
        "tool": most[0],
        "calls": total,
        "seconds": took,
        "by tool": dict(called),
    }


def holds(row: dict[str, Any], count: int) -> bool:
    """Whether the four conditions hold."""
    chains = CHAINS * count / TASKS
    enough = min(row["tasks"], row["pass"]) >= count and row["chains"] >= chains
    return enough and row["tools"] >= TOOLS * row["listed"] and row["most"] <= MOST


@click.command()
@click.option("--installed", type=click.Path(path_type=Path), required=True, metavar="FOLDER")
@click.option("--server", "servers", multiple=True, type=click.Choice(list(LISTED)), help="Repeatable. Default: all.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("foreign"), show_default=True)
@click.option("--count", default=TASKS, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(installed: Path, servers: tuple[str, ...], output: Path, count: int, seed: int) -> None:
    """Print a row for each server."""
    install(installed.absolute())
    output.mkdir(parents=True, exist_ok=True)
    click.echo("| server | tasks | pass every gate | tools | chains of three | most calls by one tool | seconds |")
    click.echo("|---|--:|--:|---|--:|---|--:|")
    good = True
    for server in servers or tuple(LISTED):
        row = measure(server, installed.absolute(), output.absolute(), count, seed)
        good &= holds(row, count)
        click.echo(
            f"| `{server}` | {row['tasks']} | {row['pass']} | {row['tools']} of {row['listed']} | {row['chains']} | "
            f"{row['most']:.0%} (`{row['tool']}`) | {row['seconds']:.0f} |"
        )
        (output / f"{server}.json").write_text(json.dumps(row, indent=1))
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
