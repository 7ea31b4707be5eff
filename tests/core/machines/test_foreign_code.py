"""Code of others in a process: what it returns is copied, and what it does to its process costs no more than a call."""

from __future__ import annotations

import math
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.errors import InfrastructureFailure, UsageError
from callwright.machines.foreign_code.child import Opaque, decode, encode
from callwright.machines.foreign_code.code import ForeignCode, ForeignLimits, ForeignLost, ForeignRaised

SCORER = """
import os, signal, subprocess, sys, threading, time

times = 0

def same(value): return value
def count():
    global times
    times += 1
    return times
def mutate(items):
    items.append(1)
    return len(items)
def sleep(seconds): time.sleep(seconds)
def spin():
    while True: pass
def leave(status): os._exit(status)
def exits(): sys.exit("no")
def kill(): os.kill(os.getpid(), signal.SIGSEGV)
def fails(): raise KeyError("x")
def prints():
    print("{" * 100_000); sys.stdout.flush()
    os.write(1, b"{" * 100_000); os.write(2, b"}" * 100_000)
    return "printed"
def shuts():
    os.closerange(3, 256)
    return 1
def garbles():
    for handle in range(3, 64):
        try: os.write(handle, b"x" * 64)
        except OSError: pass
    return 1
def eats(count): return len(bytearray(count))
def forks():
    if os.fork() == 0:
        return "the copy"
    os.wait()
    return "the maker"
def leaves_a_copy(sign):
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    return os.getpid()
def dies_and_leaves_a_copy():
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    os._exit(3)
def starts(sign):
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid
def thread():
    threading.Thread(target=spin).start()
    return 1
def where(): return os.getcwd(), sorted(os.environ), sys.path[0]
def pid(): return os.getpid()
class Check:
    @staticmethod
    def twice(value): return 2 * value
class Odd: pass
def odd(): return [Odd(), 1]
def named(*, a, b=2): return [a, b]
def deep():
    made = []
    for _ in range(100_000): made = [made]
    return made
def large(count): return "x" * count
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("others")
    (made / "scorer.py").write_text(SCORER)
    (made / "deeper").mkdir()
    (made / "deeper" / "odd-name.py").write_text("import scorer\ndef f(x): return scorer.same(x) + 1\n")
    (made / "broken.py").write_text("import nothing_by_this_name\n")
    return made


@pytest.fixture
def code(folder: Path) -> Iterator[ForeignCode]:
    with ForeignCode(folder) as made:
        yield made


def gone(process: int) -> bool:
    """Whether a process has ended; its maker may not have asked after it yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it never came to that")


# Values ---------------------------------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers() | st.just("$int"), inner)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers() | st.text())
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_values_stay_what_they_are(value: Any) -> None:
    import json

    again = decode(json.loads(json.dumps(encode(value))))
    assert again == value
    assert repr(type(again)).replace("frozenset", "set") == repr(type(value)).replace("frozenset", "set")


def test_values_are_the_same_in_the_process(code: ForeignCode) -> None:
    for value in (
        [1, (2.5, {"a": None}), {3, 4}, b"\x00", "\ud800", {1: (2,), "$x": []}],
        10**5000,
        -(10**5000),
        math.inf,
        "x" * 3_000_000,
        [[{}]] * 50_000,
    ):
        assert code.call("scorer:same", value) == value
    assert math.isnan(code.call("scorer:same", math.nan))
    assert code.call("scorer:odd")[0].type_name == "Odd"
    assert isinstance(code.call("scorer:odd")[0], Opaque)


def test_nothing_that_a_call_changes_is_changed_here(code: ForeignCode) -> None:
    items: list[int] = []
    assert [code.call("scorer:mutate", items) for _ in range(3)] == [1, 1, 1]
    assert items == []


