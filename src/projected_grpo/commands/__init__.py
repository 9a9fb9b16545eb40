"""The command line, one file a command; each imports its libraries when it runs, so that `--help` is quick."""
