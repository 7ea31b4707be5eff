"""One example in four libraries, its lines counted: python benchmarks/lines_of_code.py [--verifiers PY] [--art PY]

The example is a small shop: two tools over a state that each rollout has for itself, a call that fails, a reward of
half for the right end (the order was made and nothing else has changed) and half for no failed call, three tasks, and
the call that trains. `benchmarks/lines_of_code/` holds it for Callwright, TRL, verifiers and ART, each as the library's
own documentation writes such a thing. Counted are lines that hold code or a docstring, which is what a model reads of a
tool.

That they are one example is tried: four conversations are led in each library that is there, and all rewards must be
equal. TRL is looked for beside Callwright; verifiers and ART want environments of their own, whose Python is named. The
exit status is 1 where rewards differ. Nothing is trained.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tokenize
from pathlib import Path

FOLDER = Path(__file__).parent / "lines_of_code"
SECTIONS = ("tools", "reward", "data", "training")
#: What a model does in the first task, "Order 2 of pear.", and what that earns.
CONVERSATIONS = (
    ([["stock", {"item": "pear"}], ["order", {"item": "pear", "count": 2}]], 1.0),
    ([["order", {"item": "pear", "count": 5}], ["order", {"item": "pear", "count": 2}]], 0.5),
    ([["order", {"item": "pear", "count": 1}]], 0.0),
    ([], 0.0),
)
DRIVERS = {
    "callwright": """
import callwright as cw
import callwright_shop as shop

def reward(calls):
    with cw.Log(shop.tasks[0]) as log:
        for name, arguments in calls:
            log.call(name, arguments)
    return shop.reward.score_attempt(log.episode()).total
""",
    "trl": """
import trl_shop as shop

def reward(calls):
    environment = shop.Shop()
    environment.reset(**shop.rows[0])
    for name, arguments in calls:
        try:
            getattr(environment, name)(**arguments)
        except Exception:  # which the trainer tells the model
            pass
    return environment.get_reward()
""",
    "verifiers": """
import asyncio
import verifiers.v1 as vf
import verifiers_shop as shop

def reward(calls):
    return asyncio.run(led(calls))

async def led(calls):
    task = list(shop.ShopTasks(shop.ShopTasksConfig()))[0]
    tools = shop.ShopTools(vf.ToolsetConfig())
    await tools.setup_task(task)
    for name, arguments in calls:
        getattr(tools, name)(**arguments)
    said = vf.TraceTask(type="ShopTask", data=task.data)
    trace = vf.Trace(task=said, agent=vf.AgentInfo(config=vf.AgentConfig()), state=tools.state)
    await task.score(trace)
    return trace.reward
""",
    "art": """
import asyncio
import json
from types import SimpleNamespace
from openai.types.chat import ChatCompletion
import art_shop as shop

def reward(calls):
    turns = iter([*calls, None])

    async def create(**asked):
        call = next(turns)
        message = {"role": "assistant", "content": None if call else "done"}
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
        choice = {"index": 0, "finish_reason": "tool_calls" if call else "stop", "message": message}
        row = {"id": "a", "created": 0, "model": "m", "object": "chat.completion", "choices": [choice]}
        return ChatCompletion.model_validate(row)

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    model = SimpleNamespace(openai_client=lambda: client, get_inference_name=lambda: "m")
    return asyncio.run(shop.rollout(model, *shop.WANTED[0])).reward
""",
}


def counted(path: Path) -> dict[str, int]:
    """Lines of each section that hold code or a docstring. A comment that is a section's name begins it."""
    held: set[int] = set()
    begins: dict[int, str] = {}
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            word = token.string.removeprefix("#").strip()
            if token.type == tokenize.COMMENT and word in SECTIONS:
                begins[token.start[0]] = word
            elif token.type not in _EMPTY:
                held.update(range(token.start[0], token.end[0] + 1))
    lines = path.read_text("utf-8").splitlines()
    held = {line for line in held if lines[line - 1].strip()}
    found = dict.fromkeys(SECTIONS, 0)
    for line in sorted(held):
        found[begins[max(start for start in begins if start <= line)]] += 1
    return found


_EMPTY = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def rewards(library: str, python: str) -> list[float] | None:
    """The reward of each conversation in a library; ``None`` where it is not installed."""
    calls = json.dumps([calls for calls, _ in CONVERSATIONS])
    code = f"{DRIVERS[library]}\nprint(__import__('json').dumps([reward(c) for c in {calls}]))"
    path = f"import sys\nsys.path.insert(0, {str(FOLDER)!r})\n"
    ran = subprocess.run([python, "-W", "ignore", "-c", path + code], capture_output=True, text=True)
    if ran.returncode and "ModuleNotFoundError" in ran.stderr:
        return None
    if ran.returncode:
        raise SystemExit(f"{library}: {ran.stderr}")
    found: list[float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print the table, and whether the four are one example."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--verifiers", default=sys.executable, help="a Python that has verifiers 0.4")
    options.add_argument("--art", default=sys.executable, help="a Python that has openpipe-art 0.5")
    given = options.parse_args()
    pythons = {"callwright": sys.executable, "trl": sys.executable, "verifiers": given.verifiers, "art": given.art}
    print(f"| | {' | '.join(SECTIONS)} | all | rewards |")
    print(f"|---|{'--:|' * (len(SECTIONS) + 1)}---|")
    expected, differ = [earned for _, earned in CONVERSATIONS], False
    for library, python in pythons.items():
        lines = counted(FOLDER / f"{library}_shop.py")
        found = rewards(library, python)
        differ = differ or found not in (None, expected)
        said = "not installed here" if found is None else ", ".join(f"{one:g}" for one in found)
        print(f"| {library} | {' | '.join(map(str, lines.values()))} | {sum(lines.values())} | {said} |")
    if differ:
        raise SystemExit("the rewards differ, so this is not one example")


if __name__ == "__main__":
    main()
