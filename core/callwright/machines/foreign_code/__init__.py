"""Code of others, run in a process that can be killed: by an interpreter of its own, with values that are copied.

    with ForeignCode(folder, interpreter="/opt/py312/bin/python", time_limit=10) as code:
        code.call("scorer.win:win_rate", sample, prediction)

Official scorers and the functions that they execute are pointed at, never imported here: they pin other versions, may
need another Python, print, hang, change their arguments or end the process.
"""
