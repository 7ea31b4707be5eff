"""How ToolRL's released scorer reads completions and ground truths, and what it takes for well formed."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from attrs import field, frozen

from callwright.language.program import Program
from callwright_plugins.toolrl_rewards.truth import Truths, written

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_RESPONSE, _RESPONSE_END = "<response>", "</response>"
THINK, THINK_END = "<think>", "</think>"
_CALLS_JOINT, _CALLS_END = "</think>\n<tool_call>\n", "\n</tool_call>"
_RESPONSE_JOINT, _BOTH_JOINT = "</think>\n<response>", "\n</tool_call>\n<response>"


@frozen(eq=False)
class Truth:
    """A ground truth as the released scorer reads it. ``calls`` is ``None`` where it holds no ``<tool_call>``."""

    kind: Literal["calls", "response", "both", "thought"]
    calls: list[dict[str, Any]] | None = field(repr=False)
    body: str = field(default="", repr=False)
    lines: dict[str, dict[str, Any]] = field(factory=dict, repr=False)
    names: list[str] = field(factory=list, repr=False)
    #: 1 + |G| + the number of parameters, and 1 + |G| for the intermediate granularity.
    most: float = 1.0
    most_intermediate: float = 1.0


def read_truth(source: str | Program) -> Truth:
    """Read a ground truth. Raises ``ValueError`` where the released scorer would raise in the middle of training."""
    text = source if isinstance(source, str) else written(source)
    tool, response = OPEN in text, _RESPONSE in text
    if not tool:
        return Truth("response" if response else "thought", None)
    body = body_of(text)
    lines: dict[str, dict[str, Any]] = {}
    calls = []
    for number, line in enumerate(body.split("\n"), 1):
        try:
            call = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number} of its calls is not JSON ({error})") from error
        if type(call) is not dict or type(call.get("name")) is not str or type(call.get("parameters")) is not dict:
            raise ValueError(f"line {number} of its calls is not an object with a name and parameters")
        calls.append(call)
        lines[line] = call
    sizes = [len(call["parameters"]) for call in calls]
    names = [call["name"] for call in calls]
    return Truth(
        "both" if response else "calls", calls, body, lines, names, 1.0 + len(calls) + sum(sizes), 1.0 + len(calls)
    )


TRUTHS: Final = Truths(read_truth)


def answer_of(text: str) -> str:
    """The part of a completion that the released scorer sees: what its chat templates would leave of it, stripped."""
    if "<|" in text:
        text = text.split("<|start_header_id|>assistant<|end_header_id|>")[-1].split("<|eot_id|>")[0]
        text = text.split("<|im_start|>assistant")[-1].split("<|im_end|>")[0]
    return text.strip()


def body_of(text: str) -> str:
    """Between the first ``<tool_call>`` and the next tag of either kind, stripped."""
    start = text.find(OPEN) + len(OPEN)
    end = text.find(OPEN, start)
    close = text.find(CLOSE, start, end if end >= 0 else len(text))
    return text[start : close if close >= 0 else end if end >= 0 else len(text)].strip()


def well_formed(kind: str, text: str) -> bool:
    """Whether a stripped text has the blocks that a ground truth of this kind asks for, line breaks included.

    The released patterns are lazy matches over any characters, so the first joint of two blocks decides, and what
    stands inside of the blocks does not matter, except that every asked-for tag but those of the thought stands once.
    """
    if not text.startswith(THINK):
        return False
    if kind == "calls":
        joint = text.find(_CALLS_JOINT, 7)
        return (
            joint >= 0
            and text.endswith(_CALLS_END)
            and len(text) - len(_CALLS_END) >= joint + len(_CALLS_JOINT)
            and text.count(OPEN) == 1
            and text.count(CLOSE) == 1
        )
    if kind == "thought":
        return text.endswith(THINK_END) and len(text) >= 15
    if text.count(_RESPONSE) != 1 or text.count(_RESPONSE_END) != 1 or not text.endswith(_RESPONSE_END):
        return False
    last = len(text) - len(_RESPONSE_END)
    if kind == "response":
        joint = text.find(_RESPONSE_JOINT, 7)
        return 0 <= joint <= last - len(_RESPONSE_JOINT)
    joint = text.find(_CALLS_JOINT, 7)
    second = text.find(_BOTH_JOINT, joint + len(_CALLS_JOINT)) if joint >= 0 else -1
    return 0 <= second <= last - len(_BOTH_JOINT) and text.count(OPEN) == 1 and text.count(CLOSE) == 1
