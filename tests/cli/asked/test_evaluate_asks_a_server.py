"""``callwright evaluate`` of a sampler that asks a server: a window of requests, rows in order, what was paid."""

from __future__ import annotations

import json
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.commands.file_formats import schema_of
from callwright.episodes.sampling import draw_seed
from callwright.plugins import load_plugins

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
pytest.importorskip("aiolimiter", reason="needs the client: pip install 'callwright[openai]'")

SUPPORT = Path(__file__).parents[2] / "core" / "support"
if str(SUPPORT) not in sys.path:
    sys.path.insert(0, str(SUPPORT))

from stand_in_server import Asked, Reply, StandIn, chat, usage  # noqa: E402

Invoke = Callable[..., Result]
PRICES = ("--sampler-option", "price_prompt=1.0", "--sampler-option", "price_completion=2.0")


@pytest.fixture(scope="module")
def registry() -> cw.Registry:
    import cli_fakes

    import callwright_plugins.json_ir
    import callwright_plugins.openai_sampler
    import callwright_plugins.report

    modules: dict[str, Any] = {
        "json-ir": callwright_plugins.json_ir,
        "openai-sampler": callwright_plugins.openai_sampler,
        "report": callwright_plugins.report,
        "fakes": cli_fakes,
    }
    return load_plugins(extra=modules, entry_points=False)


def answers(asked: Asked) -> dict[str, Any]:
    """An answer that hangs on the question: a thought of its own length, never the same for two tasks."""
    draw = random.Random(asked.body["seed"])  # which is the task's own
    program = cw.Program()
    text = cw.parser("json").render(program).replace("<think>", f"<think>{'so ' * draw.randrange(9)}", 1)
    return chat(text, counted=usage(draw.randrange(500, 900), len(text), cached=draw.randrange(5), reasoning=2))


@frozen
class Whole:
    """An evaluation that nothing stopped: its folder, its result, and what the server put on the bill."""

    folder: Path
    result: dict[str, Any]
    cost: float


@pytest.fixture(scope="module")
def whole(registry: cw.Registry, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """What all others are held against."""
    folder = tmp_path_factory.mktemp("whole") / "e"
    with StandIn(answers) as server:
        arguments = words(server, folder, *PRICES, "--json")
        done = CliRunner().invoke(root_command, arguments, obj=App(registry=registry), catch_exceptions=False)
        assert done.exit_code == 0, done.stderr
        return Whole(folder, json.loads(done.stdout), cost_of(server))


@pytest.fixture
def serve() -> Iterator[Callable[..., StandIn]]:
    running: list[StandIn] = []

    def begin(*arguments: Any, **options: Any) -> StandIn:
        running.append(StandIn(*arguments, **options))
        return running[-1]

    yield begin
    for one in running:
        one.close()


def words(server: StandIn, folder: Path | None = None, *more: str, concurrency: int = 4) -> list[str]:
    given = {"model": "m", "base_url": server.url, "concurrency": concurrency, "retries": 0}
    options = [word for key, value in given.items() for word in ("--sampler-option", f"{key}={value}")]
    output = ["-o", str(folder)] if folder else []
    return [*"evaluate --corpus sums-v1 --corpus-option count=60 --sampler openai".split(), *options, *output, *more]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    path = folder / "verdicts.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def seed_of(row: dict[str, Any]) -> int:
    """The seed that the sampler sends for the task of a row."""
    return draw_seed(0, row["task"])


def wait_for(what: Callable[[], Any], seconds: float = 300) -> Any:
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)
    return found


class Held:
    """A server that answers after a moment that is drawn, and only so many requests of one that is to be killed."""

    def __init__(self, serve: Any, script: Callable[[Asked], Any], draw: random.Random) -> None:
        self.most = float("inf")
        self.server: StandIn = serve(lambda asked: Reply(script(asked), after=draw.random() * 0.1, until=self.may))

    def may(self) -> bool:
        """Whether another one is answered."""
        return self.server.answered < self.most

    def kill_after(self, process: Any, count: int) -> str:
        """Kill it when so many of its requests are answered; what it said."""
        goal = self.most = self.server.answered + count
        wait_for(lambda: self.server.answered >= goal)
        process.kill()
        said: str = process.communicate()[1]
        self.most = float("inf")
        wait_for(lambda: self.server.now == 0)  # answers to it alone
        return said


# The window -----------------------------------------------------------------------------------------------------------


