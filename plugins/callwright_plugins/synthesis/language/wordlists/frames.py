"""Frames: the sentence around a request. ``{f}`` is the request, an order (``list the accounts``) or a thing.

A frame is of a register: ``plain`` ones fit everybody, ``formal`` and ``casual`` ones fit who speaks so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import frozen

from callwright_plugins.synthesis.language.values.tokens import words_of

Mood = Literal["order", "thing"]
Register = Literal["plain", "formal", "casual"]

_PLAIN_ORDERS: Final = """
{f}.
please {f}.
{f}, please.
could you {f}?
can you {f}?
would you {f}?
will you {f}?
could you please {f}?
can you please {f}?
would you please {f}?
I need you to {f}.
I want you to {f}.
I'd like you to {f}.
I have to ask you to {f}.
I am asking you to {f}.
it's time to {f}.
the next thing is to {f}.
my first wish is to {f}.
what I need is for you to {f}.
what I want is for you to {f}.
what I'd like is for you to {f}.
all I need is for you to {f}.
help me {f}.
please help me {f}.
could you help me {f}?
can you help me {f}?
I need help to {f}.
I need somebody to {f}.
I need to {f}.
I want to {f}.
I'd like to {f}.
I have to {f}.
I must {f}.
I am trying to {f}.
I was hoping you could {f}.
I was going to ask you to {f}.
I wanted you to {f}.
I came here to {f}.
I'm here to {f}.
my plan is to {f}.
my task for today is to {f}.
the plan is to {f}.
the idea is to {f}.
the job is to {f}.
the task is to {f}.
here is what I need: {f}.
here is what to do: {f}.
here is a task for you: {f}.
this is what I need: {f}.
one thing to do: {f}.
one request: {f}.
a request: {f}.
my request is this: {f}.
to do: {f}.
for me, {f}.
for today, {f}.
right now, {f}.
now {f}.
first of all, {f}.
to begin with, {f}.
to start with, {f}.
let us {f}.
let's {f}.
go ahead and {f}.
please go ahead and {f}.
make sure to {f}.
please make sure to {f}.
be sure to {f}.
don't forget to {f}.
remember to {f}.
see to it and {f}.
take care of this: {f}.
please take care of this: {f}.
is it possible to {f}?
is there a way to {f}?
is there any way to {f}?
are you able to {f}?
may I ask you to {f}?
might I ask you to {f}?
can I ask you to {f}?
could I ask you to {f}?
may I have you {f}?
do me a favour and {f}.
when you have a moment, {f}.
when you have a minute, {f}.
when you get a chance, {f}.
as soon as you can, {f}.
if you can, {f}.
if you could, {f}.
if possible, {f}.
if it's no trouble, {f}.
it would help me to {f}.
it would be good to {f}.
it would be great to {f}.
what do I have to say to make you {f}?
would it be possible to {f}?
"""
_FORMAL_ORDERS: Final = """
kindly {f}.
would you kindly {f}?
could you kindly {f}?
I would like you to {f}.
I would like to {f}.
I would be grateful to have you {f}.
I should like you to {f}.
I wish to {f}.
I hereby ask you to {f}.
I am writing to ask you to {f}.
I am contacting you to {f}.
I would ask you to {f}.
may I request that you {f}?
I request that you {f}.
I would appreciate it a great deal if you would {f}.
it would be much appreciated if you could {f}.
I would be obliged if you could {f}.
I should be glad if you could {f}.
I would be pleased if you would {f}.
would you be so kind as to {f}?
would you be so good as to {f}?
would you be able to {f}?
might you {f}?
might it be possible to {f}?
may I trouble you to {f}?
could I trouble you to {f}?
at your earliest convenience, please {f}.
at your convenience, {f}.
with your permission, I would like to {f}.
if I may, I would like you to {f}.
if you would be so kind, {f}.
it is necessary to {f}.
it is important to me that you {f}.
our intention is to {f}.
my intention is to {f}.
the matter at hand is to {f}.
you are requested to {f}.
please arrange to {f}.
please be so kind as to {f}.
please see to it that you {f}.
"""
_CASUAL_ORDERS: Final = """
can u {f}?
could u {f}?
pls {f}.
{f}, pls.
{f}, thx.
{f}, ok?
{f}, will you?
{f}, would you?
{f}, could you?
{f} for me, ok?
{f} real quick.
{f} if you don't mind.
just {f}.
just {f}, please.
quickly {f}.
so, {f}.
ok, {f}.
okay so {f}.
right, {f}.
alright, {f}.
well, {f}.
yo, {f}.
wanna {f}?
gotta {f}.
I gotta {f}.
I just want to {f}.
I just need to {f}.
I kinda need to {f}.
I really need to {f}.
I really want to {f}.
need you to {f}.
need to {f}.
want to {f}.
time to {f}.
quick one: {f}.
quick thing: {f}.
quick favour: {f}.
small favour: {f}.
be a dear and {f}.
be a star and {f}.
mind if I ask you to {f}?
any chance you could {f}?
any chance you can {f}?
think you could {f}?
think you can {f}?
how about you {f}?
why don't you {f}?
why not {f}?
let me just {f}.
"""
_PLAIN_THINGS: Final = """
{f}, please.
I need {f}.
I want {f}.
I'd like {f}.
I'd like to see {f}.
I'd like to know {f}.
I need to see {f}.
I want to see {f}.
I have to see {f}.
I am looking for {f}.
I'm looking for {f}.
I'm after {f}.
what I need is {f}.
what I want is {f}.
what I'm looking for is {f}.
all I need is {f}.
give me {f}.
please give me {f}.
could you give me {f}?
can you give me {f}?
show me {f}.
please show me {f}.
could you show me {f}?
can you show me {f}?
would you show me {f}?
let me see {f}.
let me have {f}.
may I see {f}?
can I see {f}?
could I see {f}?
can I have {f}?
can I get {f}?
could I have {f}?
could I get {f}?
tell me {f}.
please tell me {f}.
could you tell me {f}?
can you tell me {f}?
do you have {f}?
do you know {f}?
get me {f}.
please get me {f}.
bring up {f}.
pull up {f}.
look up {f}.
please look up {f}.
could you look up {f}?
can you look up {f}?
find out {f}.
please find out {f}.
read me {f}.
what do you have on {f}?
what about {f}?
here is what I need: {f}.
one question: {f}?
a question about {f}.
my question is about {f}.
this is about {f}.
"""
_FORMAL_THINGS: Final = """
I would like {f}.
I would like to see {f}.
I would like to have {f}.
I would like to be told {f}.
I should like {f}.
I request {f}.
I wish to see {f}.
may I have {f}?
may I ask for {f}?
might I see {f}?
might I have {f}?
could you provide {f}?
could you provide me with {f}?
please provide {f}.
please provide me with {f}.
kindly provide {f}.
kindly show me {f}.
kindly send me {f}.
would you kindly show me {f}?
would you be so kind as to show me {f}?
I would be grateful for {f}.
I would appreciate {f}.
I am writing to ask for {f}.
I am interested in {f}.
at your convenience, I would like {f}.
for my records, I require {f}.
I require {f}.
"""
_CASUAL_THINGS: Final = """
{f}, pls.
{f}, thx.
{f}?
{f}, ok?
gimme {f}.
need {f}.
just need {f}.
I just need {f}.
I kinda need {f}.
just show me {f}.
wanna see {f}.
quick one: {f}?
quick question: {f}?
got {f}?
any idea about {f}?
where's {f}?
what's {f}?
so what's {f}?
hit me with {f}.
can u show me {f}?
can u get me {f}?
lemme see {f}.
throw me {f}.
how about {f}?
"""
#: What stands between two requests of one sentence.
JOINS: Final = (
    ", and then",
    ", then",
    "and then",
    ", and after that",
    "; after that,",
    "; then",
    ", and when that is done,",
    ", and next",
    ", and finally",
    ", and also",
    ", and afterwards",
    ", after which please",
    "and afterwards",
    ", and once that is done,",
    ", and with that done,",
    "and next",
    "; next,",
)
#: How a further request in a sentence of its own begins, and how it goes on.
_AFTER: Final = (
    "then", "after that,", "next,", "afterwards,", "once that is done,", "once you have that,", "when that is done,",
    "when you are done with that,", "with that done,", "with that,", "right after that,", "following that,",
    "from there,", "as the next step,", "in addition,", "also,", "besides,", "and then", "apart from that,", "finally,",
)  # fmt: skip
_GOING_ON: Final = (
    "{f}.", "please {f}.", "could you {f}?", "can you {f}?", "would you {f}?", "I need you to {f}.",
    "I want you to {f}.", "I'd like you to {f}.",
)  # fmt: skip
#: A further request in a sentence of its own.
FOLLOWING: Final = (
    *(f"{after} {going_on}" for going_on in _GOING_ON for after in _AFTER),
    *"""
