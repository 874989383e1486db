import pytest

from manela.cli.wording import as_flags


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("holds a run; resume it (resume=True), or remove it", "holds a run; resume it (--resume), or remove it"),
        ("longer than 5 GB (size_limit= allows more)", "longer than 5 GB (--size-limit allows more)"),
        ("size_limit= must be above 0", "--size-limit must be above 0"),
        ("duplicates='first' counts each once", "--duplicates first counts each once"),
        ("an id is resume=Truly or mycolumns= or x=True", "an id is resume=Truly or mycolumns= or x=True"),
    ],
)
def test_parameters_are_shown_as_flags(message, shown):
    assert as_flags(message) == shown


def test_the_command_speaks_of_flags(manela_here, tmp_path):
    (tmp_path / "edges.txt").write_text("a b 1 2\n")
    done = manela_here("info", tmp_path / "edges.txt")
    assert done.returncode == 2
    assert "--unweighted ignores the others, --columns chooses" in done.stderr
