"""The folder of one run: which folders are accepted, their files, and the order in which these are
written.

A charge is on disk before the noise that it pays for is drawn. Only the process that owns the
folder writes to it: the folder is locked, and before every charge and checkpoint ledger.json must
be as this process wrote it last.
"""

import hashlib
import hmac
import json
import os
import secrets
import sys
import time
from functools import wraps
from itertools import chain
from pathlib import Path

import numpy as np

from ..errors import CheckpointError, DataError, ParameterError
from ..privacy.ledger import FITS, STEP, Ledger
from ..ranks import current
from ..util.files import json_text, jsonable, read_json, write_json
from .checkpoint import (
    hashed_bytes,
    load_checkpoint,
    refuse_differences,
    save_checkpoint,
    say_unnamed,
)
from .hold import hold

CONFIG, LEDGER, CHECKPOINT, RESULT = "config.json", "ledger.json", "checkpoint.npz", "result.json"
METRICS, CURVES, MODEL, STATEMENT = "metrics.csv", "curves.png", "model.npz", "privacy.md"
MANIFEST, KEY, LOCK = "manifest.json", "folder.key", "run.lock"
# files with figures computed from training data
MAY_BE_PRIVATE = (RESULT, METRICS, CURVES, CHECKPOINT)
FILES = (CONFIG, LEDGER, MODEL, STATEMENT, *MAY_BE_PRIVATE)
EARLIER = "earlier"  # purpose of steps whose checkpoint was lost when an unseeded run began again
CHARGED = "charged"  # in config.json: a charge was made, so ledger.json must be there
VERSION = "minidp"  # in config.json: the version that made the first charge
FIT = "fit_id"  # in config.json: the id of the run's entries in a ledger that fits share
UNNAMED = "0.1.0"  # the version of folders that do not name one


def by_first(method):
    """Decorator: only rank 0 runs the method, and all ranks get its result or its error."""

    @wraps(method)
    def on_all(self, *arguments, **named):
        return current().of_first(lambda: method(self, *arguments, **named))

    return on_all


