"""Edits of a run's files that are sealed again, as by somebody who knows the program."""

import json
from hashlib import sha256

from minidp.run import RunFolder
from minidp.run.statement import render
from minidp.run.verify import verify

GONE = object()


def put(held, place, value):
    """Set the value at a place, named by keys and numbers, of JSON data; GONE takes it out."""
    *way, last = place.split()
    for key in way:
        held = held[int(key)] if isinstance(held, list) else held[key]
    if value is GONE:
        del held[last]
    else:
        held[last] = value


def edit(run, name, change):
    """Edit a JSON file and seal the folder again."""
    data = json.loads((run / name).read_text())
    change(data)
    (run / name).write_text(json.dumps(data, indent=2) + "\n")
    RunFolder(run).seal(private=True)


def tell(run, change):
    """Edit the result, write the statement that follows from it, and seal the folder again."""
    result = json.loads((run / "result.json").read_text())
    change(result)
    (run / "privacy.md").write_text(render(result))
    digest = sha256((run / "privacy.md").read_bytes()).hexdigest()
    edit(run, "result.json", lambda r: r.update(result, statement_sha256=digest))


def failed(run):
    return [finding.question for finding in verify(run).failed]
