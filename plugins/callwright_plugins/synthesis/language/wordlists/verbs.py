"""Verbs of tools, and what people say in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: A verb that names of tools begin with, and the ways of saying it. The first one is always right.
SAID: Final[Mapping[str, tuple[str, ...]]] = {
    "get": ("get", "look up", "show me", "pull up", "fetch", "tell me about"),
    "list": ("list", "show me", "go through", "give me a list of"),
    "search": ("search", "search for", "look for"),
    "find": ("find", "look for", "track down"),
    "check": ("check", "have a look at"),
    "read": ("read", "read out"),
    "view": ("view", "show me", "open up"),
    "show": ("show me", "display"),
    "create": ("create", "set up", "make"),
    "add": ("add", "put in"),
    "update": ("update", "change", "edit"),
    "delete": ("delete", "get rid of"),
    "remove": ("remove", "take out"),
    "cancel": ("cancel", "call off"),
    "send": ("send", "send off"),
    "book": ("book", "reserve"),
    "move": ("move", "shift"),
    "start": ("start", "begin"),
    "stop": ("stop", "end"),
    "buy": ("buy", "purchase"),
    "compute": ("compute", "work out"),
    "calculate": ("calculate", "work out"),
    "estimate": ("estimate", "work out"),
    "quote": ("quote", "work out"),
    "compare": ("compare",),
    "count": ("count",),
    "convert": ("convert",),
    "filter": ("filter", "narrow down"),
    "keep": ("keep",),
}
#: Further words that a name or a description may begin with as an order.
ORDERS: Final = frozenset(
    """
    accept activate adjust admit answer append apply approve archive arm ask assign attach block bring build capture
    cast change choose clear close comment complete confirm copy correct cut deliver deposit describe detach dim
    disarm dissolve download empty end enlarge enter extract fill flag follow forward free freeze geocode give have
    hide hold invite issue join keep leave let like link lock log look make mark merge mock modify mute name narrow
    open order pack pause pay pick pin place plan play point post print publish put rate react rebook receive record
    redeem redo refuel refund register reject release remind rename repeat replace reply report request reschedule
    resend reserve resolve respond restore resume retry return reverse rotate run save schedule select sell set share
    shift skip sort split stand subscribe suggest summarise suspend swap switch take tell tip touch track transfer
    transition translate truncate turn unblock undo unfollow unlink unlock unpack upload use verify void wait walk
    watch watchlist withdraw work write
    """.split()
)
#: Verbs after which a thing may be asked for by itself: "the accounts".
LOOKING: Final = frozenset({"get", "list", "search", "find", "check", "read", "view", "show", "lookup"})
#: Verbs that bring a thing about, so that it is not "the" one yet.
MAKING: Final = frozenset({"create", "add", "open", "schedule", "make", "post", "register", "save", "place", "plan"})


def is_verb(word: str) -> bool:
    """Whether a name or a description that begins with this word gives an order."""
    return word in SAID or word in ORDERS


def article(noun: str, verb: str) -> str:
    """``the``, ``a`` or ``an`` before a noun, or nothing before a plural that is yet to be made."""
    if verb not in MAKING:
        return "the "
    if noun.endswith("s") and not noun.endswith(("ss", "us")):
        return ""
    return "an " if noun[:1] in "aeiou" else "a "
