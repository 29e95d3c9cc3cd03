"""A process beside rank 0 of a run on several ranks. It names a rank that ended without a message,
and ends the others.

No rank could print this, because launchers kill all other ranks at once. `minidp.ranks` runs this
file as a script.
"""

import select
import socket
import sys
from contextlib import suppress


def main(number, token):
    """Serve the listening socket `number` to the ranks, each of which sends a line: token and who
    it is.
    """
    server, names, over = socket.socket(fileno=int(number)), {}, []
    while names or not over:
        words = {}
        for found in select.select([server, *names], [], [])[0]:
            if found is server:
                rank = server.accept()[0]
                given, _, name = rank.makefile("rb", 0).readline().decode().strip().partition(" ")
                if given == token:
                    names[rank] = name
                continue
            try:
                words[found] = found.recv(1)
            except ConnectionError:
                words[found] = b""
        if b"t" in words.values():  # one has told by itself why it ends the run
            return  # which closes the others' connections
        if gone := [names[found] for found, word in words.items() if not word]:
            print(
                f"{' or '.join(gone)} ended without a word (killed, or crashed), and with it the "
                "run; what was charged is in the run's folder, and the run can be resumed",
                file=sys.stderr,
            )
            return
        over += [(found, names.pop(found)) for found in words]  # "bye"; connections stay open
        for rank in names if words else ():
            with suppress(OSError):
                rank.sendall(b"l")  # "left": who still waits for that one waits in vain


if __name__ == "__main__":
    main(*sys.argv[1:])
