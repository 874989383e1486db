"""Tables in Markdown, printed row by row as results come."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def table(*heads: str) -> Iterator["Table"]:
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads), flush=True)
    yield Table()


class Table:
    """Rows of a table that has begun."""

    def row(self, *cells: object) -> None:
        """Print a row."""
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def spread(values: Sequence[float], form: str = ".1f") -> str:
    """The median, with the smallest and largest."""
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return f"{middle:{form}} ({ordered[0]:{form}} to {ordered[-1]:{form}})"
