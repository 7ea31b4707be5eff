"""A small wheel in the place of the pinned one, with classes of our own, and entries over them.

Its classes do what BFCL's do in ways that matter: they keep a state in public and private attributes, in objects that
compare by value, return errors as results, raise, and draw from a seeded generator.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from callwright_plugins.bfcl.multi_turn import package

TICKETS = """
import os
import time


class Ticket:
    def __init__(self, title, priority):
        self.title, self.priority = title, priority

    def __eq__(self, other):
        return isinstance(other, Ticket) and (self.title, self.priority) == (other.title, other.priority)


class TicketAPI:
    def __init__(self):
        self.tickets = {}
        self._asked = 0

    def _load_scenario(self, scenario, long_context=False):
        for title in scenario.get("titles", []):
            self.tickets[len(self.tickets)] = Ticket(title, 1)
        if long_context:
            self.tickets[1000] = Ticket("filler", 9)

    def create_ticket(self, title, priority=1):
        if priority > 5:
            return {"error": "no such priority"}
        number = len(self.tickets)
        self.tickets[number] = Ticket(title, priority)
        return {"id": number, "title": title}

    def close_ticket(self, ticket_id):
        del self.tickets[ticket_id]
        return {"status": "closed"}

    def list_tickets(self):
        self._asked += 1
        return {"titles": [ticket.title for ticket in self.tickets.values()]}

    def die(self):
        os._exit(3)

    def hang(self):
        time.sleep(3600)
"""
MATHS = """
class MathAPI:
    def add(self, a, b):
        return {"result": a + b}

    def divide(self, a, b):
        return {"result": a / b}

    def show(self, *given, **named):
        return repr((given, named))
"""
MESSAGES = """
import random


class MessageAPI:
    def _load_scenario(self, scenario, long_context=False):
        self.sent = list(scenario.get("sent", []))
        self._random = random.Random(scenario.get("random_seed", 7))

    def send(self, text):
        self.sent.append(text)
        return {"id": self._random.randint(1, 9999)}
"""
OTHER = "class {name}:\n    def _load_scenario(self, scenario, long_context=False):\n        self.state = scenario\n"
FILES = {
    "ticket_api": TICKETS,
    "math_api": MATHS,
    "message_api": MESSAGES,
    "gorilla_file_system": OTHER.format(name="GorillaFileSystem"),
    "long_context": "",
    "posting_api": OTHER.format(name="TwitterAPI"),
    "trading_bot": OTHER.format(name="TradingBot"),
    "travel_booking": OTHER.format(name="TravelAPI"),
    "vehicle_control": OTHER.format(name="VehicleControlAPI"),
}


def function(name: str, *required: str, **properties: str) -> dict[str, Any]:
    schemas = {key: {"type": kind, "description": key} for key, kind in properties.items()}
    parameters = {"type": "dict", "properties": schemas, "required": list(required)}
    return {"name": name, "description": f"{name} it.", "parameters": parameters}


DOCUMENTS = {
    "ticket_api": [
        function("create_ticket", "title", title="string", priority="integer"),
        function("close_ticket", "ticket_id", ticket_id="integer"),
        function("list_tickets"),
    ],
    "math_api": [function("add", "a", "b", a="float", b="float"), function("divide", "a", "b", a="float", b="float")],
    "message_api": [function("send", "text", text="string")],
}
#: (category, number, messages, what appears, gold calls)
ENTRIES: list[tuple[str, int, list[str], dict[str, list[str]], list[list[str]]]] = [
    (
        "multi_turn_base",
        0,
        ["A ticket for the printer.", "Which are there?"],
        {},
        [["create_ticket(title='Printer (hall)', priority=2)"], ["list_tickets()", "add(a=1, b=2)"]],
    ),
    ("multi_turn_base", 1, ["Say hello."], {}, [["send(text='hello')"]]),
    (
        "multi_turn_miss_func",
        0,
        ["A ticket for the lamp.", "Close the first.", "", "List them."],
        {"2": ["close_ticket"]},
        [["create_ticket(title='Lamp')"], [], ["close_ticket(0)"], ["list_tickets()"]],
    ),
    ("multi_turn_miss_param", 0, ["A ticket.", "For the door."], {}, [[], ["create_ticket(title='Door')"]]),
    ("multi_turn_long_context", 0, ["Which are there?"], {}, [["list_tickets()"]]),
]


def write_wheel(folder: Path) -> Path:
    """The stand-in, unpacked in ``folder``."""
    for name, text in FILES.items():
        file = folder / package.FOLDER / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def pinned() -> dict[str, tuple[str, str]]:
    """The stand-in as the release of both versions."""
    text = "".join(FILES[name.rpartition("/")[2].removesuffix(".py")] for name in package._FILES)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return dict.fromkeys(("v3", "v4"), ("0.0.0", digest))


def write_data(folder: Path, version: str = "v3") -> Path:
    """The entries as files of BFCL."""
    (folder / "possible_answer").mkdir(parents=True)
    (folder / "multi_turn_func_doc").mkdir()
    for category in {category for category, *_ in ENTRIES}:
        questions, answers = [], []
        for of, number, messages, missed, gold in ENTRIES:
            if of != category:
                continue
            said = [[{"role": "user", "content": text}] if text else [] for text in messages]
            row: dict[str, Any] = {
                "id": f"{category}_{number}",
                "question": said,
                "initial_config": {"TicketAPI": {"titles": ["Roof", "Wall"]}, "MessageAPI": {"sent": []}},
                "involved_classes": ["TicketAPI", "MathAPI", "MessageAPI"],
                "path": [],
            }
            questions.append({**row, "missed_function": missed} if missed else row)
            answers.append({"id": row["id"], "ground_truth": gold})
        for place, rows in ((folder, questions), (folder / "possible_answer", answers)):
            lines = "".join(json.dumps(one) + "\n" for one in rows)
            (place / f"BFCL_{version}_{category}.json").write_text(lines)
    for name in FILES:
        rows = DOCUMENTS.get(name, [])
        (folder / "multi_turn_func_doc" / f"{name}.json").write_text("".join(json.dumps(one) + "\n" for one in rows))
    return folder
