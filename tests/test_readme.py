"""Every Python example of the README runs as it stands there."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"


def examples(text):
    """(line, code) of each ```python block."""
    return [(text[: match.start()].count("\n") + 1, match[1])
            for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


EXAMPLES = examples(README.read_text(encoding="utf-8")) if README.is_file() else []


def test_readme_has_an_example():
    assert EXAMPLES


@pytest.mark.parametrize("code", [code for _, code in EXAMPLES], ids=[f"line {line}" for line, _ in EXAMPLES])
def test_example_runs(code, tmp_path):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
