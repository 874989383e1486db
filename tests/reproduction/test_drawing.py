from pathlib import Path

import pytest

from manela.errors import ParameterError
from manela.reproduction.drawing import COLOURS, check_picture, colour, import_pyplot, save


def test_the_ending_names_the_format():
    assert check_picture(Path("a.b/c.PNG")) == "png"
    assert check_picture(Path("c.svg")) == "svg"
    with pytest.raises(ParameterError, match="must end in .png or .svg"):
        check_picture(Path("c.pdf"))


def test_colours_repeat():
    assert colour(len(COLOURS) + 1) == colour(1) != colour(0)


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    for name in ("a.svg", "b.svg"):
        figure, axes = import_pyplot().subplots()
        axes.plot([1, 2], [3, 4])
        save(figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
