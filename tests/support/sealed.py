"""Edits of a run's files that are sealed again, as by somebody who knows the program."""

import json
from hashlib import sha256

from minidp.run import RunFolder
from minidp.run.statement import render
from minidp.run.verify import verify

GONE = object()


def put(held, place, value):
    """Set the value at a place, named by keys and numbers, of JSON data; GONE takes it out."""
    *way, last = (int(key) if key.isdigit() else key for key in place.split())
    for key in way:
        held = held[key]
    if value is GONE:
        del held[last]
    else:
        held[last] = value


def edit(run, name, change):
    """Edit a JSON file, by change(data) or by {place: value}, and seal the folder again."""
    data = json.loads((run / name).read_text())
    if callable(change):
        change(data)
    else:
        for place, value in change.items():
            put(data, place, value)
    (run / name).write_text(json.dumps(data, indent=2) + "\n")
    RunFolder(run).seal(private=True)


def tell(run, change):
    """Edit the result, write the statement that follows from it, and seal the folder again."""
    edit(run, "result.json", change)
    statement = render(json.loads((run / "result.json").read_text()))
    (run / "privacy.md").write_text(statement)
    edit(run, "result.json", {"statement_sha256": sha256(statement.encode()).hexdigest()})


def failed(run):
    """What the verdict says of the questions that were not passed; empty where all were."""
    return " ".join(f"{each.question} {each.answer}" for each in verify(run).failed)
