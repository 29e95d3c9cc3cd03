"""The command that started this process, for messages that suggest the next command."""

import os
import shutil
import sys
from shlex import quote


def program() -> str:
    """The words that start a command of minidp the way this process was started, such as `python -m
    minidp`.
    """
    script = sys.argv[0]
    if os.path.basename(script) != "minidp":
        return f"{quote((sys.orig_argv or ['python'])[0])} -m minidp"
    return "minidp" if shutil.which("minidp") == script else quote(script)
