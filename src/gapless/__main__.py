"""Runs the command line with `python -m gapless`."""

from gapless.cli.main import main

main()
