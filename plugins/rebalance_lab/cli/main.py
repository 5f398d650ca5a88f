"""The console script: how the process begins and ends.

The module imports only what the interpreter has loaded, so that Ctrl-C ends the program in the same way while
all other modules are imported.
"""

import gc
import os
import sys
from errno import EDQUOT, EFBIG, EIO, ENOSPC, EPIPE
from io import TextIOWrapper

OUTPUT_LOST = 1
CLOSED = 2
INTERRUPTED = 130

_OF_OUTPUT = (EDQUOT, EFBIG, EIO, ENOSPC, EPIPE)


def run() -> None:
    """Run the command and exit with its status. An error of this program or of its output is one line."""
    status = _status()
    gc.freeze()  # the collection at the end of the interpreter would go through all objects
    sys.exit(status)


def _status() -> int:
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        sys.stderr.write("error: standard output is closed\n")
        return CLOSED
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for characters that the terminal does not have
    try:
        from rebalance_lab.simulation.world.collector import collecting_rarely

        with collecting_rarely():  # modules are kept: collections during their imports free nothing
            from rebalance_lab.cli.app import call

            status = call(sys.argv[1:])
    except KeyboardInterrupt:
        status = INTERRUPTED
    except OSError as error:
        if error.errno not in _OF_OUTPUT:
            raise
        status = _lost(error)
    _end_at_ctrl_c()
    try:
        sys.stdout.flush()
    except OSError as error:
        return status or _lost(error)
    return status


def _end_at_ctrl_c() -> None:
    """Let Ctrl-C end the process without a traceback while the interpreter ends."""
    import signal
    from threading import current_thread, main_thread

    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _lost(error: OSError) -> int:
    """Report output that cannot be written. A reader that has closed the pipe has read enough."""
    if error.errno != EPIPE:
        sys.stderr.write(f"error: output cannot be written ({error.strerror})\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where the rest of it is flushed to
    return OUTPUT_LOST
