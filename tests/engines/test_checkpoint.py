import numpy as np
import pytest

from manela.datasets.generators import stochastic_block_model
from manela.engines.checkpoint import Checkpoint
from manela.engines.training import train
from manela.errors import CheckpointError, OutputError
from manela.params import PARAMETERS, check_all


class Halt(Exception):
    """Ends a run in its middle."""


def settings(**parameters):
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    return check_all({**defaults, "dimensions": 12, "rounds": 40, "pairs": 400_000, **parameters})


@pytest.fixture(scope="module")
def graph():
    return stochastic_block_model(nodes=150, seed=2)[0]


def halt_at(number):
    """Saving often, a run that ends after some savings."""

    class Halting(Checkpoint):
        saved = 0

        def save(self, *arguments):
            super().save(*arguments)
            type(self).saved += 1
            if self.saved == number:
                raise Halt

    return Halting


def interrupt(graph, folder, after=7, **parameters):
    with pytest.raises(Halt):
        train(graph, settings(**parameters), checkpoint=halt_at(after)(folder, every=0))


@pytest.mark.parametrize("parameters", [{}, {"context": True}])
def test_a_resumed_run_has_the_same_bits(graph, tmp_path, parameters):
    whole = train(graph, settings(**parameters))
    interrupt(graph, tmp_path, **parameters)
    resumed = train(graph, settings(**parameters, n_jobs=1), checkpoint=Checkpoint(tmp_path, resume=True))
    assert resumed.state.round == 40
    assert resumed.state.pairs == whole.state.pairs
    for table, wanted in zip(resumed.state.tables, whole.state.tables, strict=True):
        np.testing.assert_array_equal(table, wanted)


def test_resuming_with_nothing_saved_begins_anew(graph, tmp_path):
    run = train(graph, settings(), checkpoint=Checkpoint(tmp_path / "new", resume=True))
    np.testing.assert_array_equal(run.state.vectors, train(graph, settings()).state.vectors)


def test_a_folder_that_holds_a_run_is_not_overwritten(graph, tmp_path):
    interrupt(graph, tmp_path)
    with pytest.raises(CheckpointError, match=r"checkpoint\.npz: holds a run; resume it"):
        train(graph, settings(), checkpoint=Checkpoint(tmp_path))


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"dimensions": 13}, "dimensions is 13 and was 12"),
        ({"ratios": (0.7, 0.3)}, r"ratios is \[0.7, 0.3\] and was \[0.5, 0.5\]"),
        ({"random_state": 5}, "random_state is 5 and was 0"),
        ({"learning_rate": 0.5}, "learning_rate is 0.5 and was 0.025"),
        ({"pairs": 400_001}, "pairs is 400001 and was 400000"),
        ({"context": True}, "context is True and was False"),
    ],
)
def test_another_parameter_is_refused_by_name(graph, tmp_path, other, named):
    interrupt(graph, tmp_path)
    with pytest.raises(CheckpointError, match=f"belongs to another run: {named}"):
        train(graph, settings(**other), checkpoint=Checkpoint(tmp_path, resume=True))


def test_another_graph_is_refused(graph, tmp_path):
    interrupt(graph, tmp_path)
    with pytest.raises(CheckpointError, match="belongs to another run: graph is"):
        train(stochastic_block_model(nodes=150, seed=3)[0], settings(), checkpoint=Checkpoint(tmp_path, resume=True))


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_a_damaged_checkpoint_is_refused_with_its_file(graph, tmp_path, damage):
    interrupt(graph, tmp_path)
    file = tmp_path / "checkpoint.npz"
    data = bytearray(file.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 255
    file.write_bytes({"cut": data[: len(data) // 2], "flip": data, "empty": b"", "other": b"x" * 99}[damage])
    with pytest.raises(CheckpointError, match=r"checkpoint\.npz: is damaged"):
        train(graph, settings(), checkpoint=Checkpoint(tmp_path, resume=True))


def test_a_folder_that_cannot_be_made_is_refused(graph, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made"):
        train(graph, settings(), checkpoint=Checkpoint(tmp_path / "file" / "run"))
