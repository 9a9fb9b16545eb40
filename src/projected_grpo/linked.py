"""Results trees with links in them: `results/grpo` on another disk, or a link elsewhere to one run."""

import os
from pathlib import Path

from projected_grpo import records


def check_read(*paths: str | os.PathLike) -> None:
    """Check files that are read outside of a job, also in the tree that they are named in where a link leads out of it.

    Raises UserError as `records.check` does.
    """
    records.check_read(*paths)
    for path in map(Path, paths):
        named = Path(os.path.abspath(path))
        tree = next((folder for folder in named.parents if (folder / records.FOLDER).is_dir()), None)
        if tree and named != path.resolve():
            records.check(named, tree, path)


def tree_of(run: Path) -> Path:
    """Return the results tree of a run's folder: the one that it is named in, or that its link leads to."""
    trees = [Path(os.path.abspath(run)).parents[1], run.resolve().parents[1]]
    return next((tree for tree in trees if (tree / "models").is_dir()), trees[1])
