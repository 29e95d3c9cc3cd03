"""Add finished runs to the JSON of a table, experiments/results/NAME.json, a row for each.

    python -m tools.collect mnist_best runs/eps2-seed1 runs/eps2-seed2

A run's setting is the name of its folder less "-seedN". A run of the same setting and seed that
is in the file already is replaced. A sweep writes its figure's file itself.
"""

import sys
from pathlib import Path

from experiments.common.results import RESULTS, ledger_of, packed, result_of, row_of, rows_of
from minidp.commands.flags import Parser, user_errors
from minidp.errors import MinidpError
from minidp.privacy import Ledger
from minidp.util.files import read_json, write_json


def collected(folder):
    """The row of a finished run. Raises MinidpError where its settings do not give its ledger."""
    result = result_of(folder)
    row = row_of(folder.resolve().name.removesuffix(f"-seed{result['seed']}"), result)
    if ledger_of(row) != Ledger.load(folder / "ledger.json"):
        raise MinidpError(
            f"{folder}: ledger.json holds other charges than its settings give, such as those of "
            "an attempt that was cut off; make the run again in a folder of its own"
        )
    return row


def main(argv=None):
    """The command line; returns the exit status."""
    parser = Parser(prog="python -m tools.collect", description=__doc__.splitlines()[0])
    parser.add_argument("name", help="of the table's file, without .json")
    parser.add_argument(
        "run", nargs="+", type=Path, help="folder of a finished run, such as eps2-seed1"
    )
    args = parser.parse_args(argv)
    with user_errors():
        path = RESULTS / f"{args.name}.json"
        before = read_json(path) if path.exists() else {}
        if set(before) - set(packed([{"name": ""}])):
            raise MinidpError(
                f"{path} is not a table of runs alone: the sweep or program that made it writes it"
            )
        rows = {
            (row["name"], row["seed"]): row for row in [*rows_of(before), *map(collected, args.run)]
        }
        write_json(path, packed(list(rows.values())))
        print(f"read:  {path} ({len(rows)} runs)\nnext:  python -m tools.tables")
    return 0


if __name__ == "__main__":
    sys.exit(main())
