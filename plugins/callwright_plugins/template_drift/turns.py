"""Looks at turns: how an assistant's ends, and in which roles results of calls and tools are shown."""

from __future__ import annotations

from callwright.language.messages import Message
from callwright_plugins.template_drift.examined import CALL, RESULT, Examined, Rendered
from callwright_plugins.template_drift.seen import Seen

# The end of a turn ----------------------------------------------------------------------------------------------------


def assistant_text_changed(of: Examined) -> Seen | None:
    """The text of an assistant's message cannot be found in what the template renders."""
    if of.turn_end is not None:
        return None
    return Seen(f"the template does not render the text of an assistant's message: {of.answered.failure}")


def turn_end_changes(of: Examined) -> Seen | None:
    """A turn ends with one token, and with another once something follows it."""
    turn = of.turn_end
    if turn is None or -1 in (turn.followed, turn.control) or turn.followed == turn.control:
        return None
    return Seen(
        f"a turn ends with {of.token(turn.control)!r}, and with {of.token(turn.followed)!r} once something follows it"
    )


def end_not_in_generation_config(of: Examined) -> Seen | None:
    """Sampling stops where a turn ends, but only for those who ask the tokenizer."""
    end = of.turn_end.end if of.turn_end is not None else None
    if end is None or not of.generation_ends or end in of.generation_ends:
        return None
    return Seen(
        f"the template ends a turn with {of.token(end)!r}, which is not in the generation config", {"number": end}
    )


def wrong_end_token(of: Examined) -> Seen | None:
    """A turn ends with a control token at which sampling does not stop."""
    turn = of.turn_end
    if turn is None or turn.end is not None or turn.followed < 0:
        return None
    token = of.token(turn.followed)
    return Seen(
        f"the template ends a turn with {token!r}, but sampling stops at {_stops(of)}",
        {"token": repr(token), "number": turn.followed},
    )


def no_end_in_template(of: Examined) -> Seen | None:
    """A turn ends in words."""
    turn = of.turn_end
    if turn is None or turn.end is not None or turn.followed >= 0 or not of.ends:
        return None
    return Seen(f"the template ends a turn with {turn.closing!r}, which holds none of the end tokens ({_stops(of)})")


def _stops(of: Examined) -> str:
    return ", ".join(repr(of.token(end)) for end in of.ends) or "none"


# Roles ----------------------------------------------------------------------------------------------------------------


def no_tool_role(of: Examined) -> Seen | None:
    """Results of calls cannot be shown in a role of their own."""
    if of.codec.observation_role != "user":
        return None
    rendered = _with_a_result(of)
    why = "does not render it" if rendered.text is not None else f"refuses it ({rendered.failure})"
    return Seen(f"the template has no role 'tool': it {why}")


def tool_role_by_name(of: Examined) -> Seen | None:
    """The template shows the role of results as it would show any."""
    if of.codec.observation_role == "user" or "tool" in str(of.tokenizer.chat_template):
        return None
    if _with_a_result(of).text is None:
        return None
    return Seen("the template knows nothing of the role 'tool': it writes any role by its name")


def _with_a_result(of: Examined) -> Rendered:
    said = [Message(role="assistant", content=CALL), Message(role="tool", content=RESULT)]
    return of.render([*of.first, *said])


def tools_not_rendered(of: Examined) -> Seen | None:
    """The template does nothing with ``tools``."""
    return None if of.shows_tools else Seen("the template does not show tools that it is given")
