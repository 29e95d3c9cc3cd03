"""How this process was started, for hints of commands."""

import os
import shutil
import sys
from shlex import quote


def program() -> str:
    """What starts a command of minidp as this process was started, such as `python -m minidp`."""
    script = sys.argv[0]
    if os.path.basename(script) != "minidp":
        return f"{quote((sys.orig_argv or ['python'])[0])} -m minidp"
    return "minidp" if shutil.which("minidp") == script else quote(script)
