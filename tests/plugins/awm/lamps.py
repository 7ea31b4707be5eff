"""A world of lamps that we wrote in AWM's format: no world of theirs is in this repository."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

CODE: Final = '''
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Column, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker

engine = create_engine("sqlite:///./lamps.db", echo=False)
SessionLocal = sessionmaker(bind=engine)
Base = declarative_base()
app = FastAPI(title="Lamps")


class Lamp(Base):
    __tablename__ = "lamps"
    id = Column(Integer, primary_key=True)
    room = Column(String)
    level = Column(Integer)


class Level(BaseModel):
    level: int


@app.get("/lamps", operation_id="list_lamps", summary="The lamps, of one room or of all")
def list_lamps(room: str | None = None):
    with SessionLocal() as db:
        found = db.query(Lamp).order_by(Lamp.id)
        return [{"id": one.id, "room": one.room, "level": one.level} for one in found if room in (None, one.room)]


@app.put("/lamps/{lamp_id}", operation_id="set_level")
def set_level(lamp_id: int, given: Level):
    """Set how bright a lamp is."""
    with SessionLocal() as db:
        lamp = db.get(Lamp, lamp_id)
        if lamp is None:
            raise HTTPException(status_code=404, detail="Lamp not found")
        lamp.level = given.level
        db.commit()
        if given.level > 100:
            raise HTTPException(status_code=400, detail="Too bright")
        return {"id": lamp.id, "level": lamp.level}


if __name__ == "__main__":
    import uvicorn
    uvicorn.run(app, host="127.0.0.1", port=8001)
'''
SCHEMA: Final = {
    "tables": [
        {
            "name": "lamps",
            "ddl": "CREATE TABLE lamps (id INTEGER PRIMARY KEY, room TEXT, level INTEGER)",
            "indexes": ["CREATE INDEX rooms ON lamps (room)"],
        },
        {"name": "bad", "ddl": "CREATE TABEL bad (id)"},
    ]
}
SAMPLE: Final = {
    "tables": [
        {
            "table_name": "lamps",
            "insert_statements": [
                "INSERT INTO lamps VALUES (1, 'hall', 0)",
                "INSERT INTO lamps VALUES (1, 'again', 0)",
                "INSERT INTO lamps VALUES (2, 'attic', 5)",
            ],
        }
    ]
}
TASKS: Final = ("Set the attic's lamp to 7.", "How bright is the hall's lamp?", "Water the plants.", "Break the check.")
VERIFIERS: Final = {
    0: """
def verify_level(initial_db_path, final_db_path, final_answer=None):
    def level(path):
        with sqlite3.connect(path) as base:
            return base.execute("SELECT level FROM lamps WHERE room = 'attic'").fetchone()[0]
    done = level(initial_db_path) == 5 and level(final_db_path) == 7
    return {"result": "complete" if done else "others"}
""",
    1: """
def count(path):
    return sqlite3.connect(path).execute("SELECT level FROM lamps WHERE room = 'hall'").fetchone()[0]

def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    if re.search(rf"\\b{count(final_db_path)}\\b", final_answer):
        return {"result": "complete"}
    return {"result": "others"}
""",
    3: "def verify_nothing(initial_db_path, final_db_path):\n    raise KeyError('no such row')\n",
}


def write(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """A file of rows."""
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def write_world(folder: Path, scenarios: Iterable[str] = ("Smart Lamps",)) -> None:
    """The same world under some names, with its tasks and their verifiers."""
    names = list(scenarios)
    for file, key, value in (
        ("gen_envs", "full_code", CODE),
        ("gen_db", "db_schema", SCHEMA),
        ("gen_sample", "sample_data", SAMPLE),
        ("gen_tasks", "tasks", TASKS),
    ):
        write(folder, file, ({"scenario": name, key: value} for name in names))
    write(
        folder,
        "gen_verifier.pure_code",
        (
            {"scenario": name, "task_idx": at, "task": TASKS[at], "verification": {"code": VERIFIERS.get(at)}}
            for name in names
            for at in reversed(range(len(TASKS)))
        ),
    )
