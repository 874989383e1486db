"""Runs the command line: `manela`, and `python -m manela`."""

import sys


def main() -> None:
    """Run the command line and exit; Ctrl-C ends it quietly also while it is still being imported."""
    try:
        from manela.cli.main import main as run
    except KeyboardInterrupt:
        from manela.system.signals import interrupted

        sys.exit(interrupted())
    run()


if __name__ == "__main__":
    main()
