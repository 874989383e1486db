"""Runs the command line as `python -m manela`."""

from manela.cli.main import main

main()
