"""manela tune in a process of its own."""

import numpy as np


def test_tune_prints_its_trials_and_the_flags_of_the_best(manela, tmp_path):
    rng = np.random.default_rng(0)
    ends = rng.integers(30, size=(120, 2))
    (tmp_path / "net.txt").write_text("".join(f"{u} {v}\n" for u, v in ends))
    done = manela("tune", tmp_path / "net.txt", "--max-seconds", 2)
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows, empty, last = done.stdout.splitlines()
    assert head.split() == ["MAP", "budget", "seconds", "flags"]
    assert empty == ""
    flags = rows[0].split(maxsplit=3)[3]
    assert last == f"best of {len(rows)} trials: manela embed {tmp_path / 'net.txt'} -o vectors.npz {flags}"


def test_bad_input_gives_one_line_and_status_2(manela, tmp_path):
    (tmp_path / "net.txt").write_text("1 2\n2 3\n")
    for arguments, rule in (
        ((tmp_path / "none.txt",), "no such file"),
        ((tmp_path / "net.txt", tmp_path / "none.csv"), "no such file"),
        ((tmp_path / "net.txt", "--max-seconds", 0), "--max-seconds must be above 0"),
        ((tmp_path / "net.txt",), "too small"),
    ):
        done = manela("tune", *arguments)
        assert done.returncode == 2
        assert rule in done.stderr
        assert done.stderr.count("\n") == 1
