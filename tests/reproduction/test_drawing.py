from pathlib import Path

import pytest
from matplotlib import pyplot

from manela.errors import ParameterError
from manela.reproduction import drawing as plots
from manela.reproduction.drawing import (
    COLOURS,
    check_picture,
    colour,
    import_pyplot,
    plot_precision,
    plot_scores,
    save,
)


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


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved, as they are then."""
    figures = []

    def save(figure, path):
        figure.canvas.draw()
        figures.append(figure)

    monkeypatch.setattr(plots, "save", save)
    yield figures
    pyplot.close("all")


def test_legends_cover_no_line(drawn, tmp_path):
    rows = [
        {"train_ratio": ratio, **{key: [0.2, 0.4] for key in ("micro", "macro", "open_micro", "open_macro")}}
        for ratio in (0.1, 0.5, 0.9)
    ]
    plot_scores({"a": rows, "b": rows, "c": rows}, tmp_path / "p.png")
    plot_precision({name: [{1: 0.5, 10: 0.4}] for name in "abcdefgh"}, tmp_path / "p.png")
    assert len(drawn) == 2
    for figure in drawn:
        [legend] = figure.legends
        for panel in figure.axes:
            assert panel.get_legend() is None
            assert not legend.get_window_extent().overlaps(panel.get_tightbbox())
