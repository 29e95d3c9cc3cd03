"""Every Python example of the pages runs as it stands there."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "minidp/README.md")


def examples(text):
    """(line, code) of each ```python block."""
    return [(text[: match.start()].count("\n") + 1, match[1])
            for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


EXAMPLES = [(f"{page}, line {line}", code) for page in PAGES if (ROOT / page).is_file()
            for line, code in examples((ROOT / page).read_text(encoding="utf-8"))]


def test_each_page_has_an_example():
    assert all(any(where.startswith(page) for where, _ in EXAMPLES) for page in PAGES)


@pytest.mark.parametrize("code", [code for _, code in EXAMPLES], ids=[where for where, _ in EXAMPLES])
def test_example_runs(code, tmp_path):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
