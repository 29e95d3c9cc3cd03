"""What the experiments share. Importing it first tunes the host, or says in one line where minidp
is not installed.
"""

import sys
from importlib.util import find_spec

if find_spec("minidp") is None:
    print(
        "error: minidp is not installed in this Python; run `pip install -e .` in the repository's "
        "folder first",
        file=sys.stderr,
    )
    sys.exit(2)

from minidp import host  # noqa: E402

host.tune()  # before NumPy loads


def _hook(kind, error, trace, others=sys.excepthook):
    """Ctrl-C before the command line is read, while libraries are imported, is no fault of the
    program either.
    """
    from minidp.ranks import current

    current().failing(f"{kind.__name__}: {error}")  # others may wait for this rank to join them
    if current().rank:
        return
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        others(kind, error, trace)


sys.excepthook = _hook
