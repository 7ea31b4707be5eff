"""Task rows: tasks of any environment as rows of JSON, and files of them that say which environments they are of.

``rows`` turns a task into a row and back, ``tools`` and ``stated`` do so with its tools and its environment. ``head``
is what a file says of itself, ``writing`` and ``reading`` are the files (``lines`` of JSON, compressed or not, and
``parquet``). ``chats`` writes tasks as messages for supervised training. May import: tasks, plugins, and what is below
them.
"""
