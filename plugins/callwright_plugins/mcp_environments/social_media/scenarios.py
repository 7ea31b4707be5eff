"""Worlds of the social network: a lively one, a new account, and one of namesakes, walls and deleted posts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

from callwright.environments.rows import table_of
from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.people import CITIES, person
from callwright_plugins.mcp_environments.social_media.rows import Block, Comment, Follow, Like, Post, Profile, User
from callwright_plugins.mcp_environments.times import HOUR, MINUTE

_TEXTS: Final = (
    "Walked along the river this morning. #outdoors", "New bread recipe worked at last! #baking",
    "Does anybody know a good book about bridges? #reading", "The train was late again. #commute",
    "Concert on Friday, who is coming? #music", "Finished my first ten kilometres. #running",
    "Rain all week. #weather", "Photos of the market are up. #photos", "Learning to play chess. #games",
    "Our garden is full of tomatoes. #garden", "Old films are the best films. #cinema",
)  # fmt: skip
_ANSWERS: Final = ("Well done!", "Where was that?", "I like it.", "Me too.", "Tell me more.", "See you there.")
_INTERESTS: Final = ("baking", "running", "music", "cinema", "gardens", "chess", "photos", "trains")


class _Network:
    """The rows of a network in the making; one row for each key."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.rows: list[Any] = []
        self.pairs: set[tuple[str, str, str]] = set()
        self.numbers: dict[type[Any], int] = {}

    def add(self, kind: type[Any], *values: Any) -> Any:
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        made = kind(table_of(kind).identifier(self.numbers[kind]), *values)
        self.rows.append(made)
        return made

    def user(self, first: str, last: str, *, private: bool = False, handle: str = "") -> User:
        number = self.numbers.get(User, 0) + 1
        bio = f"{self.rng.choice(_INTERESTS)} and {self.rng.choice(_INTERESTS)}, {self.rng.choice(CITIES)}"
        made: User = self.add(User, handle or f"{first}_{last}{number}".lower(), f"{first} {last}", bio, private,
                              self.rng.random() < 0.1)  # fmt: skip
        return made

    def pair(self, kind: type[Any], one: str, other: str, *more: Any) -> None:
        """A follow, like or block, unless there is one."""
        key = (table_of(kind).name, one, other)
        if one != other and key not in self.pairs:
            self.pairs.add(key)
            self.rows.append(kind(one, other, *more))

    def follow(self, follower: User, followed: User, accepted: bool = True) -> None:
        self.pair(Follow, follower.id, followed.id, accepted)

    def post(
        self,
        author: User,
        created_at: int,
        text: str = "",
        *,
        shared: str = "",
        comments: str = "everyone",
        deleted: bool = False,
    ) -> Post:
        text = "" if deleted else text or ("" if shared else self.rng.choice(_TEXTS))
        made: Post = self.add(Post, author.id, text, created_at, shared, comments, deleted)
        return made

    def comment(self, post: Post, author: User, created_at: int) -> None:
        self.add(Comment, post.id, author.id, self.rng.choice(_ANSWERS), created_at)


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """A hundred and twenty people, a fifth of them private, and what they have posted in two months."""
    made = _Network(rng)
    me = made.user(*person(rng))
    made.rows.append(Profile("me", me.id))
    others = [made.user(*person(rng), private=rng.random() < 0.2) for _ in range(max(6, round(120 * scale)))]
    everybody = [me, *others]
    for user in everybody:
        for other in rng.sample(others, min(len(others), 8)):
            made.follow(user, other, not other.private or rng.random() < 0.7)
        if rng.random() < 0.15:
            made.follow(user, me)
    for number, other in enumerate(others[3:6]):  # blocks by me and of me; nobody follows through them
        one, two = (me, other) if number % 2 else (other, me)
        made.pair(Block, one.id, two.id)
    walls = {("follows", me.id, one.id) for one in others[3:6]} | {("follows", one.id, me.id) for one in others[3:6]}
    made.rows = [one for one in made.rows if not (isinstance(one, Follow) and _key(one) in walls)]
    _posts(made, everybody, max(10, round(500 * scale)))
    yield from made.rows


def _key(follow: Follow) -> tuple[str, str, str]:
    return "follows", follow.follower_id, follow.followed_id


