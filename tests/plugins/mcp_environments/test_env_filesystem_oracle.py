"""The filesystem environment against a real one: Linux, GNU coreutils, tar, diff's format, fnmatch and re."""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.filesystem import environment
from callwright_plugins.mcp_environments.filesystem.archives import Member, pack, unpack
from callwright_plugins.mcp_environments.filesystem.diffs import blocks, split_lines, unified
from callwright_plugins.mcp_environments.filesystem.modes import changed_mode
from callwright_plugins.mcp_environments.filesystem.paths import child, inode, path_of
from callwright_plugins.mcp_environments.filesystem.patterns import expression, glob
from callwright_plugins.mcp_environments.filesystem.rows import ROOT, SHELL, Blob, Shell, User
from callwright_plugins.mcp_environments.filesystem.tree import walk

Operation = tuple[str, dict[str, Any]]
NAMES = ("a", "b", "c", "d")
#: What GNU programs print for an error, and the code of ours; the first that occurs counts.
PRINTED = (
    ("are the same file", "SAME_FILE"),
    ("into itself", "EINVAL"),
    ("to a subdirectory of itself", "EINVAL"),
    ("omitting directory", "EISDIR"),
    ("cannot overwrite directory", "EISDIR"),
    ("cannot overwrite non-directory", "ENOTDIR"),
    ("operate on dangling", "ENOENT"),
    ("dangling symlink", "EEXIST"),
    ("No such file or directory", "ENOENT"),
    ("Not a directory", "ENOTDIR"),
    ("Is a directory", "EISDIR"),
    ("File exists", "EEXIST"),
    ("Directory not empty", "ENOTEMPTY"),
    ("Too many levels", "ELOOP"),
    ("Device or resource busy", "EBUSY"),
    ("Permission denied", "EACCES"),
    ("Operation not permitted", "EPERM"),
)
PROGRAMS = {"cp": ["cp"], "cp_tree": ["cp", "-r"], "mv": ["mv"], "rm_tree": ["rm", "-r"], "touch": ["touch"]}