def test_functions_are_found_by_module_by_file_and_by_dots(code: ForeignCode) -> None:
    assert code.call("scorer:Check.twice", 4) == 8
    assert code.call("deeper/odd-name.py:f", 4) == 5
    assert code.call("scorer:named", a=1) == [1, 2]
    assert [code.call("scorer:count") for _ in range(3)] == [1, 2, 3]  # one process serves many calls


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("scorer:none", "AttributeError"),
        ("scorer:times", "TypeError: scorer:times is no function"),
        ("broken:f", "ModuleNotFoundError: No module named 'nothing_by_this_name'"),
        ("missing:f", "ModuleNotFoundError"),
        ("missing.py:f", "FileNotFoundError"),
        ("scorer", "names no function"),
    ],
)
def test_functions_that_cannot_be_loaded_are_said(code: ForeignCode, function: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        code.call(function)
    assert code.call("scorer:same", 1) == 1


def test_arguments_that_cannot_be_copied_are_refused(code: ForeignCode) -> None:
    with pytest.raises(UsageError, match="cannot be copied"):
        code.call("scorer:same", [object()])
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(UsageError, match="nested too deeply"):
        code.call("scorer:same", deep)
    assert code.call("scorer:same", "$opaque") == "$opaque"


# What it does to its process ------------------------------------------------------------------------------------------


def test_what_it_raises_is_told_with_its_place(code: ForeignCode) -> None:
    with pytest.raises(ForeignRaised, match="scorer:fails raised KeyError") as raised:
        code.call("scorer:fails")
    assert (raised.value.kind, raised.value.said) == ("KeyError", "'x'")
    assert raised.value.where.endswith("in fails")
    with pytest.raises(ForeignRaised, match="SystemExit: no"):
        code.call("scorer:exits")
    with pytest.raises(ForeignRaised, match="RecursionError"):
        code.call("scorer:deep")
    assert code.call("scorer:count") == 1


@pytest.mark.parametrize(
    ("function", "given", "code_of", "said"),
    [
        ("leave", (3,), "exited", "scorer:leave ended its process with status 3"),
        ("leave", (0,), "exited", "status 0"),
        ("kill", (), "exited", "SIGSEGV"),
        ("shuts", (), "exited", "scorer:shuts"),
        ("garbles", (), "garbled", "scorer:garbles"),
        ("dies_and_leaves_a_copy", (), "exited", "status 3"),
    ],
)
def test_one_that_dies_has_no_answer_and_the_next_has(
    code: ForeignCode, function: str, given: tuple[Any, ...], code_of: str, said: str
) -> None:
    with pytest.raises(ForeignLost, match=said) as lost:
        code.call(f"scorer:{function}", *given)
    assert lost.value.code == code_of
    assert isinstance(lost.value, InfrastructureFailure)  # which masks, and is never wrong
    assert code.call("scorer:count") == 1


@pytest.mark.parametrize(("function", "given"), [("sleep", (600,)), ("spin", ())])
def test_one_that_hangs_is_killed(code: ForeignCode, function: str, given: tuple[Any, ...]) -> None:
    process = code.call("scorer:pid")
    with pytest.raises(ForeignLost, match=f"scorer:{function} took more than 0.5 s|processor time") as lost:
        code.call(f"scorer:{function}", *given, time_limit=0.5)
    assert lost.value.code in ("timeout", "exited")
    assert gone(process)
    assert code.call("scorer:count") == 1


def test_one_that_eats_memory_has_no_answer(folder: Path) -> None:
    with ForeignCode(folder, limits=ForeignLimits(memory=2**28)) as code:
        assert code.call("scorer:eats", 2**20) == 2**20
        with pytest.raises(ForeignLost, match="more memory") as lost:
            code.call("scorer:eats", 2**29)
        assert lost.value.code == "memory"
        assert code.call("scorer:eats", 2**20) == 2**20


def test_results_are_bounded(folder: Path) -> None:
    with ForeignCode(folder, limits=ForeignLimits(result=1000)) as code:
        with pytest.raises(ForeignRaised, match="ResultTooLarge"):
            code.call("scorer:large", 10**6)
        assert code.call("scorer:large", 900) == "x" * 900


def test_what_it_prints_goes_nowhere(code: ForeignCode, capfd: pytest.CaptureFixture[str]) -> None:
    assert code.call("scorer:prints") == "printed"
    assert code.call("scorer:count") == 1
    assert capfd.readouterr() == ("", "")


def test_a_copy_that_comes_back_does_not_answer(code: ForeignCode) -> None:
    assert [code.call("scorer:forks") for _ in range(3)] == ["the maker"] * 3
    assert code.call("scorer:count") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_all_that_it_started_ends_with_it(folder: Path) -> None:
    with ForeignCode(folder) as code:
        started = code.call("scorer:starts", "")
        own = code.call("scorer:leaves_a_copy", "")
        assert not gone(started)
        group = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit() and _group(one) == own]
        assert len(group) == 3
        code.call("scorer:thread")
    until(lambda: all(map(gone, group)))


