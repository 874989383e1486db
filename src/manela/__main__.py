"""Runs the command line: `manela`, and `python -m manela`."""

import sys


def main() -> None:
    """Run the command line and exit; Ctrl-C ends it quietly, also during imports and after the command has ended."""
    try:
        from manela.cli.main import run_from_shell

        run_from_shell()
    except KeyboardInterrupt:
        from manela.system.signals import interrupted

        sys.exit(interrupted())


if __name__ == "__main__":
    main()