def test_a_slow_task_holds_back_rows_and_no_requests(invoke: Invoke, serve: Any, tmp_path: Path) -> None:
    """All others are asked while the third one waits; its row and theirs follow when it is there."""
    folder = tmp_path / "e"
    rows_meanwhile: list[int] = []

    def all_others_are_answered() -> bool:
        """And the rows before it are there; none after it comes before it."""
        verdicts = folder / "verdicts.jsonl"
        rows = verdicts.read_bytes().count(b"\n") if server.answered >= 59 and verdicts.exists() else 0
        if rows < 2:
            return False
        rows_meanwhile.append(rows)
        return True

    def script(asked: Asked) -> Reply:
        return Reply(answers(asked), until=all_others_are_answered if "twice 2 plus" in asked.last else None)

    server = serve(script)
    result = invoke(*words(server, folder, "--batch", "5"))
    assert result.exit_code == 0, result.output
    assert [row["id"] for row in rows_of(folder)] == [f"validation-{n}" for n in range(60)]
    assert rows_meanwhile == [2]
    assert server.most <= 4


def test_as_many_are_under_way_as_the_sampler_may_have(invoke: Invoke, serve: Any) -> None:
    """``concurrency`` is not held down by ``--batch``: no answer comes before 50 requests are there."""
    server = serve(lambda asked: Reply(answers(asked), until=lambda: server.most >= 50))
    assert invoke(*words(server, None, "--batch", "8", concurrency=50)).exit_code == 0
    assert server.most == 50


@pytest.mark.parametrize(("concurrency", "most"), [(9, 8), (1, 2)])
def test_workers_share_what_may_be_under_way(invoke: Invoke, serve: Any, concurrency: int, most: int) -> None:
    """Half of it is for each of two, and at least one."""
    server = serve(lambda asked: Reply(answers(asked), until=lambda: server.most >= most))
    more = ("--workers", "2", "--executor", "thread", "--batch", "30")
    assert invoke(*words(server, None, *more, concurrency=concurrency)).exit_code == 0
    assert server.most == most


@pytest.mark.parametrize("more", [("--workers", "2", "--executor", "thread"), ("--workers", "2"), ("--batch", "7")])
def test_workers_and_batches_make_the_same_evaluation(
    invoke: Invoke, serve: Any, tmp_path: Path, whole: Whole, more: Sequence[str]
) -> None:
    server = serve(answers)
    result = invoke(*words(server, tmp_path / "several", *PRICES, "--json", *more))
    assert result.exit_code == 0, result.output
    assert server.most <= 4  # also of all workers together
    assert "60 requests" in result.stderr  # of all processes together
    assert f"cost {whole.result['usage']['cost']:g}" in result.stderr
    assert json.loads(result.stdout) == whole.result
    assert (whole.folder / "verdicts.jsonl").read_bytes() == (tmp_path / "several/verdicts.jsonl").read_bytes()


# What was paid --------------------------------------------------------------------------------------------------------


def test_each_row_and_the_result_say_what_was_asked_and_paid(invoke: Invoke, serve: Any, tmp_path: Path) -> None:
    import jsonschema_rs

    folder = tmp_path / "e"
    server = serve(answers)
    result = invoke(*words(server, folder, *PRICES, "--json"))
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    paid = [answers(asked)["usage"] for asked in server.asked]
    expected = {
        "requests": 60,
        "prompt_tokens": sum(one["prompt_tokens"] for one in paid),
        "cached_tokens": sum(one.get("prompt_tokens_details", {}).get("cached_tokens", 0) for one in paid),
        "completion_tokens": sum(one["completion_tokens"] for one in paid),
        "reasoning_tokens": 120,
        "cost": round(sum(one["prompt_tokens"] + 2 * one["completion_tokens"] for one in paid) / 1e6, 9),
    }
    assert found["usage"] == expected
    assert json.loads((folder / "evaluation.json").read_text()) == found
    row_schema = jsonschema_rs.validator_for(schema_of("verdicts"))
    for row in rows_of(folder):
        row_schema.validate(row)
        (own,) = [one for one, asked in zip(paid, server.asked, strict=True) if asked.body["seed"] == seed_of(row)]
        assert row["usage"]["requests"] == 1
        assert row["usage"]["prompt_tokens"] == own["prompt_tokens"]
        assert row["usage"]["cost"] == round((own["prompt_tokens"] + 2 * own["completion_tokens"]) / 1e6, 9)
    jsonschema_rs.validator_for(schema_of("result")).validate(found)
    assert {"requests", "cost", "cached_tokens"} <= set(schema_of("result")["properties"]["usage"]["properties"])
    again = invoke(*words(server, folder, *PRICES, "--json"))
    assert json.loads(again.stdout) == found
    assert len(server.asked) == 60
    page = invoke("report", folder)
    assert page.exit_code == 0
    text = (folder / "report.html").read_text()
    counted = f"{expected['prompt_tokens']:,} prompt ({expected['cached_tokens']:,} cached), "
    assert counted + f"{expected['completion_tokens']:,} completion (120 reasoning)" in text
    assert f"<dt>Requests</dt><dd>60</dd></div><div><dt>Tokens</dt><dd>{counted}" in text
    assert f"<dt>Cost</dt><dd>{expected['cost']:.6g}</dd>" in text


