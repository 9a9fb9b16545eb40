"""The method and the grader inside TRL and inspect_ai; nothing of the pipeline imports it."""
