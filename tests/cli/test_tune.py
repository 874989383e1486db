"""manela tune in a process of its own."""

import numpy as np


def test_tune_prints_its_trials_and_the_flags_of_the_best(manela_here, tmp_path):
    rng = np.random.default_rng(0)
    ends = rng.integers(30, size=(120, 2))
    (tmp_path / "net.txt").write_text("".join(f"{u} {v}\n" for u, v in ends))
    done = manela_here("tune", tmp_path / "net.txt", "--max-seconds", 1, "--unweighted", "--random-state", 3)
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = done.stdout.partition("\n\n")[0].splitlines()
    assert head.split() == ["MAP", "budget", "seconds", "flags"]
    flags = rows[0].split(maxsplit=3)[3]
    best = f"manela embed {tmp_path / 'net.txt'} -o vectors.npz {flags} --unweighted --random-state 3"
    assert done.stdout.splitlines()[-1] == f"best of {len(rows)} trials: {best}"
    if len(rows) < 18:
        assert "were not tried for lack of time" in done.stdout


def test_bad_input_gives_one_line_and_status_2(manela_here, tmp_path):
    (tmp_path / "net.txt").write_text("1 2\n2 3\n")
    for arguments, rule in (
        ((tmp_path / "none.txt",), "no such file"),
        ((tmp_path / "net.txt", tmp_path / "none.csv"), "no such file"),
        ((tmp_path / "net.txt", "--max-seconds", 0), "--max-seconds must be above 0"),
        ((tmp_path / "net.txt",), "too small"),
    ):
        done = manela_here("tune", *arguments)
        assert done.returncode == 2
        assert rule in done.stderr
        assert done.stderr.count("\n") == 1