def _group(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[2])
    except OSError:
        return 0


def test_it_sees_no_variables_and_no_folder_of_ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "s")
    with ForeignCode(folder, variables={"SCORER_DATA": "/data"}) as code:
        where, variables, path = code.call("scorer:where")
        assert "SECRET_KEY" not in variables
        assert "SCORER_DATA" in variables
        assert path == str(folder)
        assert where not in (str(Path.cwd()), str(folder))
        assert Path(where).is_dir()
    assert not Path(where).exists()


def test_each_process_makes_so_many_calls(folder: Path) -> None:
    with ForeignCode(folder, limits=ForeignLimits(calls=2)) as code:
        assert [code.call("scorer:count") for _ in range(5)] == [1, 2, 1, 2, 1]


def test_several_processes_work_at_the_same_time(folder: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ForeignCode(folder, processes=2) as code, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda value: code.call("scorer:same", value), range(200)))
        assert found == list(range(200))
        assert len(code._begun) <= 2


# Where it runs --------------------------------------------------------------------------------------------------------


def test_another_interpreter_says_its_version(folder: Path, tmp_path: Path) -> None:
    with ForeignCode(folder) as code:
        assert code.version() == sys.version_info[:3]
    for other, said in (("/nothing/python", "cannot be started"), ("/bin/true", "no Python interpreter that can be")):
        with ForeignCode(folder, interpreter=other) as wrong, pytest.raises(UsageError, match=said):
            wrong.call("scorer:count")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "own")], check=True)
    packages = next((tmp_path / "own" / "lib").iterdir()) / "site-packages"
    (packages / "only_here.py").write_text("def f(): return 'here'\n")
    with ForeignCode(folder, interpreter=tmp_path / "own" / "bin" / "python") as code:
        assert code.call("only_here:f") == "here"
    with ForeignCode(folder) as code, pytest.raises(UsageError, match="only_here"):
        code.call("only_here:f")


def test_settings_that_are_none_are_refused(folder: Path) -> None:
    for wrong in ({"processes": 0}, {"paths": [folder / "no"]}):
        with pytest.raises(UsageError):
            ForeignCode(folder, **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        ForeignLimits(time=0)
    closed = ForeignCode(folder)
    closed.close()
    closed.close()
    with pytest.raises(UsageError, match="closed"):
        closed.call("scorer:count")


def test_a_copy_of_the_settings_has_processes_of_its_own(folder: Path) -> None:
    with ForeignCode(folder) as code:
        first = code.call("scorer:pid")
        with pickle.loads(pickle.dumps(code)) as other:
            assert other.call("scorer:pid") != first
        assert code.call("scorer:pid") == first


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("busy", ["scorer:spin", ""])
def test_processes_end_with_a_maker_that_is_killed(folder: Path, tmp_path: Path, busy: str) -> None:
    script = f"""
import sys, threading, time
from pathlib import Path
from callwright.machines.foreign_code.code import ForeignCode
code = ForeignCode({str(folder)!r}, processes=2)
Path({str(tmp_path / "pid")!r}).write_text(str(code.call("scorer:pid")))
if {busy!r}:
    threading.Thread(target=code.call, args=({busy!r},), daemon=True).start()
time.sleep(0.2)
print("ready", flush=True)
time.sleep(600)
"""
    maker = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert maker.stdout is not None
    assert maker.stdout.readline() == b"ready\n"
    process = int((tmp_path / "pid").read_text())
    assert not gone(process)
    os.kill(maker.pid, signal.SIGKILL)
    maker.wait()
    maker.stdout.close()
    until(lambda: gone(process))