def random_path(rng: Random) -> str:
    parts = [rng.choice(NAMES) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
    if rng.random() < 0.05:
        parts.insert(rng.randrange(1, len(parts) + 1), rng.choice((".", "..")))
    return "/".join(parts)


def random_operation(rng: Random) -> Operation:
    """An operation over a handful of names, so that they meet."""
    path = random_path(rng)
    name = rng.choice(
        "mkdir mkdir parents rmdir rm rm_tree touch cp cp cp_tree cp_tree mv mv write write create append truncate "
        "symlink symlink cat readlink chmod".split()
    )
    if name in ("cp", "cp_tree", "mv"):
        return name, {"source": path, "destination": random_path(rng)}
    if name in ("write", "create", "append"):
        return name, {"path": path, "content": rng.choice(("", "x\n", "longer text\n"))}
    if name == "truncate":
        return name, {"path": path, "size": rng.randrange(6)}
    if name == "symlink":
        return name, {"target": rng.choice(("a", "b", "c/a", "d", "../a", ".", "..", "b/c")), "path": path}
    if name == "chmod":
        return name, {"path": path, "mode": rng.choice(("644", "u+x", "go-r", "a=rw", "+x", "u=rwx,go=", "700", "a+X"))}
    return name, {"path": path}


def real(operation: Operation) -> str:
    """Run an operation on the real filesystem, in the working directory. ``ok`` or the code of its error."""
    name, given = operation
    try:
        if name in PROGRAMS:
            paths = [given["path"]] if "path" in given else [given["source"], given["destination"]]
            return printed([*PROGRAMS[name], "--", *paths])
        if name == "chmod":
            return printed(["chmod", given["mode"], "--", given["path"]])
        if name == "parents":
            return printed(["mkdir", "-p", "--", given["path"]])
        _real(name, given, given["path"])
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "ok"


def _real(name: str, given: dict[str, Any], path: str) -> None:
    if name == "mkdir":
        os.mkdir(path)  # noqa: PTH102
    elif name == "rmdir":
        os.rmdir(path)  # noqa: PTH106
    elif name == "rm":
        os.unlink(path)  # noqa: PTH108
    elif name == "truncate":
        os.truncate(path, given["size"])
    elif name == "symlink":
        os.symlink(given["target"], path)  # noqa: PTH211
    elif name == "readlink":
        os.readlink(path)  # noqa: PTH115
    elif name == "ls":
        if stat.S_ISDIR(os.stat(path).st_mode):  # noqa: PTH116
            for inner in os.listdir(path):  # noqa: PTH208
                os.lstat(f"{path}/{inner}")
    elif name == "cat":
        with open(path, "rb") as file:  # noqa: PTH123 (a Path would tidy up "file/.")
            file.read()
    else:
        flags = {"write": "w", "create": "x", "append": "a"}[name]
        with open(path, flags) as file:  # noqa: PTH123
            file.write(given["content"])


def printed(command: list[str]) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    if done.returncode == 0:
        return "ok"
    return next((code for text, code in PRINTED if text in done.stderr), done.stderr)


TOOLS = {
    "parents": ("mkdir", {"parents": True}),
    "write": ("write_file", {}),
    "create": ("write_file", {"mode": "create"}),
    "append": ("append_file", {}),
    "truncate": ("truncate_file", {}),
    "readlink": ("read_link", {}),
}


def ours(session: StatefulSession, operation: Operation) -> str:
    """The same on ours: ``ok``, ``partial`` or the code of the failure."""
    tool, more = TOOLS.get(operation[0], (operation[0], {}))
    before = session.digest()
    outcome = session.call(tool, {**operation[1], **more})
    if outcome.code == "BINARY_FILE":  # truncate fills up with zero bytes; whoever reads bytes can read those, too
        return "ok"
    if outcome.kind == "execution_error":
        assert session.digest() == before
        return outcome.code
    assert outcome.kind in ("ok", "partial", "empty"), outcome
    return "partial" if outcome.kind == "partial" else "ok"


def real_tree(top: str) -> dict[str, tuple[str, int, str]]:
    found = {}
    for at, folders, files in os.walk(top):
        for name in [*folders, *files]:
            path = f"{at}/{name}"
            info = os.lstat(path)
            if stat.S_ISLNK(info.st_mode):
                found[path[len(top) :]] = ("link", 0, os.readlink(path))  # noqa: PTH115
            elif stat.S_ISDIR(info.st_mode):
                found[path[len(top) :]] = ("dir", info.st_mode & 0o7777, "")
            else:
                found[path[len(top) :]] = ("file", info.st_mode & 0o7777, Path(path).read_text())
    return found


def our_tree(session: StatefulSession, top: str) -> dict[str, tuple[str, int, str]]:
    world = session.world
    node = child(world, inode(world, ROOT), top[1:])
    assert node is not None
    found = {}
    for _, inner in walk(world, node):
        if inner.id == node.id:
            continue
        text = world.need(Blob, inner.blob).text if inner.kind == "file" else inner.target
        mode = 0 if inner.kind == "link" else inner.mode
        found[path_of(world, inner)[len(top) :]] = (inner.kind, mode, text)
    return found


def as_root() -> StatefulSession:
    """A session of root in ``/top/p/q/w``."""
    session = environment().open("sparse")
    world = session.world
    world.begin(False)
    world.update(world.need(Shell, SHELL), user="root")
    world.end()
    assert session.call("mkdir", {"path": "/top/p/q/w", "parents": True}).kind == "ok"
    assert session.call("cd", {"path": "/top/p/q/w"}).kind == "ok"
    return session


def run_both(seed: int, top: Path, count: int = 60) -> int:
    """A random sequence on both; returns how many operations succeeded."""
    rng, session = Random(seed), as_root()
    (top / "p/q/w").mkdir(parents=True)
    done: list[Operation] = []
    succeeded = 0
    previous = os.umask(0o022)
    try:
        with contextlib.chdir(top / "p/q/w"):
            for _ in range(count):
                operation = random_operation(rng)
                done.append(operation)
                mine = ours(session, operation)
                if mine == "EBUSY" and operation[0] in ("rm_tree", "rmdir", "rm"):
                    continue  # ours is stricter: Linux lets one remove the working directory
                theirs = real(operation)
                if (operation[0], mine) == ("cp_tree", "EINVAL") or (operation[0] == "parents" and mine != "ok"):
                    assert theirs != "ok", (mine, done)
                    return succeeded  # GNU cp leaves half a copy, and mkdir some of the parents
                if mine == "partial":
                    assert theirs != "ok", done
                elif not (operation[0] == "rm_tree" and mine == "EINVAL"):  # "refusing to remove '.'"
                    assert mine == theirs, (mine, theirs, done)
                succeeded += mine == "ok"
                assert our_tree(session, "/top") == real_tree(str(top)), done
    finally:
        os.umask(previous)
    return succeeded


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cp") is None or os.geteuid() != 0,
    reason="compares with Linux and GNU coreutils as root, where permission bits do not matter on either side",
)
@pytest.mark.parametrize("seed", range(8))
def test_random_sequences_give_the_tree_and_the_errors_of_linux_and_coreutils(seed: int, tmp_path: Path) -> None:
    assert run_both(seed, tmp_path / "top") >= 1