then I need to {f}.
then I want to {f}.
and could you then {f}?
and can you then {f}?
and would you then {f}?
and then, please, {f}.
and {f}, please.
and please {f}.
I also need you to {f}.
I also want you to {f}.
I also want to {f}.
I'd also like you to {f}.
could you also {f}?
can you also {f}?
please also {f}.
the next step is to {f}.
the next thing is to {f}.
the other thing is to {f}.
the last thing is to {f}.
what comes next is to {f}.
""".strip().splitlines(),
)


@frozen
class Frame:
    """A frame: the words before and behind a request, as they are read.

    In an ``own`` one it is the speaker who acts ("I have to …"), so that "tell me" does not follow.
    """

    text: str
    mood: Mood
    register: Register
    before: tuple[str, ...]
    behind: tuple[str, ...]
    own: bool = False


_OWN: Final = re.compile(
    r" (?:help|me|i (?:need|want|would like) to) "
    r"|^ (?:i|i'd|i'm|my|our|let|let's|gotta|wanna|need|want|the (?:plan|idea|job|task)|(?:it's )?time) "
)
#: Who is to act instead, unless it is to help; and an order to them.
_OTHERS: Final = re.compile(r" (?:you|somebody) (?!help )|(?:: | and )$")


def frame(text: str, mood: Mood = "order", register: Register = "plain") -> Frame:
    """A frame from its text."""
    before, _, behind = text.partition("{f}")
    words = f" {' '.join(words_of(before))} ", f" {' '.join(words_of(behind))} "
    own = any(map(_OWN.search, words)) and not _OTHERS.search(words[0])
    return Frame(text, mood, register, words_of(before), words_of(behind), own)


def _frames(*tables: tuple[str, Mood, Register]) -> tuple[Frame, ...]:
    return tuple(frame(line, mood, register) for text, mood, register in tables for line in text.strip().splitlines())


FRAMES: Final = _frames(
    (_PLAIN_ORDERS, "order", "plain"),
    (_FORMAL_ORDERS, "order", "formal"),
    (_CASUAL_ORDERS, "order", "casual"),
    (_PLAIN_THINGS, "thing", "plain"),
    (_FORMAL_THINGS, "thing", "formal"),
    (_CASUAL_THINGS, "thing", "casual"),
)
FOLLOWING_FRAMES: Final = tuple(frame(line) for line in FOLLOWING)
#: A correction of a value that was said before: the words before, between and behind (name, new value, old value).
CORRECTIONS: Final = (
    ("no, make the", "{new} instead of", "."),
    ("sorry, make the", "{new} instead of", "."),
    ("wait, make the", "{new} instead of", "."),
    ("oh, and make the", "{new} instead of", ", please."),
    ("actually, make the", "{new} instead of", "."),
    ("on second thoughts, make the", "{new} instead of", "."),
)


def fitting(mood: Mood, register: Register) -> tuple[Frame, ...]:
    """The frames for a request in a mood and a register."""
    return _BY[mood, register]


_BY: Final[Mapping[Any, tuple[Frame, ...]]] = {
    (mood, register): tuple(one for one in FRAMES if one.mood == mood and one.register in ("plain", register))
    for mood in ("order", "thing")
    for register in ("plain", "formal", "casual")
}