class RunFolder:
    """The files of one run in one folder, written so that a kill at any moment loses no charge. On
    several ranks, rank 0 writes.
    """

    def __init__(self, path, resume=None):
        """resume: True to resume an existing run, False for a new one, None for either.

        Raises ParameterError if `path` holds a run and resume is False, or holds no run and resume
        is True.
        """
        self.resume, self.began, self._unlock = resume, time.perf_counter(), lambda: None
        self.version = sys.modules["minidp"].__version__  # that the run began with
        self.fit = self.on_charge = None
        # its name may be the time of day
        self.path = current().of_first(lambda: Path(path))
        self._check_place()

    @by_first
    def _check_place(self):
        self._refuse_second()
        if self.resume and not self.holds_run:
            raise ParameterError(
                f"{self.path} holds no run to resume; leave out --resume to start one"
            )
        if self.path.exists() and not self.path.is_dir():
            raise ParameterError(f"{self.path} is a file; name a folder")
        if not self.holds_run and (mine := [name for name in FILES if (self.path / name).exists()]):
            raise ParameterError(
                f"{self.path} holds {', '.join(mine)}, and no run that wrote it: choose another "
                "folder, or move it"
            )
        place = next(
            place for place in (self.path, *self.path.absolute().parents) if place.exists()
        )
        if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
            raise ParameterError(
                f"{self.path} cannot be written: {place} is not a folder that may be written to"
            )

    @property
    @by_first
    def holds_run(self):
        """True if a run began here."""
        return any((self.path / name).exists() for name in (CONFIG, LEDGER, CHECKPOINT, RESULT))

    @property
    def by_another_version(self):
        """True if the run was begun by another version, which may scale the same rows otherwise."""
        return self.version != sys.modules["minidp"].__version__

    @property
    @by_first
    def finished(self):
        """True if the run's result exists."""
        return (self.path / RESULT).is_file()

    @by_first
    def result(self):
        """The dictionary of result.json."""
        return read_json(self.path / RESULT, CheckpointError)

    def check_result(self, config):
        """Raise CheckpointError if the finished run had other settings than the dictionary
        `config`.
        """
        made = self.result().get("config")
        if not isinstance(made, dict):
            raise CheckpointError(
                f"{self.path / RESULT}: damaged: it does not say how the run was configured"
            )
        both = made.keys() & config.keys()
        refuse_differences(
            self.path, {key: made[key] for key in both}, {key: config[key] for key in both}
        )

    @by_first
    def open(self, config, relation, seeded, private_digest=None):
        """Lock the folder; write the configuration of a new run, or compare it with that of the run
        that charged here.

        Returns (ledger with the charges that remain valid, the loaded checkpoint or None).
        private_digest: a hash of private records; only a keyed hash of it is stored. Raises
        CheckpointError if the configuration differs, or if the files do not belong together.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._unlock = hold(self.path, LOCK, self)
        try:
            return self._opened(config, relation, seeded, private_digest)
        except BaseException:  # its traceback would keep the folder locked
            self.close()
            raise

    def _opened(self, config, relation, seeded, private_digest):
        self.config, self._charged, self._unnamed = jsonable(config), False, False
        if private_digest is not None:
            self.config["dataset_hmac_sha256"] = self.digest(private_digest.encode())
        self._on_disk = self._read_ledger()
        self._begin_or_compare()
        if self._charged and self._on_disk is None:
            raise CheckpointError(
                f"{self.path / LEDGER} is missing, and {CONFIG} says that charges were made: what "
                "was released is not known; put the file back, or start another run in another "
                "folder"
            )
        return self._standing(relation, seeded)

    def _begin_or_compare(self):
        """Write the configuration, or refuse it if the charges here were made under another one."""
        path = self.path / CONFIG
        used = any((self.path / name).exists() for name in (LEDGER, CHECKPOINT, RESULT))
        if path.exists():
            self._refuse_second()  # another process may have begun a run here in the meantime
            saved = read_json(path, CheckpointError)
            self._charged, version = saved.pop(CHARGED, False), saved.pop(VERSION, UNNAMED)
            fit = saved.pop(FIT, None)
            if not (fit is None or isinstance(fit, str) and FITS.fullmatch(fit)):
                raise CheckpointError(f"{path}: damaged: {FIT} is {fit!r:.80}")
            self.fit = fit
            if self._charged or used:
                self.version = version
                refuse_differences(self.path, saved, self.config)
                self._unnamed = not self.finished and say_unnamed(path, saved, self.config)
        elif used:
            raise CheckpointError(
                f"{path} is missing, so that it cannot be told which run the charges belong to"
            )
        if not (self._charged or used):
            # a run that began here charged nothing, so another run may replace it
            self._write_config()

    def _standing(self, relation, seeded):
        """(the charges that remain valid, the loaded checkpoint or None)."""
        stood = Ledger(relation) if self._on_disk is None else Ledger.load(self.path / LEDGER)
        if not (self.path / CHECKPOINT).exists():
            # A seeded run draws the same noise again; without a seed, the charged noise is lost.
            earlier = [
                (event, times, EARLIER if purpose == STEP else purpose)
                for event, times, purpose in stood.entries()
            ]
            return Ledger(relation, [] if seeded else earlier, stood.unit), None
        _, header = saved = load_checkpoint(self.path / CHECKPOINT, self.config)
        charged = header["ledger"]
        if seeded:
            return charged, saved
        if charged.relation is not stood.relation or charged.counted() - stood.counted():
            raise DataError(
                f"{self.path}: {LEDGER} shows less than {CHECKPOINT} had charged; it was changed "
                "by hand"
            )
        return stood, saved

    @by_first
    def charge(self, ledger):
        """Write the ledger to disk before the releases that it covers, and note in config.json that
        charges exist.
        """
        self._check_own()
        ledger.save(self.path / LEDGER)
        before, self._on_disk = self._on_disk, f"{ledger.canonical()}\n".encode()
        if not self._charged:
            self._charged = True
            self._write_config()
        if self._on_disk != before:
            self.renew()

    @by_first
    def renew(self):
        """Call `on_charge`, if there is one, so that copies of the folder from before cannot use
        its charges.
        """
        if self.on_charge:
            self.on_charge()

    def name_fit(self, fit):
        """Write the id of the run's entries in a ledger that fits share into config.json."""
        self.fit = fit
        self._write_config()

    @by_first
    def checkpoint(self, network, optimizer, ledger, progress, *more):
        """Write all that training needs to resume: `save_checkpoint` with the folder's path and
        configuration.
        """
        self._check_own()
        save_checkpoint(
            self.path / CHECKPOINT, network, optimizer, ledger, progress, self.config, *more
        )

    @by_first
    def digest(self, *parts):
        """HMAC-SHA-256 of some bytes under the folder's key."""
        found = hmac.new(self._key(), digestmod=hashlib.sha256)
        for part in parts:
            found.update(part)
        return found.hexdigest()

    def identity(self, given):
        """A keyed hash of the arrays in `given`, by which a resumed run notices other arrays; None
        without arrays.
        """
        arrays = [getattr(each, "source", each) for each in given]
        arrays = [array for array in arrays if isinstance(array, np.ndarray)]
        return self.digest(*chain.from_iterable(map(hashed_bytes, arrays))) if arrays else None

    def check_same(self, saved, releases, given):
        """Raise CheckpointError or DataError unless a resumed run makes the same releases as the
        loaded checkpoint, and has the same arrays `given`.
        """
        path, (arrays, header) = self.path / CHECKPOINT, saved
        if {name for name in arrays if name.startswith("release/")} != {
            f"release/{name}" for name in releases
        }:
            raise CheckpointError(
                f"{path}: the run released something else at first; make the same calls of "
                "release_first again"
            )
        stored = header["extra"]["examples"]
        if stored and not (self.path / KEY).is_file():
            raise CheckpointError(
                f"{self.path / KEY} is missing, which tells whether x and y are the same as "
                "before; put it back, or choose another folder"
            )
        if stored != self.identity(given):
            raise DataError(
                f"{path}: the run began with other examples; resume with the same x and y, or "
                "choose another folder"
            )

    def _key(self):
        """The folder's key, which is created on first use and kept in the folder."""
        path = self.path / KEY
        if not path.is_file():
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32) + "\n")
        return path.read_bytes().strip()

    def finish(self, record):
        """Write manifest.json, and last of all result.json, which says that the run is finished."""
        if self._unnamed:
            self._write_config()
        self.seal(bool(record.not_private), json_text(record).encode())
        write_json(self.path / RESULT, record)

    def seal(self, private, result=None):
        """Write manifest.json, the SHA-256 of every file. If `private`, hashes of files that may
        hold private figures are keyed.

        result: the content of result.json, if it is not written yet.
        """
        content = {
            name: result if name == RESULT and result else (self.path / name).read_bytes()
            for name in FILES
        }
        keyed = MAY_BE_PRIVATE if private else ()
        write_json(
            self.path / MANIFEST,
            {
                "format": 1,
                "files": {
                    name: fingerprint(found, self._key() if name in keyed else None)
                    for name, found in content.items()
                },
            },
        )

    @by_first
    def give_up(self):
        """Unlock the folder, and delete the configuration if the run charged nothing."""
        if not self._charged:
            (self.path / CONFIG).unlink(missing_ok=True)
        self.close()

    def close(self):
        """Unlock the folder."""
        self._unlock()

    def _write_config(self):
        found = {**self.config, CHARGED: self._charged, VERSION: self.version}
        if self.fit is not None:
            found[FIT] = self.fit
        write_json(self.path / CONFIG, found)

    def _read_ledger(self):
        try:
            return (self.path / LEDGER).read_bytes()
        except FileNotFoundError:
            return None

    def _check_own(self):
        if self._read_ledger() != self._on_disk:
            raise CheckpointError(
                f"{self.path / LEDGER} is not what this process wrote last: another process runs "
                "in this folder, or the file was changed; stopped before anything more was released"
            )

    def _refuse_second(self):
        if self.resume is False and self.holds_run:
            raise ParameterError(
                f"{self.path} already holds a run; choose another folder, or add --resume"
            )


def fingerprint(content, key=None):
    """The entry of a file in manifest.json."""
    return (
        {"sha256": hashlib.sha256(content).hexdigest()}
        if key is None
        else {"hmac_sha256": hmac.new(key, content, hashlib.sha256).hexdigest()}
    )


def changed_files(folder):
    """Describe every file that changed since `RunFolder.seal`."""
    if not (folder / MANIFEST).is_file():
        yield f"{MANIFEST} is missing"
        return
    text = (folder / MANIFEST).read_text(encoding="utf-8")
    manifest = json.loads(text)
    key = (folder / KEY).read_bytes().strip() if (folder / KEY).is_file() else None
    for name in FILES:
        digests = manifest["files"].get(name, {})
        keyed = "hmac_sha256" in digests
        if not (folder / name).is_file():
            yield f"{name} is missing: put it back, or ask the run's owner for the whole folder"
        elif keyed and key is None:
            yield f"{name} cannot be checked without {KEY}"
        elif digests != fingerprint((folder / name).read_bytes(), key if keyed else None):
            yield f"{name} was changed"
    if text != json.dumps(manifest, indent=2) + "\n" or set(manifest["files"]) != set(FILES):
        yield f"{MANIFEST} was changed"
