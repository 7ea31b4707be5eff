"""OpenRLHF as a job of a Ray cluster: submitted, followed and stopped by Ray's own command."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from attrs import frozen

_RAY = ("-m", "ray.scripts.scripts", "job")


@frozen
class Job:
    """A job by its ``name``, on the cluster whose dashboard is at ``address`` (``http://HEAD:8265``)."""

    python: str
    address: str
    name: str

    def submitted(self, words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """What submits ``words`` and prints the job's log until it ends, with status 0 if the job succeeded.

        The variables are the job's ``runtime_env``: Ray shows them to whoever sees its dashboard.
        """
        runtime = json.dumps({"env_vars": dict(environment)}, sort_keys=True)
        given = ("--address", self.address, "--submission-id", self.name, "--runtime-env-json", runtime)
        return [self.python, *_RAY, "submit", *given, "--", *words]

    def stopped(self) -> list[str]:
        """What stops it: a client that ends leaves its job running."""
        return [self.python, *_RAY, "stop", "--address", self.address, self.name]