# Permission bits ------------------------------------------------------------------------------------------------------

#: Users of the test with their groups; the first group is the primary one. Numbers stand for themselves.
PEOPLE = {"ann": (4001, (4001, 4100)), "ben": (4002, (4002, 4100)), "cat": (4003, (4003,))}
GROUPS = {"ann": 4001, "ben": 4002, "cat": 4003, "team": 4100}
MODES = (0o700, 0o750, 0o755, 0o770, 0o711, 0o733, 0o777, 0o1777, 0o555, 0o444, 0o000)


def random_world(rng: Random) -> list[tuple[str, str, str, str, int]]:
    """``(path, kind, owner, group, mode)`` of a small tree, parents first."""
    made = []
    for name in NAMES[:3]:
        made.append((name, "dir", rng.choice(tuple(PEOPLE)), rng.choice(tuple(GROUPS)), rng.choice(MODES)))
        for inner in NAMES[:3]:
            kind = rng.choice(("file", "file", "dir"))
            bits = rng.choice(MODES) if kind == "dir" else rng.choice((0o644, 0o600, 0o640, 0o444, 0o000, 0o666, 0o020))
            made.append((f"{name}/{inner}", kind, rng.choice(tuple(PEOPLE)), rng.choice(tuple(GROUPS)), bits))
            if kind == "dir":
                made.append((f"{name}/{inner}/a", "file", rng.choice(tuple(PEOPLE)), "team", 0o644))
    return made


def random_guarded_operation(rng: Random) -> Operation:
    path = "/".join(rng.choice(NAMES) for _ in range(rng.choice((1, 2, 2, 3))))
    name = rng.choice("mkdir rmdir rm touch cp mv mv write create append cat chmod ls rm_tree symlink truncate".split())
    if name in ("cp", "mv"):
        return name, {"source": path, "destination": "/".join(rng.choice(NAMES) for _ in range(rng.choice((1, 2, 2))))}
    more: dict[str, Any] = {}
    if name in ("write", "create", "append"):
        more = {"content": "x\n"}
    elif name == "chmod":
        more = {"mode": rng.choice(("644", "u+x", "go-r", "+w", "700"))}
    elif name == "symlink":
        more = {"target": rng.choice(("a", "b/c", "../a"))}
    elif name == "truncate":
        more = {"size": 0}
    return name, {"path": path, **more}


