"""The dependency graph: against the rules of a small world, by proofs that anybody can make again."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import DataError, UsageError
from callwright.language.program import Call
from callwright.training.teaching.teacher import TeacherFailure, TeacherReply, TeacherRequest
from callwright_plugins.synthesis.exploration.explored import explore
from callwright_plugins.synthesis.graph.building import build
from callwright_plugins.synthesis.graph.chains import chains
from callwright_plugins.synthesis.graph.checking import check_graph
from callwright_plugins.synthesis.graph.drawing import dot
from callwright_plugins.synthesis.graph.edges import Graph
from callwright_plugins.synthesis.graph.proposals import classify, compare, matched

from .depot import STEPS, TOLD, Far, depot


@pytest.fixture(scope="module")
def graph() -> Graph:
    environment = depot()
    made, effort = build(environment, explore(environment, calls=1500))
    assert not effort.cut
    return made


def test_the_needed_steps_are_those_of_the_rules_and_no_others(graph: Graph) -> None:
    assert set(graph.pairs("state")) == STEPS


def test_the_needed_values_are_those_of_the_rules_and_no_others(graph: Graph) -> None:
    assert set(graph.pairs("information")) == TOLD
    told = {(edge.source, edge.result, edge.argument) for edge in graph.edges if edge.kind == "information"}
    assert told == {("list_parcels", "items[].parcel_id", "parcel_id"), ("sign_in", "token", "token")}


def test_information_is_proven_in_two_worlds(graph: Graph) -> None:
    for edge in graph.edges:
        seeds = {proof.given.seed for proof in edge.proofs}
        assert seeds == {0, 1} if edge.kind == "information" else seeds


def test_every_proof_holds_when_it_is_made_again(graph: Graph) -> None:
    checked = check_graph(depot(), graph)
    assert checked.findings == ()
    assert checked.proofs == sum(len(edge.proofs) for edge in graph.edges) >= 7


def test_proofs_hold_no_call_that_proves_nothing(graph: Graph) -> None:
    shortest = {(edge.source, edge.target): min(len(one.given.calls) for one in edge.proofs) for edge in graph.edges}
    assert shortest == {
        ("open_gate", "drive_out"): 2,
        ("open_gate", "close_gate"): 2,
        ("close_gate", "open_gate"): 3,
        ("sign_in", "fetch_parcel"): 2,
        ("list_parcels", "fetch_parcel"): 3,
    }


def test_a_proof_that_was_made_up_is_found_out(graph: Graph) -> None:
    edge = next(edge for edge in graph.edges if edge.kind == "state")
    proof = edge.proofs[0]
    no_source = evolve(proof, given=evolve(proof.given, calls=(*proof.without.calls,)))
    other_end = evolve(proof, without=evolve(proof.without, code="RAIN"))
    more = evolve(proof, without=evolve(proof.without, calls=(Call(0, "list_parcels", {}), *proof.without.calls)))
    for bad in (no_source, other_end, more):
        planted = evolve(graph, edges=(evolve(edge, proofs=(bad,)),))
        assert len(check_graph(depot(), planted).findings) == 1
    told = next(edge for edge in graph.edges if edge.kind == "information" and edge.source == "list_parcels")
    elsewhere = evolve(told.proofs[0], found=("items", 0, "shelf"))
    planted = evolve(graph, edges=(evolve(told, proofs=(elsewhere,)),))
    assert "tells" in check_graph(depot(), planted).findings[0].reason


def test_a_graph_of_other_tools_is_refused(graph: Graph) -> None:
    with pytest.raises(DataError, match="schema hash"):
        check_graph(depot(), evolve(graph, schema="0" * 64))
    with pytest.raises(DataError, match="far-depot"):
        check_graph(depot(), evolve(graph, environment="far-depot"))


def test_a_graph_goes_through_json(graph: Graph) -> None:
    assert Graph.from_json(json.loads(json.dumps(graph.as_json()))) == graph


@pytest.mark.parametrize("row", [None, [], {}, {"format": "callwright-graph-1"}])
def test_what_is_no_graph_is_said_to_be_none(row: object) -> None:
    with pytest.raises(DataError):
        Graph.from_json(row)


def test_a_server_whose_sessions_do_not_fork_has_the_same_needed_steps() -> None:
    far = Far(disposable=True)
    made, _ = build(far, explore(far, calls=1500), 3000)
    assert set(made.pairs("state")) >= {("open_gate", "drive_out")}
    assert check_graph(far, made).findings == ()


def test_chains_follow_edges_and_cover_all_of_them(graph: Graph) -> None:
    drawn = list(chains(graph, 40))
    assert len(drawn) == 40
    pairs = graph.pairs()
    for chain in drawn:
        assert 2 <= len(chain) <= 5
        assert len(set(chain)) == len(chain)
        assert all(pair in pairs for pair in pairwise(chain))
    assert {pair for chain in drawn for pair in pairwise(chain)} == set(pairs)
    assert drawn == list(chains(graph, 40))
    assert drawn != list(chains(graph, 40, seed=1))


def test_chains_of_no_graph_are_none_and_of_no_length_an_error(graph: Graph) -> None:
    assert list(chains(evolve(graph, edges=()), 3)) == []
    with pytest.raises(UsageError):
        list(chains(graph, 3, shortest=1))


def test_the_network_has_the_tools_and_the_edges(graph: Graph) -> None:
    network = graph.network()
    assert set(network.nodes) == set(graph.tools)
    assert network.number_of_edges() == len(graph.edges)


def test_the_drawing_names_each_pair_once(graph: Graph) -> None:
    drawn = dot(graph)
    for source, target in graph.pairs():
        assert drawn.count(f'"{source}" -> "{target}"') == 1


class Oracle:
    """A teacher that says of each pair what the rules say, and nothing of one of them."""

    name = "oracle"

    def __init__(self) -> None:
        self.asked = 0

    def settings(self, role: str) -> dict[str, Any]:
        return {}

    def ask(self, requests: list[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        self.asked += len(requests)
        return [self._answer(request) for request in requests]

    def _answer(self, request: TeacherRequest) -> TeacherReply | TeacherFailure:
        assert request.role == "planner"
        shown = request.messages[-1].text
        first, second = (json.loads(part.split("\n", 1)[1])["name"] for part in shown.split("\n\n"))
        if {first, second} == {"sign_in", "open_gate"}:
            return TeacherFailure("busy")
        if {first, second} == {"sign_in", "drive_out"}:
            return TeacherReply("I think none.")
        says = [
            "explicit" if p in TOLD else "implicit" if p in STEPS else "none"
            for p in ((first, second), (second, first))
        ]
        return TeacherReply(json.dumps({"first_before_second": says[0], "second_before_first": says[1]}))


def test_a_teacher_is_asked_once_of_each_two_tools_and_compared(graph: Graph) -> None:
    oracle = Oracle()
    said = classify(oracle, depot().tools)  # type: ignore[arg-type]
    assert oracle.asked == 15
    assert set(said.pairs) == STEPS | TOLD
    assert set(said.failed) == {("open_gate", "sign_in"), ("drive_out", "sign_in")}
    (row,) = compare(graph, {"teacher": said.pairs})
    assert (row.pairs, row.proven, row.missed) == (5, 5, 0)


def test_schemas_propose_by_the_names_of_fields_and_parameters() -> None:
    proposed = matched(cw.environment("banking").tools)
    assert ("list_accounts", "get_account") in proposed
    assert ("get_exchange_rate", "remove_payee") not in proposed
    assert matched(depot().tools) == {}  # its results name no fields in their schemas
