"""Looking at figures: what is cut off, and what lies on top of what."""

from itertools import combinations

from matplotlib.text import Text


def texts(figure):
    """(text, bounding box in pixels) of everything written in a figure; ticks outside an axis are
    not.
    """
    figure.draw_without_rendering()
    unseen = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        if not _within(tick.get_loc(), axis)
        for label in (tick.label1, tick.label2)
    }
    found = [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text not in unseen
    ]
    boxes = [(text.get_text(), text.get_window_extent()) for text in found]
    return [(text, box) for text, box in boxes if box.width and box.height]


def _within(place, axis):
    low, high = sorted(axis.get_view_interval())
    return low <= place <= high


def faults(figure):
    """(texts that do not lie within the figure, pairs of texts of which one covers part of the
    other).
    """
    found, width, height = texts(figure), figure.bbox.width, figure.bbox.height
    # a pixel's touch is none
    return (
        [
            text
            for text, box in found
            if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height
        ],
        [
            (one, other)
            for (one, a), (other, b) in combinations(found, 2)
            if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1
        ],
    )
