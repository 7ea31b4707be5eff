"""What the base install weighs and how fast it starts: python benchmarks/base_install.py [--check]

Installs this checkout without extras into a fresh virtual environment (so it needs pip's network), then counts
distributions and bytes, and measures the processor time of `callwright --help` and of `import callwright`, each the
least of several runs. With --check the exit status is 1 if a budget is broken: 15 distributions, 40 MB of files, 0.3 s
and 0.15 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = 10
#: Name and unit of each figure, and the most that it may be.
BUDGETS = {
    "distributions": ("", 15),
    "files": ("MB", 40),
    "import callwright": ("s of CPU", 0.15),
    "callwright --help": ("s of CPU", 0.3),
}

_WEIGH = """
import json
from importlib.metadata import distributions
counted, files, compiled = [], 0, 0
for distribution in distributions():
    if distribution.name.lower() in ("pip", "setuptools"):
        continue
    counted.append(distribution.name)
    for file in distribution.files or ():
        path = distribution.locate_file(file)
        if path.is_file():
            if path.suffix == ".pyc":
                compiled += path.stat().st_size
            else:
                files += path.stat().st_size
print(json.dumps([sorted(counted), files, compiled]))
"""


def cpu(command: list[str]) -> float:
    """Least processor time of a command over several runs, in seconds."""
    least = float("inf")
    for _ in range(RUNS):
        before = os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=tempfile.gettempdir())
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        least = min(least, used)
    return least


def measure(folder: Path) -> tuple[dict[str, float], list[str], float]:
    """The figures, the names of the distributions, and the bytes that pip compiled (MB)."""
    venv.create(folder, with_pip=True, symlinks=True)
    binaries = folder / "bin"
    python = str(binaries / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(ROOT)]
    subprocess.run(install, check=True)
    names, files, compiled = json.loads(subprocess.run([python, "-c", _WEIGH], check=True, capture_output=True).stdout)
    nothing = cpu([python, "-c", "pass"])
    figures = {
        "distributions": len(names),
        "files": files / 1e6,
        "import callwright": cpu([python, "-c", "import callwright"]) - nothing,
        "callwright --help": cpu([str(binaries / "callwright"), "--help"]),
    }
    return figures, names, compiled / 1e6


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if a budget is broken")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures, names, compiled = measure(Path(folder) / "venv")
    for name, value in figures.items():
        unit, most = BUDGETS[name]
        shown = f"{value:.0f}" if isinstance(value, int) else f"{value:.3g}"
        print(f"{name:20} {shown:>6} {unit:9} (budget {most:g})")
    print(f"{'bytecode':20} {compiled:6.3g} MB        (compiled by pip, not part of the budget)")
    print(f"distributions: {', '.join(names)}")
    broken = [name for name, value in figures.items() if value > BUDGETS[name][1]]
    if broken:
        print(f"over budget: {', '.join(broken)}", file=sys.stderr)
    return int(given.check and bool(broken))


if __name__ == "__main__":
    sys.exit(main())
