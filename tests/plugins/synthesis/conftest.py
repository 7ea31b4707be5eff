"""What is found out about an environment is found out once for all of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def kept_knowledge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for ``cache``: what one test has explored and proven, the next one reads.

    That it is the same from there stands in ``blueprints/test_knowledge.py``, which has folders of its own.
    """
    return tmp_path_factory.mktemp("kept-knowledge")
