"""python -m benchmarks mail: edges from an mbox of a million messages, and how much memory that takes."""

from __future__ import annotations

import mailbox
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MESSAGES = 1_000_000
_READ = """
import resource, sys, time
from pathlib import Path
from manela.sources.mail import MailSource
from manela.sources.source import import_to_file
begun = time.perf_counter()
source = MailSource([Path(sys.argv[1])], ["example.org"])
edges = import_to_file(source, Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
print(edges, time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
_LOOK = """
import sys, time
begun = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    while file.read(1 << 20):
        pass
print(time.perf_counter() - begun)
"""


def main() -> None:
    """Write an mbox, read it three ways, print a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        box = folder / "box"
        write_mbox(box, MESSAGES)
        size = box.stat().st_size
        _run(_LOOK, box)
        bytes_alone = float(_run(_LOOK, box)[0])
        plain = _run(_READ, box, folder / "edges.csv")
        kept = _run(_READ, box, folder / "edges.csv", folder / "state")
        again = _run(_READ, box, folder / "edges.csv", folder / "state")
        part = folder / "part"
        write_mbox(part, MESSAGES // 100)
        begun = time.perf_counter()
        for message in mailbox.mbox(part):
            message["From"], message["To"]
        library = (time.perf_counter() - begun) * 100
    print(f"mbox of {MESSAGES:,} messages, {size / 1e9:.2f} GB, {int(plain[0]):,} edges")
    print()
    print("| | seconds | peak memory, MB |")
    print("|---|---|---|")
    for words, row in (("to edges.csv", plain), ("… with a state", kept), ("… again, with nothing new", again)):
        print(f"| {words} | {float(row[1]):.1f} | {float(row[2]) / 1e6:.0f} |")
    print(f"| reading the bytes alone | {bytes_alone:.1f} | |")
    print(f"| `mailbox.mbox` and two headers, from a hundredth | {library:.0f} | |")


def write_mbox(path: Path, messages: int) -> None:
    """An mbox of the mail of 20,000 people of example.org with people of 300 other domains."""
    draw = random.Random(1)
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct")
    body = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor.\n" * 40
    with path.open("w") as file:
        for number in range(messages):
            person, is_own = draw.randrange(20_000), draw.random() < 0.5
            sender = f"user{person}@example.org" if is_own else f"p{person}@dom{person % 300}.example"
            recipients = []
            for _ in range(draw.choice((1, 1, 1, 2, 3))):
                other = draw.randrange(20_000)
                if not is_own or draw.random() < 0.5:
                    recipients.append(f"User {other} <user{other}@example.org>")
                else:
                    recipients.append(f'"P, {other}" <p{other}@dom{other % 300}.example>')
            date = f"{draw.randrange(1, 28)} {draw.choice(months)} 2026 {draw.randrange(24):02}:00:00 +0000"
            file.write(
                f"From {sender} Mon Nov 16 12:00:00 2026\nReceived: from x by y; Mon, {date}\n"
                f"Message-ID: <{number}.{person}@mail.example.org>\nDate: Mon, {date}\nFrom: User {person} <{sender}>\n"
                f"To: {', '.join(recipients)}\nSubject: hello {number}\nMIME-Version: 1.0\nContent-Type: text/plain\n\n"
                f"{body[: draw.randrange(200, 2600)]}\n\n"
            )


def _run(code: str, *arguments: Path) -> list[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
