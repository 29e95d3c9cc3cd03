"""Code that the experiments share. Importing it changes nothing: `start` prepares a script's
process.
"""

import sys


def start(name):
    """Prepare the process of a script, whose `__name__` this is, before NumPy loads.

    Does nothing where the script is imported.
    """
    if name == "__main__":
        prepare_process()


def prepare_process():
    """Tune the host, and report Ctrl-C while libraries are imported in one line."""
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