def built(session: StatefulSession, rows: list[tuple[str, str, str, str, int]], user: str) -> None:
    """The same tree in ours, as root makes it, then the user."""
    world = session.world
    world.begin(False)
    for name, (uid, groups) in PEOPLE.items():
        by_number = {number: group for group, number in GROUPS.items()}
        world.put(User(name, uid, tuple(by_number[number] for number in groups), "/top", "", 0, 0))
    world.end()
    for path, kind, owner, group, mode in rows:
        tool = ("mkdir", {}) if kind == "dir" else ("write_file", {"content": "text\n"})
        assert session.call(tool[0], {"path": path, **tool[1]}).kind == "ok"
        assert session.call("chown", {"path": path, "owner": owner, "group": group}).kind == "ok"
        assert session.call("chmod", {"path": path, "mode": f"{mode:o}"}).kind == "ok"
    assert session.call("switch_user", {"user": user}).value["verified"]


def play(cases: list[dict[str, Any]], top: Path) -> list[Any]:
    """Run every case on the real filesystem as its user; called in a process of its own, as root."""
    told = []
    for number, case in enumerate(cases):
        place = top / str(number)
        work = place / "p/q/w"
        work.mkdir(parents=True)
        for path, kind, owner, group, mode in case["rows"]:
            if kind == "dir":
                (work / path).mkdir()
            else:
                (work / path).write_text("text\n")
            os.chown(work / path, PEOPLE[owner][0], GROUPS[group])
            (work / path).chmod(mode)
        uid, groups = PEOPLE[case["user"]]
        os.chdir(work)
        os.setgroups(groups)
        os.setresgid(groups[0], groups[0], 0)
        os.setresuid(uid, uid, 0)
        results = [real((name, given)) for name, given in case["operations"]]
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        told.append({"results": results, "tree": real_tree(str(place))})
    return told


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("cp") is None,
    reason="only root can act as several users of Linux",
)
def test_permission_bits_decide_as_in_linux() -> None:
    cases, ours_told = [], []
    for seed in range(40):
        rng = Random(seed)
        rows, user = random_world(rng), rng.choice(tuple(PEOPLE))
        session = as_root()
        built(session, rows, user)
        operations, results = [], []
        for _ in range(14):
            operation = random_guarded_operation(rng)
            result = ours(session, operation)
            if result == "EBUSY" or (operation[0] in ("ls", "rm_tree") and result.startswith("EA")):
                continue  # os.listdir and rm -r tell of other errors for the same refusal
            operations.append(operation)
            results.append(result)
        cases.append({"rows": rows, "user": user, "operations": operations})
        ours_told.append({"results": results, "tree": our_tree(session, "/top")})
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own are closed to other users
        Path(folder).chmod(0o755)
        (Path(folder) / "cases.json").write_text(json.dumps(cases))
        done = subprocess.run(
            [sys.executable, __file__, folder], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stderr
        theirs_told = json.loads(done.stdout)
    seen = set()
    for case, mine, theirs in zip(cases, ours_told, theirs_told, strict=True):
        for operation, our, their in zip(case["operations"], mine["results"], theirs["results"], strict=True):
            agreed = our == their if our != "partial" else their != "ok"
            assert agreed, (case["user"], operation, our, their, case["rows"], case["operations"])
            seen.add(our)
        assert mine["tree"] == {path: tuple(node) for path, node in theirs["tree"].items()}, case
    assert {"ok", "EACCES", "EPERM", "ENOENT"} <= seen


# Formats --------------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=30)
members = st.builds(
    Member,
    st.lists(texts.filter(lambda name: name not in (".", "..")), min_size=1, max_size=4).map("/".join),
    st.just("file"),
    st.integers(0, 0o777),
    st.integers(0, 2**33 - 1),
    st.just("root"),
    st.just("root"),
    st.binary(max_size=1500),
)


def packed(given_members: list[Member]) -> tuple[bytes, str]:
    try:
        return pack(given_members), ""
    except ToolError as error:
        return b"", error.code


def unpacked(data: bytes) -> tuple[list[Member], str]:
    try:
        return list(unpack(data, "it")), ""
    except ToolError as error:
        return [], error.code


@settings(max_examples=60, deadline=None)
@given(st.lists(members, max_size=4))
def test_tarfile_reads_what_is_packed_and_unpacking_gives_it_back(given_members: list[Member]) -> None:
    data, code = packed(given_members)
    if code:
        assert code == "ENAMETOOLONG"
        assert any(len(member.name.encode()) > 100 for member in given_members)
        return
    assert len(data) % 10240 == 0
    if given_members:
        assert list(unpack(data, "it")) == given_members
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8") as archive:
        listed = archive.getmembers()
        assert [(one.name, one.mode, one.mtime) for one in listed] == [
            (member.name.rstrip("/"), member.mode, member.mtime) for member in given_members
        ]
        for one, member in zip(listed, given_members, strict=True):
            file = archive.extractfile(one)
            assert file is not None
            assert file.read() == member.data


def test_archives_of_tarfile_and_of_gnu_tar_can_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/page.txt").write_text("hello\n")
    (tmp_path / "site/link").symlink_to("page.txt")
    (tmp_path / "site/page.txt").chmod(0o640)
    expected = {"site/": "dir", "site/page.txt": "file", "site/link": "link"}
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        archive.add(tmp_path / "site", "site")
    subprocess.run(["tar", "cf", "b.tar", "site"], cwd=tmp_path, check=True)
    for name in ("a.tar", "b.tar"):
        found = {member.name: member for member in unpack((tmp_path / name).read_bytes(), name)}
        assert {key.rstrip("/"): member.kind for key, member in found.items()} == {
            key.rstrip("/"): kind for key, kind in expected.items()
        }
        assert found["site/page.txt"].data == b"hello\n"
        assert found["site/page.txt"].mode == 0o640
        assert found["site/link"].target == "page.txt"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_archives_fail_with_bad_archive_and_never_otherwise(data: st.DataObject) -> None:
    two = [Member("a/b", "file", 0o644, 1, data=b"x" * 700), Member("c", "link", 0o777, 1, target="a")]
    whole = bytearray(pack(two))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, 2600))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    found, code = unpacked(cut)
    assert code in ("", "BAD_ARCHIVE")
    assert sum(len(member.data) for member in found) <= len(cut)


