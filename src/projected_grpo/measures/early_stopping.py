"""Which runs are judged at earlier steps than their last, and where that lies. Apart, as planning reads it, too."""

from projected_grpo.cells.cell import Cell, Question


def file(cell: str) -> str:
    """Return the file of a run's earlier rollouts, below the results folder."""
    return f"stopped/{cell}.parquet"


def cells(question: Question) -> list[Cell]:
    """Return the runs of a plane whose early ends are points of its frontier: plain training's."""
    names = {row.baseline for row in question.rows if row.baseline}
    rows = [row for row in question.rows if {row.name} == names and question.kind == "plane"]
    return [cell for row in rows for cell in row.cells if row.setting.adapter == "antipasto"]
