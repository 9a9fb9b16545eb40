"""Bins of the off-policy ratio student / teacher; free of torch, so that training and figures share them."""

import math

# Where the loss clips: a token beyond has no gradient if its advantage pushes further out.
CLIP_LOW, CLIP_HIGH = 0.8, 1.2
# Edges of the histogram of log(student / teacher) per token, in nats; the outer bins are open.
RATIO_EDGES: tuple[float, ...] = (-8.0, -4.0, -2.0, -1.0, -0.5, math.log(CLIP_LOW), -0.1)
RATIO_EDGES += (0.0, 0.1, math.log(CLIP_HIGH), 0.5, 1.0, 2.0, 4.0)
