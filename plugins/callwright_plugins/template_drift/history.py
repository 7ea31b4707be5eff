"""Looks at a conversation that grows: whether what was rendered before stays as it was."""

from __future__ import annotations

from callwright.language.messages import Message
from callwright_plugins.template_drift.examined import ANSWER, CALL, RESULT, THOUGHT, Examined
from callwright_plugins.template_drift.seen import Seen


def _conversation(of: Examined, thought: str = "") -> list[Message]:
    """A query, a call, its result, an answer, a second query and its answer; ``thought`` begins all that is said."""
    result = (
        Message(role="tool", content=RESULT)
        if of.codec.observation_role == "tool"
        else Message(role="user", content=f"<tool_response>\n{RESULT}\n</tool_response>")
    )
    again = Message(role="user", content="And tomorrow?")
    said = [Message(role="assistant", content=thought + text) for text in (CALL, ANSWER, ANSWER)]
    return [*of.first, said[0], result, said[1], again, said[2]]


def prefix_drift(of: Examined) -> Seen | None:
    """One more message changes the text of those before it."""
    messages = _conversation(of)
    before: str | None = None
    for count in range(1, len(messages) + 1):
        text = of.render(messages[:count]).text
        if text is not None and before is not None and not text.startswith(before):
            at = next((i for i, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), len(text))
            near = slice(max(0, at - 10), at + 30)
            return Seen(
                "rendering one more message changes what stands before it: "
                f"with message {count} ({messages[count - 1].role}), {before[near]!r} becomes {text[near]!r}"
            )
        # Up to the end of the last message: what follows it depends on whether anything does.
        said = messages[count - 1].text
        before = None if text is None or said not in text else text[: text.rindex(said) + len(said)]
    return None


def thought_stripping(of: Examined) -> Seen | None:
    """Thoughts that were shown are no longer there some messages later."""
    messages = _conversation(of, f"<think>\n{THOUGHT}\n</think>\n\n")
    seen = 0
    for count in range(1, len(messages) + 1):
        text = of.render(messages[:count]).text
        if text is None:
            continue
        written = text.count("THOUGHT")
        said = sum("THOUGHT" in message.text for message in messages[:count])
        if written < seen or written < said:
            last = messages[count - 1].role
            return Seen(
                "the template takes thoughts out of earlier turns: "
                f"of {said} thoughts in {count} messages, the last of them the {last}'s, {written} are left"
            )
        seen = written
    return None


def boundary_drift(of: Examined) -> Seen | None:
    """A completion and the template around it become other tokens when they are tokenised together."""
    prompt = of.generation.prompt if of.generation is not None else ""
    closing = of.turn_end.text if of.turn_end is not None else ""
    for text in ("<think>\nSo", "Hello", '{"0"', CALL):
        for left, right, where in ((prompt, text, "before"), (text, closing, "after")):
            if left and right and of.encode(left + right) != of.encode(left) + of.encode(right):
                return Seen(
                    f"{left[-20:]!r} and {right[:20]!r} are tokenised otherwise together than apart ({where} a "
                    "completion)"
                )
    return None