UNDER_WAY = re.compile(r"([0-9]+) requests? (?:was|were) under way")


@pytest.mark.parametrize(("kills", "more"), [(5, ()), (1, ("--workers", "2", "--batch", "10"))])
def test_killed_five_times_it_pays_nothing_twice_and_ends_in_the_same_bytes(
    start: Any, serve: Any, tmp_path: Path, whole: Whole, kills: int, more: Sequence[str]
) -> None:
    draw = random.Random(str(more))
    broken = tmp_path / "broken"
    held = Held(serve, answers, draw)
    server = held.server
    command, said = words(server, broken, *PRICES, *more), ""
    for _ in range(kills):
        said += held.kill_after(start(*command), draw.randrange(6, 11))
    process = start(*command)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    said += errors
    times = Counter(asked.body["seed"] for asked in server.asked)
    assert len(times) == 60
    # A request that is marked as under way may have been sent or not; nothing that was not marked is asked again.
    under_way = sum(int(found[1]) for found in UNDER_WAY.finditer(said))
    assert sum(times.values()) - 60 <= under_way <= kills * 2 * 4
    assert "answers are kept in replies.sqlite, and not asked for again" in errors
    for name in ("verdicts.jsonl", "evaluation.json"):
        assert (broken / name).read_bytes() == (whole.folder / name).read_bytes()
    assert {path.name for path in broken.iterdir()} == {path.name for path in whole.folder.iterdir()}


def conversing(asked: Asked) -> dict[str, Any]:
    """One call, then no more: by the seed, and by how often the model has spoken."""
    draw = random.Random(f"{asked.body['seed']}/{json.dumps(asked.body['messages'])}")
    spoken = any(message["role"] == "assistant" for message in asked.body["messages"])
    call = cw.Call(0, draw.choice(["double", "add"]), {"x": draw.randrange(4)})
    text = cw.parser("json").render(cw.Program(() if spoken else (call,)))
    return chat(text, counted=usage(draw.randrange(500, 900), len(text), cached=draw.randrange(5), reasoning=2))


