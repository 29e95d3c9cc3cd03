"""The look of pictures: nothing is cut off, nothing covers anything, and a file is whole or not at all."""

import pytest

from minidp import plotting
from tests.support.pictures import faults

LONG = ("A title that goes on for far longer than any panel is wide, as one that quotes a data set's notice does: "
        "drawn digits, not MNIST; accuracies are not comparable with the paper's")


@pytest.mark.parametrize("rows, columns", [(1, 1), (1, 3), (2, 3)])
def test_long_titles_and_notices_stay_inside(rows, columns, drawn, tmp_path):
    figure, axes = plotting.new_figure(rows, columns, title=LONG, notice=LONG)
    for axis in axes:
        axis.plot([1, 2], [0.5, 0.6], label="a", **plotting.line(0, 2))
        axis.set(title=LONG, xlabel="epoch", ylabel="accuracy")
    plotting.legend(figure, axes[0].get_legend_handles_labels()[0])
    plotting.save(figure, tmp_path / "p.png")
    assert drawn == [figure]


def test_text_that_is_cut_off_or_covered_is_noticed():
    figure, (axis,) = plotting.new_figure(title="title")
    axis.text(2, 0.5, "far to the right", transform=axis.transAxes)
    axis.text(0.5, 0.5, "one", transform=axis.transAxes)
    axis.text(0.5, 0.5, "other", transform=axis.transAxes)
    cut_off, overlapping = faults(figure)
    assert "far to the right" in cut_off and ("one", "other") in overlapping
