"""What the experiments share.

Importing it changes nothing outside, except in a process that was started to run one of the scripts
beside this folder: there it prepares the process, before NumPy loads.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("minidp") is None:
    print(
        "error: minidp is not installed in this Python; run `pip install -e .` in the repository's "
        "folder first",
        file=sys.stderr,
    )
    sys.exit(2)


def prepare_process():
    """Tune the host before NumPy loads, and report Ctrl-C while libraries are imported in one
    line.
    """
    from minidp import host

    host.tune()
    others = sys.excepthook

    def hook(kind, error, trace):
        from minidp.ranks import current

        current().failing(f"{kind.__name__}: {error}")  # others may wait for this rank to join them
        if current().rank:
            return
        if issubclass(kind, KeyboardInterrupt):
            print("interrupted", file=sys.stderr)
        else:
            others(kind, error, trace)

    sys.excepthook = hook


# The processes of a sweep inherit sys.argv; in workers of `python -m mpi4py.futures` the script is
# the second word.
scripts = Path(__file__).resolve().parents[1].glob("*.py")
if {Path(word).resolve() for word in sys.argv[:2]} & {*scripts}:
    prepare_process()