line_lists = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=14)


def applied(old: list[str], diff_lines: list[str]) -> list[str]:
    """A naive ``patch``: what a unified diff makes of ``old``."""
    new: list[str] = []
    at = 0
    for line in diff_lines[2:]:
        if line.startswith("@@"):
            start, _, length = line.split()[1][1:].partition(",")
            begin = int(start) - (length != "0")
            new += old[at:begin]
            at = begin
        elif line.startswith("\\"):
            new[-1:] = [new[-1].removesuffix("\n")]
        elif line[0] == "+":
            new.append(line[1:] + "\n")
        else:
            assert old[at].removesuffix("\n") == line[1:]
            if line[0] == " ":
                new.append(line[1:] + "\n")
            at += 1
    return new + old[at:]


def common_length(old: list[str], new: list[str]) -> int:
    """The length of a longest common subsequence, by the textbook's table."""
    row = [0] * (len(new) + 1)
    for line in old:
        before = row[:]
        for at, other in enumerate(new):
            row[at + 1] = before[at] + 1 if line == other else max(before[at + 1], row[at])
    return row[-1]


@settings(max_examples=300, deadline=None)
@given(line_lists, line_lists, st.integers(0, 4))
def test_diffs_are_shortest_and_applying_them_gives_the_new_file(old: list[str], new: list[str], context: int) -> None:
    assert applied(old, unified(old, new, "o", "n", context)) == new
    kept = sum(block[2] - block[1] for block in blocks(old, new) if block[0] == "equal")
    assert kept == common_length(old, new)


