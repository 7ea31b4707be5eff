"""Sources: what is fetched is what was pinned, whole or not at all, wherever it was stopped, and stays in place."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from attrs import evolve
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import ComponentError, DataError, InfrastructureFailure, UsageError
from callwright.measuring.benchmark import CorpusBenchmark
from callwright.measuring.sources.getting import RECORD, get, missing
from callwright.measuring.sources.index import fetch, place_of
from callwright.measuring.sources.source import Source, sources_of
from callwright.plugins import load_plugins

TASKS = "\n".join(json.dumps({"id": number}) for number in range(5000))


def wheel(**more: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        file.writestr("odd_bench/data/tasks.json", TASKS)
        file.writestr("odd_bench/data/deep/answers.json", "[]")
        file.writestr("odd_bench/__init__.py", "raise SystemExit('it was run')")
        file.writestr("odd_bench-1.0.dist-info/METADATA", "Name: odd-bench")
        for name, text in more.items():
            file.writestr(name, text)
    return buffer.getvalue()


def sdist(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for member, text in members:
            member.size = len(text)
            file.addfile(member, io.BytesIO(text))
    return buffer.getvalue()


def pinned(archive: bytes, file: str = "odd_bench-1.0-py3-none-any.whl", **more: Any) -> Source:
    return Source("Odd_Bench", file, hashlib.sha256(archive).hexdigest(), len(archive), **more)


WHEEL = wheel()
SOURCE = pinned(WHEEL, take={"odd_bench/data/": "v1"}, licence="MIT")
FILES = {"v1/tasks.json": TASKS, "v1/deep/answers.json": "[]"}


def index_of(folder: Path, archive: bytes, file: str = SOURCE.file, said: str = "") -> Path:
    """A package index in a folder."""
    (folder / "odd-bench").mkdir(parents=True)
    (folder / "odd-bench" / "index.html").write_text(
        f'<html><a href="../files/other-1.0.whl">other</a><a href="../files/{file}{said}">{file}</a></html>'
    )
    (folder / "files").mkdir()
    (folder / "files" / file).write_bytes(archive)
    return folder


def held(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(errors="replace")
        for path in folder.rglob("*")
        if path.is_file() and path.name != RECORD
    }


# From where -----------------------------------------------------------------------------------------------------------


class Server:
    """An index on this machine that may be slow of mind: it knows no ranges, cuts off, or is gone."""

    def __init__(self, archive: bytes) -> None:
        self.archive, self.ranges, self.cut = archive, True, 0
        self.asked: list[str | None] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/simple/odd-bench/":
                    body = f'<a href="/files/{SOURCE.file}#sha256={SOURCE.sha256}">x</a>'.encode()
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(body)
                    return
                if self.path != f"/files/{SOURCE.file}":
                    self.send_error(404)
                    return
                wanted = self.headers.get("Range")
                server.asked.append(wanted)
                begin = int(wanted[6:-1]) if wanted and server.ranges else 0
                body = server.archive[begin:]
                self.send_response(206 if begin else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: server.cut] if server.cut else body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.index = f"http://127.0.0.1:{self._server.server_port}/simple"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(WHEEL)
    yield made
    made.close()


def test_what_is_taken_is_unpacked_and_known_again(server: Server, tmp_path: Path) -> None:
    heard: list[int] = []
    files = get(SOURCE, tmp_path, server.index, heard.append)
    assert held(tmp_path) == FILES
    assert files == {name: hashlib.sha256(text.encode()).hexdigest() for name, text in FILES.items()}
    assert (heard[0], heard[-1], heard) == (0, len(WHEEL), sorted(heard))
    assert missing([SOURCE], tmp_path) == []
    (tmp_path / "v1" / "tasks.json").write_text("changed")
    assert missing([SOURCE], tmp_path) == [SOURCE]
    assert missing([evolve(SOURCE, sha256="0" * 64)], tmp_path) == [evolve(SOURCE, sha256="0" * 64)]


def test_a_folder_is_an_index_too(tmp_path: Path) -> None:
    index = index_of(tmp_path / "index", WHEEL, said=f"#sha256={SOURCE.sha256}")
    for number, address in enumerate((str(index), index.as_uri(), str(index / "files"))):
        get(SOURCE, tmp_path / str(number), address)
        assert held(tmp_path / str(number)) == FILES


@pytest.mark.parametrize("ranges", [True, False])
def test_what_was_stopped_is_gone_on_with(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.ranges = ranges
    partial = tmp_path / ".partial" / SOURCE.file
    partial.parent.mkdir()
    partial.write_bytes(WHEEL[:1000])
    get(SOURCE, tmp_path, server.index)
    assert server.asked == ["bytes=1000-"]
    assert held(tmp_path) == FILES


def test_a_connection_that_is_cut_off_again_and_again_comes_to_the_end(server: Server, tmp_path: Path) -> None:
    server.cut = len(WHEEL) // 5
    get(SOURCE, tmp_path, server.index)
    assert held(tmp_path) == FILES
    assert len(server.asked) >= 5


def test_one_that_never_goes_on_is_given_up_and_what_came_stays(server: Server, tmp_path: Path) -> None:
    server.cut, server.ranges = 1000, False
    with pytest.raises(InfrastructureFailure, match="give the command again"):
        get(SOURCE, tmp_path, server.index)
    assert (tmp_path / ".partial" / SOURCE.file).read_bytes() == WHEEL[:1000]
    server.cut = 0
    get(SOURCE, tmp_path, server.index)
    assert held(tmp_path) == FILES


def test_indexes_without_it_are_said(server: Server, tmp_path: Path) -> None:
    for index, error, said in (
        (server.index[:-1], DataError, "status 404"),
        ("http://127.0.0.1:9/simple", InfrastructureFailure, "cannot be reached"),
        (str(tmp_path / "no"), UsageError, "no package index"),
        (str(tmp_path), DataError, "cannot be read"),
        ("ftp://127.0.0.1/simple", UsageError, "no package index"),
    ):
        with pytest.raises(error, match=said):
            place_of(SOURCE, index)
    with pytest.raises(DataError, match=r"has no odd_bench-2\.0\.whl"):
        place_of(evolve(SOURCE, file="odd_bench-2.0.whl"), server.index)


def test_a_page_cannot_send_elsewhere(tmp_path: Path) -> None:
    index = index_of(tmp_path / "index", WHEEL)
    (index / "odd-bench" / "index.html").write_text(f'<a href="ftp://x/{SOURCE.file}">x</a>')
    with pytest.raises(DataError, match="not followed"):
        place_of(SOURCE, str(index))


# Only what was pinned -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [WHEEL[:-1] + b"x", WHEEL + b"x", WHEEL[:-1]], ids=["changed", "longer", "shorter"])
def test_another_file_is_refused_and_nothing_of_it_stays(tmp_path: Path, other: bytes) -> None:
    index = index_of(tmp_path / "index", other)
    with pytest.raises((DataError, InfrastructureFailure)) as refused:
        get(SOURCE, tmp_path / "data", str(index))
    if len(other) >= len(WHEEL):
        assert f"not {SOURCE.sha256}" in str(refused.value)
        assert not (tmp_path / "data" / ".partial" / SOURCE.file).exists()
    assert held(tmp_path / "data").keys() <= {f".partial/{SOURCE.file}"}


def test_an_index_that_says_another_digest_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    index = index_of(tmp_path / "index", WHEEL, said=f"#sha256={'0' * 64}")
    with pytest.raises(DataError, match="is pinned"):
        get(SOURCE, tmp_path / "data", str(index))
    assert held(tmp_path / "data") == {}


def test_no_more_is_written_than_was_said(tmp_path: Path) -> None:
    (tmp_path / "endless").write_bytes(b"x" * 10**6)
    fetch((tmp_path / "endless").as_uri(), tmp_path / "partial", 1000, lambda have: None)
    assert (tmp_path / "partial").stat().st_size == 1001


def test_files_of_somebody_else_are_not_written_over(tmp_path: Path) -> None:
    index = index_of(tmp_path / "index", WHEEL)
    (tmp_path / "data" / "v1").mkdir(parents=True)
    (tmp_path / "data" / "v1" / "tasks.json").write_text("mine")
    with pytest.raises(DataError, match="another file than the archive's"):
        get(SOURCE, tmp_path / "data", str(index))
    assert (tmp_path / "data" / "v1" / "tasks.json").read_text() == "mine"
    assert not (tmp_path / "data" / "v1" / "deep").exists()
    (tmp_path / "data" / "v1" / "tasks.json").write_text(TASKS)
    get(SOURCE, tmp_path / "data", str(index))
    assert held(tmp_path / "data") == FILES


def _link(kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo("odd/link")
    member.type, member.linkname = kind, "/etc/passwd"
    return member


ESCAPES = [
    wheel(**{"../out": "x"}),
    wheel(**{"/out": "x"}),
    wheel(**{"a/../../out": "x"}),
    wheel(**{"a\\..\\out": "x"}),
    wheel(**{"C:/out": "x"}),
    sdist((tarfile.TarInfo("../out"), b"x")),
    sdist((tarfile.TarInfo("/out"), b"x")),
    sdist((_link(tarfile.SYMTYPE), b"")),
    sdist((_link(tarfile.LNKTYPE), b"")),
    sdist((_link(tarfile.FIFOTYPE), b"")),
    sdist((tarfile.TarInfo("twice"), b"x"), (tarfile.TarInfo("twice"), b"y")),
    b"no archive",
    WHEEL[:200],
    sdist((tarfile.TarInfo("a"), b"x" * 4000))[:60],
]


@pytest.mark.parametrize("archive", ESCAPES, ids=range(len(ESCAPES)))
def test_archives_that_leave_their_folder_or_are_none_are_refused_whole(tmp_path: Path, archive: bytes) -> None:
    source = pinned(archive)
    index = index_of(tmp_path / "index", archive)
    with pytest.raises(DataError):
        get(source, tmp_path / "data", str(index))
    assert not (tmp_path / "out").exists()
    assert held(tmp_path / "data").keys() <= {f".partial/{source.file}"}
    assert [path.name for path in (tmp_path / "data").iterdir() if path.name != ".partial"] == []


def test_an_archive_does_not_grow_beyond_what_was_said(tmp_path: Path) -> None:
    index = index_of(tmp_path / "index", WHEEL)
    with pytest.raises(DataError, match=r"more than the 1,000 bytes"):
        get(evolve(SOURCE, unpacked=1000), tmp_path / "data", str(index))


def test_sdists_are_unpacked_too(tmp_path: Path) -> None:
    archive = sdist((tarfile.TarInfo("odd-1.0/data/a.json"), b"[1]"), (tarfile.TarInfo("odd-1.0/setup.py"), b"1 / 0"))
    source = pinned(archive, "odd-1.0.tar.gz", take={"odd-1.0/data/a.json": "only", "odd-1.0/nothing/": "x"})
    index = index_of(tmp_path / "index", archive, source.file)
    get(source, tmp_path / "data", str(index))
    assert held(tmp_path / "data") == {"only/a.json": "[1]"}
    with pytest.raises(DataError, match="holds nothing of"):
        get(evolve(source, take={"odd-2.0/": ""}), tmp_path / "other", str(index))


@pytest.mark.parametrize(
    "wrong",
    [{"sha256": "abc"}, {"file": "../x.whl"}, {"file": "x.exe"}, {"take": {"a": "../b"}}, {"take": {"/a": "b"}}],
)
def test_declarations_that_are_none_are_a_bug_of_the_benchmark(wrong: dict[str, Any]) -> None:
    with pytest.raises(ComponentError, match="bug"):
        evolve(SOURCE, **wrong)


# As a command ---------------------------------------------------------------------------------------------------------


class Odd:
    """A benchmark with sources, which nobody can make before they are there."""

    sources: ClassVar = {"2": [evolve(SOURCE, take={"odd_bench/data/": "v2"})], "1": [SOURCE]}

    def __init__(self, data: str, version: str | None = None) -> None:
        raise AssertionError("it is not made to know its sources")


class Plain:
    """One that needs nothing."""


class Here(CorpusBenchmark):
    """One that can be made, and has a source."""

    name = "here"
    sources: ClassVar = {"1": [SOURCE]}

    def __init__(self, version: str | None = None) -> None:
        super().__init__(cw.corpus("toolworld-mini-v1"), "evaluation", version)


@pytest.fixture(scope="module")
def app() -> App:
    lazies = [cw.Lazy("odd", Odd), cw.Lazy("plain", Plain), cw.Lazy("here", Here)]
    return App(registry=load_plugins(extra={"odd": SimpleNamespace(callwright_benchmarks=cw.hookimpl(lambda: lazies))}))


def invoke(app: App, *words: str | Path) -> Result:
    return CliRunner().invoke(root, [str(word) for word in words], obj=app, catch_exceptions=False)


def test_the_command_says_the_size_first_and_fetches_once(app: App, server: Server, tmp_path: Path) -> None:
    words = ("benchmark", "get", "odd:1", "--data", tmp_path / "data", "--index", server.index)
    first = invoke(app, *words)
    assert (first.exit_code, first.stdout) == (0, f"{SOURCE.file} is in {tmp_path / 'data'}\n")
    assert f"Odd_Bench: {SOURCE.file}, 64,482 bytes, MIT" in first.stderr
    again = invoke(app, *words, "--json")
    assert json.loads(again.stdout)["sources"] == [
        {"package": "Odd_Bench", "file": SOURCE.file, "sha256": SOURCE.sha256, "fetched": False}
    ]
    assert again.stderr == ""
    assert len(server.asked) == 1
    assert held(tmp_path / "data") == FILES


def test_the_first_version_is_fetched_where_none_is_named(app: App, server: Server, tmp_path: Path) -> None:
    invoke(app, "benchmark", "get", "odd", "--data", tmp_path, "--index", server.index)
    assert held(tmp_path).keys() == {"v2/tasks.json", "v2/deep/answers.json"}
    assert sources_of(Odd, "odd", None)[0] == "2"
    for words, said in (
        (("odd:7", "--data", tmp_path), "odd has no version '7'; there are: 2, 1"),
        (("plain", "--data", tmp_path), "plain declares nothing that a package index holds"),
        (("odd",), "Missing option '--data'"),
    ):
        refused = invoke(app, "benchmark", "get", *words)
        assert refused.exit_code == 2
        assert said in refused.stderr


def test_a_benchmark_that_is_shown_says_what_can_be_fetched(app: App) -> None:
    shown = invoke(app, "benchmark", "show", "here")
    get = f"callwright benchmark get here:1 --data DIR fetches {SOURCE.file}, 64,482 bytes"
    assert get in " ".join(shown.stdout.split())
    told = json.loads(invoke(app, "benchmark", "show", "here", "--json").stdout)
    assert told["sources"] == [{"file": SOURCE.file, "size": 64482, "sha256": SOURCE.sha256}]
