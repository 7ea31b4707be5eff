"""A plugin whose tools print, end their process or hang: a corpus for the commands."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

import callwright as cw
from callwright.language.program import Call, Program


@cw.tool
def loud() -> int:
    """Print, and return one."""
    print("noise of a tool")
    os.write(1, b"noise of a library\n")
    return 1


@cw.tool
def lethal() -> int:
    """End the process."""
    os._exit(9)


@cw.tool
def endless() -> int:
    """Hang."""
    time.sleep(300)
    return 1


@cw.tool
def closing() -> int:
    """Close files that belong to everybody."""
    os.close(2)
    os.closerange(3, 1024)
    return 1


WILD = cw.environment("wild-tools", tools=[loud, lethal, endless, closing])


class Wild:
    """A task for each tool; one is the right answer."""

    name = "wild"

    def __init__(self) -> None:
        self.environment = WILD
        self.tasks = {
            tool: cw.Task(
                tool, "?", WILD.tools, cw.Answer((1,)), WILD, program=Program((Call(0, tool, {}),)), split="train"
            )
            for tool in WILD.tools
        }
        self.splits = {"train": len(self.tasks), "loud": 1}

    def __getitem__(self, split: str) -> Sequence[cw.Task]:
        return [self.tasks["loud"]] if split == "loud" else list(self.tasks.values())

    def task(self, task_id: str) -> cw.Task:
        return self.tasks[task_id]


@cw.hookimpl
def callwright_corpora() -> Iterable[cw.Lazy]:
    """The corpus."""
    yield cw.Lazy("wild-v1", Wild, "tools that must not be trusted")
