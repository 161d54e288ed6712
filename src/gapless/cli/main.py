"""The entry point of the command line: runs a verb and turns what it raises into one line and an exit status."""

import os
import sys
import traceback
import warnings
from typing import Any

import typer

import gapless.cli.exchange_commands  # noqa: F401  # adds its commands to the app
from gapless.cli.commands import app
from gapless.core.errors import GaplessError, Interrupted, ResultWarning

FAULT, BAD_INPUT, INTERRUPTED = 1, 2, 130
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]  # click's, or typer's own copy of it, by typer's version


def main() -> None:
    """Runs the command line. Exit status: 0 result, 1 our fault, 2 bad input, 130 interrupted."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command line and returns its exit status."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", ResultWarning)
        warnings.showwarning = _show_warning
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    try:
        command = typer.main.get_command(app)
        with command.make_context("gapless", list(arguments)) as context:
            command.invoke(context)
        sys.stdout.flush()
    except USAGE_ERROR as error:
        command = error.ctx.command_path if error.ctx else "gapless"
        return _say(f"{error.format_message()} (see `{command} --help`)", BAD_INPUT)
    except typer.Exit as leave:
        return leave.exit_code
    except Interrupted as stop:
        return _say(f"stopped: {stop}", INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        return _say("stopped: there is no result, and the same command begins anew", INTERRUPTED)
    except GaplessError as error:
        return _say(str(error), BAD_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("GAPLESS_DEBUG"):
            traceback.print_exc()
        hint = "a fault of gapless, not yours; GAPLESS_DEBUG=1 shows where"
        return _say(f"{type(error).__name__}: {' '.join(str(error).split())} ({hint})", FAULT)
    return 0


def _show_warning(message: Warning | str, category: type[Warning], *where: Any) -> None:
    """Prints what users must know as a line of ours, and other warnings as Python does."""
    if issubclass(category, ResultWarning):
        _say(str(message), 0)
    else:
        print(warnings.formatwarning(message, category, *where[:2]), file=sys.stderr, end="")


def _say(text: str, status: int) -> int:
    print(f"gapless: {' '.join(text.split())}", file=sys.stderr)
    return status


if __name__ == "__main__":
    main()
