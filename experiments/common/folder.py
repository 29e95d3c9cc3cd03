"""The folder of one run: what it may be, what it holds, and how training goes on from it."""
import json
import os

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from minidp.errors import CheckpointError, DataError, ParameterError
from minidp.files import jsonable, write_json
from minidp.privacy import Ledger
from minidp.train import Progress, load_checkpoint, restore_training, save_checkpoint


CONFIG, LEDGER, CHECKPOINT, RESULT = "config.json", "ledger.json", "checkpoint.npz", "result.json"
LOCK = "run.lock"


@dataclass
class Start:
    """Where training starts: a new run, or one that goes on.

    ledger       charges that stand, whatever happens next
    progress     steps that ran, and steps that the ledger covers
    setup_count  events in the ledger from before the first step
    history      rows of metrics so far
    seconds      spent so far: (in all, in steps)
    saved        the loaded checkpoint, None without one
    """

    ledger: Ledger
    progress: Progress = Progress()
    setup_count: int = 0
    history: list = field(default_factory=list)
    seconds: tuple = (0.0, 0.0)
    saved: tuple = None

    @property
    def begun(self):
        """True if a checkpoint exists, so that what comes before the first step is done."""
        return self.saved is not None


class RunFolder:
    """Files of one run under one folder, written so that a kill at any moment loses no charge."""

    def __init__(self, out, experiment, resume):
        """Raises ParameterError where `out` holds a run and resume is off, or holds none and resume is on."""
        if resume and out is None:
            raise ParameterError("--resume needs --out DIR, the folder of the run to go on with")
        self.path = Path(out) if out else Path("runs") / f"{experiment}-{datetime.now():%Y%m%d-%H%M%S}"
        holds_run = any((self.path / name).exists() for name in (CONFIG, LEDGER, CHECKPOINT, RESULT))
        if holds_run and not resume:
            raise ParameterError(f"--out {self.path} already holds a run; choose another folder, or add --resume")
        if resume and not holds_run:
            raise ParameterError(f"--out {self.path} holds no run to resume; leave out --resume to start one")
        self._resume = resume
        if self.path.exists() and not self.path.is_dir():
            raise ParameterError(f"--out {self.path} is a file; name a folder")
        _check_writable(self.path)

    @property
    def finished(self):
        """True if the run's result is there."""
        return (self.path / RESULT).is_file()

    def check_result(self, config):
        """Raises CheckpointError where the finished run had other flags than `config`, a dictionary without folders."""
        result = _read(self.path / RESULT)
        made = result.get("config")
        if not isinstance(made, dict):
            raise CheckpointError(f"{self.path / RESULT}: damaged: it does not say how the run was configured")
        _refuse_differences(self.path, {key: made[key] for key in made if key in config},
                            {key: config[key] for key in config if key in made})

    def open(self, config, relation, seeded):
        """Write the configuration of a new run, or compare it with the one that stands; returns a Start.

        Raises CheckpointError if it differs, or if the files do not belong together.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock()
        path = self.path / CONFIG
        if path.exists():
            if not self._resume:  # another process began a run here since the first look
                raise ParameterError(f"--out {self.path} already holds a run; choose another folder, or add --resume")
            _compare(path, config)
        elif (self.path / LEDGER).exists() or (self.path / CHECKPOINT).exists():
            raise CheckpointError(f"{path} is missing, so that it cannot be told which run the charges belong to")
        else:
            write_json(path, config)
        on_disk = Ledger.load(self.path / LEDGER) if (self.path / LEDGER).exists() else Ledger(relation)
        if not (self.path / CHECKPOINT).exists():
            # A seeded run draws the same noise again; without a seed what was charged is gone.
            return Start(Ledger(relation) if seeded else on_disk)
        arrays, header = load_checkpoint(self.path / CHECKPOINT, config)
        extra, history = header["extra"], header["history"]
        if not (isinstance(extra, dict) and isinstance(extra.get("setup_count"), int) and isinstance(history, list)
                and isinstance(extra.get("seconds"), list) and len(extra["seconds"]) == 2):
            raise CheckpointError(f"{self.path / CHECKPOINT}: damaged: not what a run of this kind stores")
        if not seeded:
            _check_extends(self.path, header["ledger"], on_disk)
        return Start(header["ledger"] if seeded else on_disk, header["progress"], extra["setup_count"],
                     header["history"], tuple(extra["seconds"]), (arrays, header))

    def _lock(self):
        """Keep other processes out of the folder until this one ends, however it ends."""
        if fcntl is None:
            return
        self._held = os.open(self.path / LOCK, os.O_WRONLY | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ParameterError(f"--out {self.path}: another process is running in this folder; wait for it, or "
                                 "choose another") from error

    def unlock(self):
        """Let others in, once this run has written its files."""
        if fcntl is not None:
            os.close(self._held)

    def charge(self, ledger):
        """Put the ledger on disk: before the step that it covers."""
        ledger.save(self.path / LEDGER)

    def checkpoint(self, config, network, optimizer, ledger, progress, streams, history, setup_count, seconds):
        """Write everything that training needs to go on."""
        save_checkpoint(self.path / CHECKPOINT, network, optimizer, ledger, progress, streams, config, jsonable(history),
                        {"setup_count": setup_count, "seconds": list(seconds)})

    def restore(self, start, network, optimizer, streams):
        """Put a resumed run's state into network, optimizer and (seeded) generators."""
        restore_training(self.path / CHECKPOINT, *start.saved, network, optimizer, streams)


def lots_charged(ledger, setup_count, plan):
    """Lots that the ledger covers, `setup_count` being its events from before the first step."""
    return (sum(count for _, count in ledger.items()) - setup_count) * plan.sampler.period


def steps_lost(start, plan):
    """Steps that a crash of an unseeded run took: charged on disk, and not in the checkpoint.

    They may have run, and their noise is not known, so their charges stay and the run gets that many fewer.
    Raises CheckpointError where the checkpoint claims more charges than the ledger holds.
    """
    on_disk = lots_charged(start.ledger, start.setup_count, plan)
    if start.progress.charged > on_disk:
        raise CheckpointError(f"the checkpoint claims {start.progress.charged} charged lots, the ledger holds {on_disk}")
    return max(0, min(on_disk, plan.steps) - start.progress.charged)


def _compare(path, config):
    _refuse_differences(path.parent, _read(path), config)


def _read(path):
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: damaged ({error})") from error
    if not isinstance(saved, dict):
        raise CheckpointError(f"{path}: damaged: expected an object, got {type(saved).__name__}")
    return saved


def _refuse_differences(folder, saved, config):
    differ = sorted(key for key in {*saved, *config} if saved.get(key) != config.get(key))
    if differ:
        named = ", ".join(f"{key} was {saved.get(key)!r} and is {config.get(key)!r}" for key in differ)
        raise CheckpointError(f"{folder} was made with another configuration: {named}")


def _check_extends(path, earlier, later):
    before, after = (Counter(), Counter())
    for ledger, counts in ((earlier, before), (later, after)):
        for event, n in ledger.items():
            counts[event] += n
    if later.relation is not earlier.relation or before - after:
        raise DataError(f"{path}: {LEDGER} shows less than {CHECKPOINT} had charged; it was changed by hand")


def _check_writable(path):
    place = path
    while not place.exists():
        place = place.parent
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        raise ParameterError(f"--out {path} cannot be written: {place} is not a folder that may be written to")
