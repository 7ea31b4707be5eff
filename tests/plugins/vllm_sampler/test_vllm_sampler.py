"""The sampler ``vllm`` over a stand-in for its engine, over a server on loopback, and over vLLM itself where it is."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

import jsonschema_rs
import pytest

import callwright as cw
from callwright.episodes import converse
from callwright.errors import DataError
from callwright.machines.model_server import run_to_end
from callwright.machines.model_server.reply_cache import ReplyCache
from callwright.testing.samplers import check_one_by_one
from callwright.training.evaluation import asked_one_by_one, evaluate

pytest.importorskip("transformers", reason="needs the train extra")

TEMPLATE = (
    "{% for m in messages %}<|begin|>{{ m['role'] }}\n{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|begin|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model directory with a chat template."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

    folder = tmp_path_factory.mktemp("model")
    tokenizer = build_tokenizer(cw.corpus("toolworld-mini-v1").vocabulary())  # type: ignore[attr-defined]
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=16384, eos_token_id=tokenizer.eos_token_id, bos_token_id=tokenizer.bos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def pipeline() -> Any:
    return cw.Pipeline("toolworld-mini-v1")


def turns(count: int, seed: int = 0) -> cw.Conditions:
    return cw.Conditions(seed=seed, limits=cw.TurnLimits(assistant_turns=count))


def requests_of(pipeline: Any, count: int = 3) -> list[cw.SamplingRequest]:
    tasks = [task for task in pipeline.tasks("evaluation") if task.depth == 1][:count]
    return [cw.SamplingRequest(pipeline.messages(task), task) for task in tasks]


class Writer:
    """What both stand-ins write: the ids of texts, one after the other for each context."""

    def __init__(self, model: Path, text: Callable[[str], str]) -> None:
        from transformers import AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(model)
        self.text = text

    def ids(self, context: list[int], room: int) -> tuple[list[int], str]:
        written = self.tokenizer.encode(self.text(self.tokenizer.decode(context)), add_special_tokens=False)
        whole = [*written, self.tokenizer.eos_token_id]
        return whole[:room], "stop" if len(whole) <= room else "length"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, model: Path) -> Any:
    """A module ``vllm`` with the names that the sampler uses, as vLLM 0.33 has them."""
    heard: dict[str, Any] = {"prompts": [], "parameters": [], "made": []}
    state: dict[str, Any] = {"text": lambda context: "no program"}

    class SamplingParams:
        def __init__(self, **given: Any) -> None:
            self.__dict__.update(given)

    class LLM:
        def __init__(self, **given: Any) -> None:
            heard["made"].append(given)
            self.writer = Writer(model, lambda context: str(state["text"](context)))
            config = types.SimpleNamespace(max_model_len=given.get("max_model_len", 16384))
            self.llm_engine = types.SimpleNamespace(model_config=config)

        def generate(self, prompts: list[Any], parameters: list[Any], use_tqdm: bool) -> list[Any]:
            heard["prompts"].append(prompts)
            heard["parameters"].append(parameters)
            outputs = []
            for prompt, parameter in zip(prompts, parameters, strict=True):
                ids, reason = self.writer.ids(prompt["prompt_token_ids"], parameter.max_tokens)
                logprobs = [{token: types.SimpleNamespace(logprob=-0.25)} for token in ids]
                one = types.SimpleNamespace(token_ids=ids, logprobs=logprobs, finish_reason=reason)
                outputs.append(types.SimpleNamespace(outputs=[one]))
            return outputs

    stand_in = types.ModuleType("vllm")
    stand_in.LLM, stand_in.SamplingParams = LLM, SamplingParams  # type: ignore[attr-defined]
    parts = types.ModuleType("vllm.sampling_params")
    parts.StructuredOutputsParams = SamplingParams  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", stand_in)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", parts)
    return types.SimpleNamespace(heard=heard, state=state)


def test_the_engine_is_told_to_extend_its_context(engine: Any, model: Path, pipeline: Any) -> None:
    sampler = cw.sampler("vllm", model=str(model), yarn=2.0)
    sampler.sample(requests_of(pipeline, 1), temperature=0)
    (made,) = engine.heard["made"]
    parameters = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 2.0, "original_max_position_embeddings": 16384}
    assert made["max_model_len"] == 32768
    assert made["hf_overrides"] == {"rope_parameters": parameters}
    assert sampler.extended_context["positions"] == 32768  # type: ignore[attr-defined]
    with pytest.raises(cw.UsageError, match="max_model_len, which 'engine' says otherwise"):
        cw.sampler("vllm", model=str(model), yarn=2.0, engine={"max_model_len": 100})
    with pytest.raises(cw.UsageError, match=r"--hf-overrides .*yarn.* --max-model-len 32768"):
        cw.sampler("vllm", model=str(model), yarn=2.0, base_url="http://127.0.0.1:9/v1")


def test_offline_completions_keep_their_ids(engine: Any, model: Path, pipeline: Any) -> None:
    sampler = cw.sampler("vllm", model=str(model), engine={"enforce_eager": True}, sampling={"top_p": 0.9})
    requests = requests_of(pipeline)
    found = sampler.sample(requests, n=2, seed=3, temperature=0.5)
    assert [[one.text for one in group] for group in found] == [["no program"] * 2] * 3
    one, codec = found[0][0], sampler.codec  # type: ignore[attr-defined]
    assert codec.text(one.token_ids) == one.text
    assert one.logprobs == (-0.25,) * len(one.token_ids)
    assert engine.heard["made"] == [{"model": str(model), "enforce_eager": True}]
    (prompts,), (parameters,) = engine.heard["prompts"], engine.heard["parameters"]
    assert tuple(prompts[0]["prompt_token_ids"]) == codec.prompt_ids(requests[0].messages, requests[0].task)
    assert len({parameter.seed for parameter in parameters}) == 6
    assert (parameters[0].temperature, parameters[0].top_p, parameters[0].max_tokens) == (0.5, 0.9, 1024)
    assert set(parameters[0].stop_token_ids) == codec.ends


def test_a_completion_that_is_cut_says_so(engine: Any, model: Path, pipeline: Any) -> None:
    (((one,),)) = cw.sampler("vllm", model=str(model), max_new_tokens=2).sample(requests_of(pipeline, 1))
    assert (len(one.token_ids), one.truncated) == (2, True)


def test_a_prompt_that_leaves_no_room_is_truncated_at_once(engine: Any, model: Path, pipeline: Any) -> None:
    requests = requests_of(pipeline, 1)
    length = len(cw.sampler("vllm", model=str(model)).codec.prompt_ids(requests[0].messages, requests[0].task))  # type: ignore[attr-defined]
    for positions, tokens in ((length - 1, 0), (length, 0), (length + 2, 2)):
        sampler = cw.sampler("vllm", model=str(model), engine={"max_model_len": positions})
        (((one,),)) = sampler.sample(requests)
        assert (len(one.token_ids), one.truncated, one.masked) == (tokens, True, None)


def test_several_turns_keep_exact_ids_and_masks(engine: Any, model: Path, pipeline: Any) -> None:
    request = requests_of(pipeline, 1)[0]
    gold = pipeline.parser.render(request.task.program)
    done = pipeline.parser.render(cw.Program((), "one", "done"))
    engine.state["text"] = lambda context: gold if len(engine.heard["prompts"]) == 1 else done
    sampler = cw.sampler("vllm", model=str(model))
    ((rollout,),) = converse(pipeline, sampler, [request], conditions=turns(4, seed=1))
    assert len(rollout.attempt.turns) == 2
    assert rollout.stop == "answered"
    response, mask = rollout.response_ids, rollout.mask  # type: ignore[attr-defined]
    sampled = [token for token, kept in zip(response, mask, strict=True) if kept]
    written = [turn.completion.token_ids for turn in rollout.attempt.turns]
    assert sampled == [token for ids in written for token in ids]
    assert 0 < sum(mask) < len(response)
    contexts = [batch[0]["prompt_token_ids"] for batch in engine.heard["prompts"]]
    assert contexts[1][: len(contexts[0])] == contexts[0]
    assert tuple(contexts[1][: len(contexts[0]) + len(written[0])]) == tuple(contexts[0]) + written[0]


def test_seeds_hang_on_the_task_and_not_on_the_batch(engine: Any, model: Path, pipeline: Any) -> None:
    """From ``sample`` and in every turn of ``converse``, which begins as ``sample`` does; every seed is another one."""
    sampler = cw.sampler("vllm", model=str(model))
    requests = requests_of(pipeline, 4)
    golds = {one.task.query: pipeline.parser.render(one.task.program) for one in requests}
    engine.state["text"] = lambda context: next(gold for query, gold in golds.items() if query in context)

    def sent() -> dict[str, list[list[int]]]:
        """The seeds of each task, a list for each batch, by the query that the prompt holds; forgotten then."""
        found: dict[str, list[list[int]]] = {}
        for prompts, parameters in zip(engine.heard["prompts"], engine.heard["parameters"], strict=True):
            for query in golds:
                pairs = zip(prompts, parameters, strict=True)
                text = sampler.codec.tokenizer.decode  # type: ignore[attr-defined]
                own = [given.seed for prompt, given in pairs if query in text(prompt["prompt_token_ids"])]
                if own:
                    found.setdefault(query, []).append(own)
        engine.heard["prompts"].clear()
        engine.heard["parameters"].clear()
        return found

    sampler.sample(requests, n=2, seed=3)
    single = sent()
    assert len({seed for batches in single.values() for seeds in batches for seed in seeds}) == 8
    sampler.sample(requests[::-1], n=2, seed=3)
    assert sent() == single
    for request in requests:
        sampler.sample([request], n=1, seed=3)
        assert sent() == {request.task.query: [single[request.task.query][0][:1]]}
    sampler.sample(requests, n=2, seed=4)
    assert all(seeds != single[query] for query, seeds in sent().items())

    converse(pipeline, sampler, requests, conditions=turns(3, seed=3), n=2)
    several = sent()
    assert {query: batches[:1] for query, batches in several.items()} == single
    assert len({seed for batches in several.values() for seeds in batches for seed in seeds}) == 4 * 2 * 3
    converse(pipeline, sampler, requests[::-1], conditions=turns(3, seed=3), n=2)
    assert sent() == several
    for request in requests:
        converse(pipeline, sampler, [request], conditions=turns(3, seed=3), n=2)
        assert sent() == {request.task.query: several[request.task.query]}


def test_structured_outputs_are_asked_for(engine: Any, model: Path, pipeline: Any) -> None:
    request = requests_of(pipeline, 1)[0]
    cw.sampler("vllm", model=str(model), structured="json").sample([request])
    tags = json.loads(engine.heard["parameters"][0][0].structured_outputs.structural_tag)
    assert tags["triggers"] == ["<tool_call"]
    with pytest.raises(cw.UsageError, match="'xml'"):
        cw.sampler("vllm", model=str(model), structured="xml")


def test_the_schema_of_calls_takes_every_program_and_no_other(pipeline: Any) -> None:
    from callwright_plugins.vllm_sampler.structured import structural_tags

    for corpus in ("toolworld-mini-v1", "depthbench-v1"):
        made = cw.corpus(corpus)
        tasks = [task for task in made[next(iter(made.splits))] if task.program and task.program.calls][:60]
        for task in tasks:
            tags = structural_tags("json", task.tools)
            text = pipeline.parser.render(task.program)
            begin = next(one["begin"] for one in tags["structures"] if one["begin"] in text)
            body = json.loads(text.partition(begin)[2].partition("</tool_call>")[0])
            check = jsonschema_rs.Draft202012Validator(tags["structures"][0]["schema"])
            assert check.is_valid(body), (task.id, list(map(str, check.iter_errors(body)))[:2])
            first = next(iter(body))
            ((tool, arguments),) = body[first].items()
            assert not check.is_valid({**body, first: {"no_such_tool": arguments}})
            assert not check.is_valid({**body, first: {tool: {**arguments, "no_such_parameter": 1}}})
            assert not check.is_valid({**body, first: {tool: None}})
            tags = structural_tags("hermes", task.tools)
            assert len(tags["structures"]) == len(task.tools)


@pytest.fixture
def server(model: Path) -> Iterator[Any]:
    """``/v1/completions`` of a vLLM server, as far as the sampler uses it."""
    state: dict[str, Any] = {"text": lambda context: "no program", "asked": [], "status": 200, "ids": True}
    writer = Writer(model, lambda context: str(state["text"](context)))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state["asked"].append((self.path, body))
            ids, reason = writer.ids(body["prompt"], body["max_tokens"])
            choice = {
                "index": 0, "text": "", "finish_reason": reason,
                "logprobs": {"token_logprobs": [-0.5] * len(ids), "tokens": [], "top_logprobs": [], "text_offset": []},
                **({"token_ids": ids} if state["ids"] else {}),
            }  # fmt: skip
            answer = {"id": "x", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}
            data = json.dumps(answer if state["status"] == 200 else {"error": {"message": "down"}}).encode()
            self.send_response(state["status"])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    threading.Thread(target=running.serve_forever, daemon=True).start()
    state["url"] = f"http://127.0.0.1:{running.server_port}/v1"
    yield types.SimpleNamespace(state=state, url=state["url"])
    running.shutdown()
    running.server_close()


def needs_client() -> None:
    pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")


def test_a_server_is_asked_with_ids(server: Any, model: Path, pipeline: Any) -> None:
    needs_client()
    sampler = cw.sampler("vllm", model=str(model), base_url=server.url, served_as="m", max_new_tokens=15)
    requests = requests_of(pipeline)
    found = sampler.sample(requests, n=2, seed=3)
    assert [one.text for group in found for one in group] == ["no program"] * 6
    path, body = server.state["asked"][0]
    assert path == "/v1/completions"
    assert (body["model"], body["return_token_ids"], body["max_tokens"]) == ("m", True, 15)
    contexts = {tuple(asked["prompt"]) for _, asked in server.state["asked"]}
    assert contexts == {sampler.codec.prompt_ids(one.messages, one.task) for one in requests}  # type: ignore[attr-defined]
    assert found[0][0].logprobs == (-0.5,) * len(found[0][0].token_ids)
    assert sampler.usage.requests == 6  # type: ignore[attr-defined]


def test_engine_and_server_give_the_same_rollouts(server: Any, engine: Any, model: Path, pipeline: Any) -> None:
    needs_client()
    request = requests_of(pipeline, 1)[0]
    gold = pipeline.parser.render(request.task.program)
    made = []
    for options in ({}, {"base_url": server.url}):
        engine.state["text"] = server.state["text"] = lambda context: gold
        sampler = cw.sampler("vllm", model=str(model), **options)
        ((rollout,),) = converse(pipeline, sampler, [request], conditions=turns(3))
        made.append((rollout.response_ids, rollout.mask, rollout.stop))  # type: ignore[attr-defined]
    assert made[0] == made[1]
    assert made[0][2] == "assistant_turns"


def test_an_evaluation_asks_the_server_in_a_window(server: Any, engine: Any, model: Path, pipeline: Any) -> None:
    """Episodes one by one give what batches give, and no request waits for those of another episode."""
    needs_client()
    tasks = [request.task for request in requests_of(pipeline, 12)]
    program = pipeline.parser.render(tasks[0].program)
    first: list[str] = []

    def script(context: str) -> str:
        if server.state["asked"] and not first:
            first.append(context)
            wait_for_others(server)
        return program if crc32(context.encode()) % 3 else "no program"

    engine.state["text"] = lambda context: script(context)
    found = {}
    for name, options in (("batches", {}), ("window", {"base_url": server.url, "concurrency": 3})):
        server.state["text"] = script
        sampler = cw.sampler("vllm", model=str(model), **options)
        made: list[Any] = []
        verdicts = evaluate(
            pipeline, tasks, sampler, limits=cw.TurnLimits(assistant_turns=2), batch=4,
            keep=lambda attempt, verdict, made=made: made.append(attempt.completions),
        )  # fmt: skip
        found[name] = verdicts, [[(one.text, one.token_ids, one.truncated) for one in some] for some in made]
    assert found["window"] == found["batches"]
    assert first
    assert {len(completions) for completions in made} == {1, 2}
    assert sum(one.usage["requests"] for completions in made for one in completions) == len(server.state["asked"])


def wait_for_others(server: Any) -> None:
    """Until requests of more episodes have come than fit beside this one: those of a batch would wait for it."""
    until = time.monotonic() + 120
    while len(server.state["asked"]) < 8:
        assert time.monotonic() < until, "the others wait for this one"
        time.sleep(0.01)


def test_what_the_server_answered_is_kept(server: Any, model: Path, pipeline: Any, tmp_path: Path) -> None:
    needs_client()
    gold = pipeline.parser.render(requests_of(pipeline, 1)[0].task.program)
    server.state["text"] = lambda context: gold
    tasks = [request.task for request in requests_of(pipeline, 5)]
    found = []
    for _ in range(2):
        sampler = cw.sampler("vllm", model=str(model), base_url=server.url)
        replies = ReplyCache(tmp_path / "replies.sqlite")
        sampler.keep_replies(replies)  # type: ignore[attr-defined]
        made: list[Any] = []
        limits = cw.TurnLimits(assistant_turns=2)
        verdicts = evaluate(
            pipeline, tasks, sampler, limits=limits, keep=lambda attempt, _, made=made: made.append(attempt.completions)
        )
        found.append((verdicts, made))
        assert {name.partition("\n")[0] for name, _ in replies.askers()} == {task.id for task in tasks}
        replies.close()
    assert found[0] == found[1]
    assert len(server.state["asked"]) >= 10
    assert sum(len(completions) for completions in found[0][1]) == len(server.state["asked"])  # and none a second time


def test_an_engine_in_this_process_is_asked_for_batches(engine: Any, model: Path) -> None:
    sampler = cw.sampler("vllm", model=str(model))
    assert not asked_one_by_one(sampler)
    assert asked_one_by_one(cw.sampler("vllm", model=str(model), base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(cw.UsageError, match="is asked for batches"):
        run_to_end(_connect(sampler))


async def _connect(sampler: Any) -> None:
    async with sampler.connected():
        pass


def test_what_one_by_one_gives_is_what_all_together_give(server: Any, model: Path) -> None:
    needs_client()
    server.state["text"] = lambda context: f"{len(context)}"
    check_one_by_one(cw.sampler("vllm", model=str(model), base_url=server.url, max_new_tokens=20))


def test_a_server_that_fails_masks(server: Any, model: Path, pipeline: Any) -> None:
    needs_client()
    sampler = cw.sampler("vllm", model=str(model), base_url=server.url, retries=0)
    server.state["status"] = 503
    assert "503" in (sampler.sample(requests_of(pipeline, 1))[0][0].masked or "")
    ((rollout,),) = converse(pipeline, sampler, requests_of(pipeline, 1), conditions=turns(2))
    assert rollout.masked is not None
    server.state.update(status=200, ids=False)
    assert "return_token_ids" in (sampler.sample(requests_of(pipeline, 1))[0][0].masked or "")
    server.state["status"] = 404
    with pytest.raises(cw.UsageError, match="no model"):
        sampler.sample(requests_of(pipeline, 1))


def test_wrong_options(tmp_path: Path) -> None:
    with pytest.raises(cw.UsageError, match="max_new_tokens"):
        cw.sampler("vllm", model="m", max_new_tokens=0)
    with pytest.raises(cw.UsageError, match="a server has its own"):
        cw.sampler("vllm", model="m", base_url="http://x", engine={"a": 1})
    with pytest.raises(DataError, match="no tokenizer"):
        _ = cw.sampler("vllm", model=str(tmp_path), base_url="http://x").codec  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed here (pip install 'callwright[vllm]')")
def test_vllm_itself(model: Path, pipeline: Any) -> None:
    """The real engine, on a CPU too: ids in and out, and its log-probabilities are those of the model."""
    import torch
    from transformers import AutoModelForCausalLM

    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    engine = {"enforce_eager": True, "dtype": "float32", "max_model_len": 8192, "max_num_seqs": 8}
    sampler = cw.sampler("vllm", model=str(model), engine=engine, max_new_tokens=8, seeds=False)
    requests = requests_of(pipeline, 2)
    assert len({one.token_ids for one in sampler.sample(requests[:1], n=4, temperature=2.0)[0]}) > 1
    found = sampler.sample(requests, n=2, temperature=0.0)
    assert [group[0].token_ids for group in found] == [group[1].token_ids for group in found]
    one = found[0][0]
    context = sampler.codec.prompt_ids(requests[0].messages, requests[0].task)  # type: ignore[attr-defined]
    reference = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    with torch.no_grad():
        logits = reference(torch.tensor([[*context, *one.token_ids]])).logits[0, len(context) - 1 : -1]
    expected = logits.log_softmax(-1).gather(1, torch.tensor(one.token_ids).unsqueeze(1)).squeeze(1)
    assert list(one.logprobs) == pytest.approx(expected.tolist(), abs=1e-3)
