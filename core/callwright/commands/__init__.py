"""What commands are made of: the kit of every command of the command line, a plugin's and Callwright's own alike.

A plugin adds commands with the hook ``callwright_commands``. Each is a :class:`click.Command` whose ``ctx.obj`` is an
:class:`App`. The modules hold one thing each: ``app`` (the invocation and its plugins), ``options`` (options that
commands share), ``pipelines`` and ``row_corpus`` (a pipeline from what those options say), ``jsonl`` and ``row_files``
(files of rows), ``outputs`` (files of rows that are gone on with), ``scored_rows`` and ``tally`` (rows of rewards and
their summary), ``file_formats`` (the schemas of all files), ``bars`` (progress), ``terminal`` (screen and tables),
``safe_text`` (text that a terminal cannot obey), ``failures`` (how a command ends). A command may print, and raises
what goes wrong.

May import: everything of the core but ``cli`` and ``testing``.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
