"""Where a model lies: a Hugging Face directory, or the end of a run. Without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from callwright.errors import DataError

#: Among the checkpoints of a run: the model that training ended with.
FINAL: Final = "final"


def model_folder(path: Path) -> Path:
    """The directory of a model: of a run folder its final checkpoint, else ``path`` itself."""
    final = path / "checkpoints" / FINAL
    return final if final.is_dir() else path


def check_folder(folder: Path) -> None:
    """Raise :class:`callwright.errors.DataError` for a folder that is no model's."""
    if not (folder / "config.json").is_file() and (folder / "recipe.toml").is_file():
        raise DataError(f"{folder} is a run that has not ended: it has no checkpoints/{FINAL}. Go on with it first")
    if not (folder / "config.json").is_file():
        raise DataError(f"{folder} is not a Hugging Face model directory: it has no config.json")