def _posts(made: _Network, everybody: Sequence[User], count: int) -> None:
    rng, public = made.rng, list[Post]()
    accepted = {(one.follower_id, one.followed_id) for one in made.rows if isinstance(one, Follow) and one.accepted}
    walls = {frozenset((one.blocker_id, one.blocked_id)) for one in made.rows if isinstance(one, Block)}

    def sees(user: User, author: User) -> bool:
        open_to = not author.private or (user.id, author.id) in accepted or user is author
        return open_to and frozenset((user.id, author.id)) not in walls

    people = {one.id: one for one in everybody}
    for number in range(count):
        author = everybody[0] if number % 25 == 0 else rng.choice(everybody)
        created_at = NOW - (count - number) * 3 * HOUR
        shared = rng.choice(public) if public and rng.random() < 0.15 else None
        if shared is not None and (shared.author_id == author.id or not sees(author, people[shared.author_id])):
            shared = None
        post = made.post(
            author,
            created_at,
            shared=shared.id if shared else "",
            comments=rng.choice(("everyone",) * 6 + ("followers", "nobody")),
            deleted=rng.random() < 0.04,
        )
        if not author.private and not post.deleted and shared is None:
            public.append(post)
        if post.deleted:
            continue
        for user in rng.sample(everybody, min(len(everybody), rng.randint(0, 6))):
            if sees(user, author):
                made.pair(Like, post.id, user.id)
                if rng.random() < 0.4 and post.comments == "everyone":
                    made.comment(post, user, created_at + rng.randint(1, 100) * MINUTE)


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """A new account: three people, one post, nobody follows anybody."""
    made = _Network(rng)
    people = [made.user(*person(rng)) for _ in range(max(3, round(3 * scale)))]
    made.rows.append(Profile("me", people[0].id))
    made.post(people[1], NOW - HOUR)
    yield from made.rows


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Handles that differ by a character, blocks both ways, closed profiles, deleted posts, closed comments."""
    made = _Network(rng)
    me = made.user("Noor", "Haddad", handle="noor.haddad")
    made.rows.append(Profile("me", me.id))
    twins = [
        made.user("Lena", "Vogel", handle=handle, private=handle.endswith("_"))
        for handle in ("lena.vogel", "lena_vogel", "lenavogel", "lena.vogel_", "lena.v0gel")
    ]
    foe = made.user("Wall", "One", handle="blocked.me")
    blocked = made.user("Wall", "Two", handle="i.blocked")
    closed = made.user("Shy", "One", private=True, handle="closed")
    asked = made.user("Shy", "Two", private=True, handle="asked")
    trusted = made.user("Shy", "Three", private=True, handle="trusted")
    others = [made.user("Lena", "Vogel") for _ in range(max(2, round(15 * scale)))]
    made.pair(Block, foe.id, me.id)
    made.pair(Block, me.id, blocked.id)
    made.follow(me, asked, False)
    for user in (trusted, twins[0], twins[2], *others[:2]):
        made.follow(me, user)
    for user in (foe, blocked, closed, asked, trusted, *twins, *others, me):
        for number in range(4):
            at = NOW - 9 * HOUR + number * HOUR
            post = made.post(user, at, "Concert on Friday, who is coming? #music", deleted=number == 0,
                             comments=("everyone", "everyone", "followers", "nobody")[number])  # fmt: skip
            if number == 1:
                made.comment(post, twins[0], at + MINUTE)
                made.comment(post, foe if user not in (me, blocked) else twins[1], at + 2 * MINUTE)
                made.pair(Like, post.id, me.id if user is twins[0] else twins[0].id)
    gone = made.post(twins[1], NOW - 2 * HOUR, deleted=True)
    made.post(twins[0], NOW - HOUR, shared=gone.id)
    made.post(twins[0], NOW - HOUR, "Look at this.", shared=gone.id)
    wall = next(one for one in made.rows if isinstance(one, Post) and one.author_id == foe.id and not one.deleted)
    made.post(twins[0], NOW - HOUR, "And at this.", shared=wall.id)
    kept = made.post(twins[1], NOW - 2 * HOUR, "Shared before.")
    made.post(me, NOW - HOUR, "Mine.", shared=kept.id)
    made.post(twins[0], NOW - MINUTE, "Theirs.", shared=kept.id)
    yield from made.rows


SCENARIOS: Final = {
    "typical": Scenario(typical, "a hundred and twenty people and two months of posts"),
    "sparse": Scenario(sparse, "a new account that follows nobody"),
    "adversarial": Scenario(adversarial, "similar handles, blocks both ways, closed profiles, deleted posts"),
}
