"""Summaries of verdicts: accuracies with intervals, by any key, of one sample of each task or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from callwright.errors import UsageError
from callwright.statistics.samples import pass_at, pass_hat, spread
from callwright.statistics.shares import Share, clustered_share
from callwright.training.verdicts import Verdict, groups_of
from callwright.walk.tasks import Task

#: Where more of the attempts are masked than this share, accuracies say little and no headline is shown.
MOST_MASKED: Final = 0.02
#: Commonest failures of a depth that are named, and reasons why attempts are masked.
_COMMONEST: Final = 5
#: Up to so many samples, pass@k and pass^k are given for every k; beyond, for powers of two and all of them.
_EVERY_K: Final = 16


def summarise(
    verdicts: Iterable[Verdict],
    by: Sequence[Sequence[str]] = (),
    rewards: Mapping[tuple[str, int], float] | None = None,
) -> dict[str, Any]:
    """``overall`` (share of right answers), ``by_depth``, ``by_structure``, ``failures`` per depth, and counts.

    A cell has ``accuracy``, its 95% interval (``low``, ``high``; see :mod:`callwright.statistics.shares`: samples of a
    task and tasks of a family are not independent), ``n`` attempts that count, and how many are ``masked`` besides,
    with the accuracies if all of those were wrong (``lowest``) and right (``highest``). ``all`` is the cell of
    everything. ``headline`` is whether at most :data:`MOST_MASKED` of the attempts are masked. ``errors`` counts the
    finer classes of errors, and ``lost`` the commonest reasons why attempts are masked. ``by`` are further tables, each
    by one key or by several together: ``depth``, ``structure``, ``family`` or any of :attr:`Verdict.groups`; raises
    :class:`callwright.UsageError` for one that no verdict has. ``thought_words`` is the mean over the attempts with a
    thought that can be read, of each cell and of all. ``cut_off``, where any attempt that counts was, has how many
    (``n``), for how many of them the prompt left no room (``prompts``) or the context was full (``context``), and the
    commonest number of ``tokens`` at which they were, if it is known.

    With several samples of a task ``samples`` has pass@k and pass^k. ``rewards`` are totals by task and sample, for
    their mean and spread.
    """
    everything = list(verdicts)  # once: they may come from an iterator
    counted = [verdict for verdict in everything if not verdict.masked]
    right = sum(verdict.answer for verdict in counted)
    errors = Counter(verdict.error or verdict.failure for verdict in counted if verdict.failure)
    depths = _grouped(everything, lambda verdict: verdict.depth)
    failures = {
        str(depth): dict(
            Counter(one.failure for one in group if one.failure and not one.masked).most_common(_COMMONEST)
        )
        for depth, group in depths.items()
    }
    result: dict[str, Any] = {
        "overall": right / len(counted) if counted else None,
        "valid_overall": sum(verdict.valid for verdict in counted) / len(counted) if counted else None,
        "thought_words": _mean_words(counted),
        "n": len(counted),
        "masked": len(everything) - len(counted),
        "headline": len(everything) - len(counted) <= MOST_MASKED * len(everything),
        "by_depth": {str(depth): cell for depth, cell in _cells(depths)},
        "by_structure": dict(_cells(_grouped(everything, lambda verdict: verdict.structure))),
        "failures": {depth: counts for depth, counts in failures.items() if counts},
    }
    if counted:
        result["all"] = _cell(everything)
    if reasons := Counter(verdict.lost for verdict in everything if verdict.masked and verdict.lost):
        result["lost"] = dict(reasons.most_common(_COMMONEST))
    if cut := [verdict for verdict in counted if verdict.cut]:
        result["cut_off"] = _cut_off(cut)
    if errors:
        result["errors"] = dict(sorted(errors.items(), key=lambda one: (-one[1], one[0])))
    if by:
        result["by"] = {",".join(keys): _by_keys(everything, keys) for keys in by}
    if any(verdict.sample for verdict in everything):
        result["samples"] = _samples(everything)
    if rewards:
        result["rewards"] = _rewards(everything, rewards)
    return result


def _cut_off(cut: Sequence[Verdict]) -> dict[str, Any]:
    why, tokens = Counter(verdict.cut for verdict in cut), Counter(verdict.cut_at for verdict in cut if verdict.cut_at)
    return {
        "n": len(cut),
        **({"prompts": why["prompt"]} if why["prompt"] else {}),
        **({"context": why["context"]} if why["context"] else {}),
        **({"tokens": tokens.most_common(1)[0][0]} if tokens else {}),
    }


def _grouped(verdicts: Iterable[Verdict], key: Callable[[Verdict], Any]) -> dict[Any, list[Verdict]]:
    groups: dict[Any, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(key(verdict), []).append(verdict)
    return dict(sorted(groups.items()))


def _cells(groups: Mapping[Any, Sequence[Verdict]]) -> Iterable[tuple[Any, dict[str, Any]]]:
    """The cells of the groups in which something counts."""
    return ((name, _cell(group)) for name, group in groups.items() if not all(one.masked for one in group))


def accuracy(verdicts: Iterable[Verdict]) -> Share:
    """The share of right answers among those that count, with its interval over families and tasks."""
    clusters: dict[str, tuple[int, int]] = {}
    for verdict in verdicts:
        if not verdict.masked:
            right, n = clusters.get(verdict.cluster, (0, 0))
            clusters[verdict.cluster] = right + verdict.answer, n + 1
    return clustered_share(clusters.values())


def _cell(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    counted = [verdict for verdict in verdicts if not verdict.masked]
    share, right = accuracy(counted), sum(verdict.answer for verdict in counted)
    masked = len(verdicts) - len(counted)
    return {
        "accuracy": right / len(counted),
        "n": len(counted),
        "low": share.low,
        "high": share.high,
        "valid_accuracy": sum(verdict.valid for verdict in counted) / len(counted),
        "thought_words": _mean_words(counted),
        **({"clusters": share.clusters} if share.clusters != len(counted) else {}),
        **(
            {"masked": masked, "lowest": right / len(verdicts), "highest": (right + masked) / len(verdicts)}
            if masked
            else {}
        ),
    }


def _mean_words(verdicts: Sequence[Verdict]) -> float | None:
    known = [verdict.thought_words for verdict in verdicts if verdict.thought_words is not None]
    return sum(known) / len(known) if known else None


# Any key --------------------------------------------------------------------------------------------------------------


def value_of(verdict: Verdict, key: str) -> Any:
    """The value of a key by which tables are made; ``None`` where the verdict has none."""
    if key in ("depth", "structure", "family"):
        return getattr(verdict, key)
    return verdict.groups.get(key)


def check_keys(tables: Iterable[Sequence[str]], tasks: Sequence[Task]) -> None:
    """Raises :class:`callwright.UsageError` for a key of a table that no task has."""
    keys = [key for table in tables for key in table]
    if keys:
        _check(keys, {name for task in tasks for name in groups_of(task)})


def check_groups(tables: Iterable[Sequence[str]], verdicts: Iterable[Verdict]) -> None:
    """Raises :class:`callwright.UsageError` for a key of a table that no verdict has."""
    _check([key for table in tables for key in table], {name for verdict in verdicts for name in verdict.groups})


def _check(keys: Sequence[str], named: set[str]) -> None:
    known = named | {"depth", "structure", "family"}
    for key in keys:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"no task has a group {key!r}.{hint} There are: {', '.join(sorted(known))}")


def _by_keys(verdicts: Sequence[Verdict], keys: Sequence[str]) -> dict[str, Any]:
    groups = _grouped(verdicts, lambda verdict: group_name(verdict, keys))
    return {", ".join(shown for _, _, shown in names): cell for names, cell in _cells(groups)}


def group_name(verdict: Verdict, keys: Sequence[str]) -> tuple[tuple[int, float, str], ...]:
    """The group of a verdict by some keys, such that groups sort; the last part of each is how it is shown."""
    return tuple(_sortable(value_of(verdict, key)) for key in keys)


def _sortable(value: Any) -> tuple[int, float, str]:
    """A value such that numbers stand before texts, in their order."""
    if type(value) in (int, float):
        return 0, float(value), str(value)
    return 1, 0.0, "–" if value is None or value == "" else str(value).lower() if type(value) is bool else str(value)


# Several samples ------------------------------------------------------------------------------------------------------


def ks_of(n: int) -> list[int]:
    """The numbers of samples for which pass@k and pass^k are given."""
    if n <= _EVERY_K:
        return list(range(1, n + 1))
    return sorted({*(2**power for power in range(n.bit_length()) if 2**power <= n), n})


def _samples(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    tasks = _grouped(verdicts, lambda verdict: verdict.task)
    counts = [(one[0].cluster, sum(v.answer for v in one), sum(not v.masked for v in one)) for one in tasks.values()]
    most = max(len(group) for group in tasks.values())
    result: dict[str, Any] = {"n": most, "tasks": len(tasks), "pass@k": {}, "pass^k": {}}
    for k in ks_of(most):
        known = [(cluster, right, n) for cluster, right, n in counts if n >= k]
        # A task's estimate is worth as many rows as it has samples for draws of k that do not overlap: for one, all.
        worth = max(1, most // k)
        for name, estimate in (("pass@k", pass_at), ("pass^k", pass_hat)):
            clusters: dict[str, tuple[float, int]] = {}
            for cluster, right, n in known:
                total, size = clusters.get(cluster, (0.0, 0))
                clusters[cluster] = total + worth * estimate(n, right, k), size + worth
            share = clustered_share(clusters.values())
            result[name][str(k)] = {"value": share.share, "tasks": len(known), "low": share.low, "high": share.high}
    return result


def _rewards(verdicts: Sequence[Verdict], rewards: Mapping[tuple[str, int], float]) -> dict[str, Any]:
    tasks = _grouped(verdicts, lambda verdict: verdict.task)
    values = [[rewards[v.task, v.sample] for v in one if (v.task, v.sample) in rewards] for one in tasks.values()]
    return spread(values, [one[0].cluster for one in tasks.values()]).to_json()
