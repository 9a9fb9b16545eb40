"""What of a drawing lies outside it, or over a neighbour's title or label."""

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def spilled(drawing: Figure) -> list[str]:
    """Return the titles, labels and legends that lie beyond the edge of a drawing, and texts that touch another."""
    canvas = FigureCanvasAgg(drawing)
    canvas.draw()
    renderer, edge = canvas.get_renderer(), drawing.bbox.padded(2)
    shown = [axes for axes in drawing.axes if axes.get_visible()]
    texts = [part for axes in shown for part in _texts(axes) if part.get_text()]
    boxes = [(part.get_text(), part.get_window_extent(renderer)) for part in texts]
    legends = [*drawing.legends, *(axes.get_legend() for axes in shown if axes.get_legend())]
    kept = [*boxes, *(("a legend", legend.get_window_extent(renderer)) for legend in legends)]
    out = _touching(boxes)
    out += [name for name, box in kept if box.x0 < edge.x0 or box.x1 > edge.x1 or box.y0 < edge.y0]
    for axes in shown:
        low, high = sorted(axes.get_xlim())
        marks = [mark for mark in axes.get_xticklabels() if low <= mark.get_position()[0] <= high]
        boxes = [
            (mark.get_text(), mark.get_window_extent(renderer).padded(1)) for mark in marks if mark.get_text()
        ]
        out += _touching(boxes)
    return out


def _touching(boxes):
    return [a for i, (a, box) in enumerate(boxes) for _, other in boxes[i + 1 :] if box.overlaps(other)]


def _texts(axes):
    return (axes._left_title, axes.title, axes.xaxis.label, axes.yaxis.label)
