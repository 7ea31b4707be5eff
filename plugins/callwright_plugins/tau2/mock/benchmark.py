"""The benchmark ``tau2-mock``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from callwright.measuring.benchmark import version_of
from callwright_plugins.tau2.assertions import AssertionJudge
from callwright_plugins.tau2.benchmark import SCRIPT, Tau2, made_of
from callwright_plugins.tau2.mock.domain import MockDomain


class Tau2Mock(Tau2):
    """A bicycle hire of this project's own, whose users follow scripts: it needs neither data nor source.

    Options: those of :class:`callwright_plugins.tau2.benchmark.Tau2`.
    """

    name = "tau2-mock"
    versions = ("1",)
    _plays = SCRIPT

    def __init__(
        self,
        version: str | None = None,
        user: str | None = None,
        user_model: str | None = None,
        user_url: str | None = None,
        user_temperature: float = 0.0,
        user_options: Mapping[str, Any] | None = None,
        judge: str | AssertionJudge | None = None,
        judge_model: str | None = None,
        judge_url: str | None = None,
    ) -> None:
        text = resources.files("callwright_plugins.tau2.mock").joinpath("tasks.json").read_text("utf-8")
        chosen = version_of(self.name, version, self.versions)
        given: dict[str, Any] = {
            "user": user,
            "user_model": user_model,
            "user_url": user_url,
            "user_temperature": user_temperature,
            "user_options": user_options,
            "judge": judge,
            "judge_model": judge_model,
            "judge_url": judge_url,
        }
        made = made_of(type(self), version=chosen, **given)
        super().__init__(chosen, json.loads(text), MockDomain(), made, **given)
        self.unofficial = ("the domain is one of this project's own, with tasks of its own", *self.unofficial)
