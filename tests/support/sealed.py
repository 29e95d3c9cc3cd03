"""Edits of a run's files that are sealed again, as by somebody who knows the program."""

import json
from hashlib import sha256

from minidp.errors import DataError
from minidp.run import RunFolder
from minidp.run.record import Record
from minidp.run.statement import render
from minidp.run.verify import verify


def put(held, place, value):
    """Set the value at a place, named by keys and numbers, of JSON data."""
    *way, last = (int(key) if key.isdigit() else key for key in place.split())
    for key in way:
        held = held[key]
    held[last] = value


def places(value, at=()):
    """Yield the way to every place in JSON data, keys and numbers, and the value there."""
    inner = value.items() if isinstance(value, dict) else ()
    for key, each in enumerate(value) if isinstance(value, list) else inner:
        yield (*at, key), each
        yield from places(each, (*at, key))


def edit(run, name, change):
    """Edit a JSON file, by {place: value}, and seal the folder again."""
    data = json.loads((run / name).read_text())
    for place, value in change.items():
        put(data, place, value)
    (run / name).write_text(json.dumps(data, indent=2) + "\n")
    RunFolder(run).seal(private=True)


def tell(run, change):
    """Edit the result, write the statement that follows from it, and seal the folder again."""
    edit(run, "result.json", change)
    statement = render(Record.from_json(json.loads((run / "result.json").read_text())))
    (run / "privacy.md").write_text(statement)
    edit(run, "result.json", {"statement_sha256": sha256(statement.encode()).hexdigest()})


def failed(run):
    """What the verdict says of the questions that were not passed; empty where all were."""
    return " ".join(f"{each.question} {each.answer}" for each in verify(run).failed)


def noticed(run):
    """True if a question was not passed, or the files cannot be read."""
    try:
        return bool(failed(run))
    except DataError:
        return True