def test_killed_five_times_in_turns_and_samples_it_ends_in_the_same_bytes(
    start: Any, invoke: Invoke, serve: Any, tmp_path: Path
) -> None:
    more = (*PRICES, "--samples", "3", "--turns", "3", "--temperature", "1", "--limit", "20", "--by", "chain")
    with StandIn(conversing) as server:
        assert invoke(*words(server, tmp_path / "whole", *more)).exit_code == 0
        asked = Counter(json.dumps(one.body, sort_keys=True) for one in server.asked)
    assert sum(asked.values()) == 20 * 3 * 2
    draw = random.Random(5)
    held = Held(serve, conversing, draw)
    server = held.server
    command = words(server, tmp_path / "broken", *more)
    for _ in range(5):
        held.kill_after(start(*command), draw.randrange(12, 20))
    process = start(*command)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert {json.dumps(one.body, sort_keys=True) for one in server.asked} == set(asked)
    for name in ("verdicts.jsonl", "evaluation.json"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    rows = rows_of(tmp_path / "whole")
    assert [row["sample"] for row in rows] == [0, 1, 2] * 20
    assert {len(row["completions"]) for row in rows} == {2}


def test_a_signal_stops_it_with_its_status_and_loses_nothing(start: Any, serve: Any, tmp_path: Path) -> None:
    server = serve(lambda asked: Reply(answers(asked), after=3600 if asked.number > 30 else 0))
    process = start(*words(server, tmp_path / "e"))
    wait_for(lambda: server.now == 4)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 143
    assert errors.endswith(f"stopped; nothing in {tmp_path / 'e'} is lost; the same command goes on\n")
    assert len(rows_of(tmp_path / "e")) <= server.answered


@pytest.mark.parametrize("spoilt", ["gone", "damaged"])
def test_without_its_file_of_replies_an_evaluation_asks_again_and_says_so(
    invoke: Invoke, serve: Any, tmp_path: Path, spoilt: str
) -> None:
    server = serve(answers)
    folder = tmp_path / "e"
    assert invoke(*words(server, folder)).exit_code == 0
    whole = (folder / "verdicts.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    (folder / "verdicts.jsonl").write_bytes(b"".join(lines[:23]))
    assert invoke(*words(server, folder)).exit_code == 0
    assert (folder / "verdicts.jsonl").read_bytes() == whole
    assert len(server.asked) == 60  # rows that were lost are made of what was paid
    (folder / "verdicts.jsonl").write_bytes(b"".join(lines[:23]))
    if spoilt == "gone":
        (folder / "replies.sqlite").unlink()
    else:
        (folder / "replies.sqlite").write_bytes(b"no such thing" * 1000)
    result = invoke(*words(server, folder))
    assert result.exit_code == 0
    expected = "is not there" if spoilt == "gone" else "It is set-aside-replies.sqlite now"
    assert f"{expected}" in result.stderr
    assert "answers that have no row yet are asked for again" in result.stderr
    assert (folder / "verdicts.jsonl").read_bytes() == whole
    assert len(server.asked) == 60 + 37
    assert ((folder / "set-aside-replies.sqlite").exists()) == (spoilt == "damaged")


def test_replies_are_kept_only_where_they_are_wanted(
    invoke: Invoke, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-in-any-file")
    server = serve(answers)
    assert invoke(*words(server, tmp_path / "with")).exit_code == 0
    assert invoke(*words(server, tmp_path / "without", "--no-keep-replies")).exit_code == 0
    assert len(server.asked) == 120  # each folder has its own
    assert not (tmp_path / "without" / "replies.sqlite").exists()
    assert {one.headers["authorization"] for one in server.asked} == {"Bearer sk-not-in-any-file"}
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"sk-not-in-any-file" not in path.read_bytes()


def test_an_evaluation_of_an_earlier_version_goes_on(invoke: Invoke, serve: Any, tmp_path: Path) -> None:
    """Its rows are whole batches without usage; what was counted since is counted."""
    server = serve(answers)
    folder = tmp_path / "e"
    assert invoke(*words(server, folder, "--batch", "8")).exit_code == 0
    rows = rows_of(folder)
    for row in rows:
        row.pop("usage")
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows[:16]))
    for later in ("replies.sqlite", "verdicts.jsonl.sha256"):
        (folder / later).unlink()
    result = invoke(*words(server, folder, "--batch", "8", "--json"))
    assert result.exit_code == 0
    assert "going on after 16 of 60 tasks" in result.stderr
    assert json.loads(result.stdout)["usage"]["requests"] == 44
    assert len(server.asked) == 60 + 44


def test_the_doctor_knows_the_file_of_replies(invoke: Invoke, serve: Any, tmp_path: Path) -> None:
    server = serve(answers)
    folder = tmp_path / "e"
    assert invoke(*words(server, folder)).exit_code == 0
    assert json.loads(invoke("doctor", folder, "--json").stdout)["ok"]
    (folder / "replies.sqlite").write_bytes(b"no such thing" * 1000)
    result = invoke("doctor", folder, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["damage"] == ["replies.sqlite is damaged: file is not a database"]
    repaired = invoke("doctor", folder, "--repair")
    assert repaired.exit_code == 0
    assert "replies.sqlite is now set-aside-replies.sqlite" in " ".join(repaired.stdout.split())
    assert json.loads(invoke("doctor", folder, "--json").stdout)["ok"]


# A budget -------------------------------------------------------------------------------------------------------------


def cost_of(server: StandIn) -> float:
    """What the server has put on the bill."""
    counted = [answers(asked)["usage"] for asked in server.asked]
    return sum(one["prompt_tokens"] + 2 * one["completion_tokens"] for one in counted) / 1e6


@pytest.mark.parametrize("more", [(), ("--workers", "2", "--batch", "10")])
def test_a_budget_is_not_passed_over_all_starts_and_a_higher_one_goes_on(
    invoke: Invoke, serve: Any, tmp_path: Path, whole: Whole, more: Sequence[str]
) -> None:
    server, cost = serve(answers), whole.cost
    tight = ("--sampler-option", "max_new_tokens=50", *PRICES, *more)
    folder = tmp_path / "e"

    def run(budget: float) -> tuple[int, str]:
        result = invoke(*words(server, folder, *tight, "--max-cost", f"{budget:.9f}"))
        return result.exit_code, result.stderr

    status, errors = run(cost / 2)
    assert status == 1, errors
    assert f"stopped before more than {cost / 2:g} were spent; nothing in {folder} is lost; the same command" in errors
    first = len(server.asked)
    assert 0 < first < 60
    assert cost_of(server) <= cost / 2
    if not more:
        # The same budget is the budget of the whole evaluation: nothing more is asked, or no more than fits.
        assert run(cost / 2)[0] == 1
        assert cost_of(server) <= cost / 2
        assert not (folder / "evaluation.json").exists()
        # One that is not even what was spent is refused before anything is asked.
        asked = len(server.asked)
        status, errors = run(cost_of(server) / 2)
        assert status == 1
        assert "a higher --max-cost goes on" in errors
        assert len(server.asked) == asked
    status, errors = run(2 * cost + 0.1)
    assert status == 0, errors
    assert len(server.asked) == 60
    for name in ("verdicts.jsonl", "evaluation.json"):
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_requests_under_way_at_a_kill_count_for_what_they_may_have_cost(
    start: Any, serve: Any, tmp_path: Path, whole: Whole
) -> None:
    from callwright.machines.model_server.usage import cost_of as most_of
    from callwright.machines.model_server.usage import expected

    hangs = [True]
    server = serve(lambda asked: Reply(answers(asked), after=3600 if hangs[0] and asked.number > 10 else 0))
    folder, tight = tmp_path / "e", ("--sampler-option", "max_new_tokens=50", *PRICES)
    process = start(*words(server, folder, *tight, "--max-cost", "1"))
    wait_for(lambda: server.now == 4)
    process.kill()
    process.communicate()
    asked, hangs[0] = list(server.asked), False
    lost = asked[10:]
    assert len(lost) == 4
    bounds = [expected(one.body) for one in lost]
    worst = sum(most_of(one.most_prompt, one.completion or 0, 0, (1.0, 2.0)) for one in bounds)
    counted = [answers(one)["usage"] for one in asked[:10]]
    paid = sum(one["prompt_tokens"] + 2 * one["completion_tokens"] for one in counted) / 1e6
    # A budget that what is known to be paid leaves room in, and what may have been paid does not.
    process = start(*words(server, folder, *tight, "--max-cost", f"{paid + worst / 2:.9f}"))
    _, errors = process.communicate()
    assert process.returncode == 1, errors
    assert "4 requests were under way when the last start ended" in errors
    assert f"requests whose answers were lost may have cost {worst:g}: that counts against --max-cost" in errors
    assert f"{paid + worst:g} were spent on {folder}, at most" in errors
    assert len(server.asked) == 14
    # It counts for all later starts, too.
    process = start(*words(server, folder, *tight, "--max-cost", "1"))
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert f"{paid + worst:g} of 1 were spent before, at most" in errors
    assert len(server.asked) == 60 + 4
    for name in ("verdicts.jsonl", "evaluation.json"):  # which say what is known
        assert (folder / name).read_bytes() == (whole.folder / name).read_bytes()


def test_what_a_filter_took_is_paid_once_and_stands_on_its_row(invoke: Invoke, serve: Any, tmp_path: Path) -> None:
    def script(asked: Asked) -> dict[str, Any]:
        answer = answers(asked)
        if asked.body["seed"] % 3 == 0:
            answer["choices"][0]["finish_reason"] = "content_filter"
        return answer

    server, folder = serve(script), tmp_path / "e"
    assert invoke(*words(server, folder, *PRICES)).exit_code == 0
    rows = rows_of(folder)
    masked = [row for row in rows if row["masked"]]
    assert 5 < len(masked) < 40
    assert all(row["usage"]["cost"] > 0 for row in rows)
    assert json.loads((folder / "evaluation.json").read_text())["usage"]["cost"] == round(cost_of(server), 9)
    data = (folder / "verdicts.jsonl").read_bytes()
    (folder / "verdicts.jsonl").write_bytes(b"".join(data.splitlines(keepends=True)[:10]))
    assert invoke(*words(server, folder, *PRICES)).exit_code == 0
    assert (folder / "verdicts.jsonl").read_bytes() == data
    assert len(server.asked) == 60


def test_a_budget_without_prices_or_without_a_server_is_refused(invoke: Invoke, serve: Any) -> None:
    server = serve(answers)
    result = invoke(*words(server, None, "--max-cost", "1"))
    assert result.exit_code == 2
    assert "max_cost needs prices: price_prompt and price_completion" in result.stderr
    result = invoke("evaluate", "--corpus", "sums-v1", "--sampler", "lethal", "--max-cost", "1")
    assert result.exit_code == 2
    assert "There is no option of the sampler 'lethal' named 'max_cost'" in result.stderr
    assert server.asked == []