@pytest.mark.skipif(shutil.which("patch") is None, reason="the program patch is not installed")
def test_patch_applies_diffs_also_without_a_final_line_end(tmp_path: Path) -> None:
    for number, (old, new) in enumerate((("a\nb", "a\nc"), ("a\n", "a"), ("", "x\ny"), ("a\nb\nc\n", "c\n"))):
        (tmp_path / "file").write_text(old)
        lines = unified(split_lines(old), split_lines(new), "file", "file", 3)
        (tmp_path / "it.diff").write_text("\n".join(lines) + "\n")
        subprocess.run(["patch", "-s", "file", "it.diff"], cwd=tmp_path, check=True, capture_output=True)
        left = tmp_path / "file"  # patch removes a file that becomes empty
        assert (left.read_text() if left.exists() else "") == new, number


def test_a_diff_of_files_that_share_little_is_bounded_and_still_right() -> None:
    rng = Random(1)
    old, new = ([rng.choice("ab") + "\n" for _ in range(6000)] for _ in range(2))
    assert applied(old, unified(old, new, "o", "n", 3)) == new


@settings(max_examples=400, deadline=None)
@given(st.text("ab[]!-*?^", max_size=8), st.text("ab[]!-", max_size=6))
def test_globs_agree_with_fnmatch(pattern: str, name: str) -> None:
    if "[^" in pattern:  # fnmatch takes ^ for itself, a shell for !
        return
    if re.search(r"\[!?\]?[^\]]*-", pattern):  # odd ranges: shells differ, and so do versions of fnmatch
        return
    assert glob(pattern)(name) == fnmatch.fnmatchcase(name, pattern)


def test_globs_of_ranges() -> None:
    assert [name for name in "abcdx-" if glob("[a-c]")(name)] == ["a", "b", "c"]
    assert [name for name in "abcdx-" if glob("[!a-c]")(name)] == ["d", "x", "-"]
    assert [name for name in "a-]" if glob("[]-]")(name)] == ["-", "]"]
    assert not glob("a*" * 60 + "b")("a" * 250)  # many stars: the time is at most pattern times name


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"[ab.](?:[ab.|]|[ab.][*+?]|\([ab]{1,3}\)|\[ab\])*", fullmatch=True), st.text("abc", max_size=8))
def test_expressions_agree_with_re(pattern: str, line: str) -> None:
    assert expression(pattern, False, False)(line) == bool(re.search(pattern, line))


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|aa)+$", "(?:a?){30}a{30}", "(.*a){20}", "(x+x+)+y"])
def test_expressions_that_make_backtracking_engines_hang_are_quick(pattern: str) -> None:
    expression(pattern, False, False)("a" * 5000)  # hangs for ever, or for minutes, in an engine that backtracks


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "(?=a)", r"(a)\1", r"\w{1000}", "(a{90}){90}", "*", "a{99999}"])
def test_expressions_that_are_none_fail_with_bad_pattern(pattern: str) -> None:
    with pytest.raises(ToolError) as raised:
        expression(pattern, False, False)
    assert raised.value.code == "BAD_PATTERN"


@pytest.mark.skipif(shutil.which("chmod") is None, reason="the program chmod is not installed")
def test_modes_agree_with_the_program_chmod(tmp_path: Path) -> None:
    file, rng = tmp_path / "file", Random(3)
    file.write_text("")
    previous = os.umask(0o022)
    try:
        for _ in range(60):
            clauses = [
                rng.choice(("", "u", "g", "o", "a", "ug", "uo"))
                + rng.choice("+-=")
                + "".join(rng.sample("rwxX", rng.randrange(4)))
                for _ in range(rng.randrange(1, 3))
            ]
            before, change = rng.choice((0o644, 0o755, 0o600, 0o000, 0o777, 0o421)), ",".join(clauses)
            file.chmod(before)
            # Without a letter for whom, chmod complains of bits that the umask keeps it from clearing; it still acts.
            subprocess.run(["chmod", "--", change, str(file)], check=False, capture_output=True)
            assert f"{changed_mode(before, change, False):o}" == f"{file.stat().st_mode & 0o7777:o}", (before, change)
    finally:
        os.umask(previous)


if __name__ == "__main__":
    os.umask(0o022)
    TOP = Path(sys.argv[1])
    print(json.dumps(play(json.loads((TOP / "cases.json").read_text()), TOP)))
