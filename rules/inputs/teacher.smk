# Where the teacher and its pool come from.


def teacher_files(wildcards):
    """The adapter file that the pool waits for; none where the teacher is given."""
    trained = config["model"]["teacher"] == "small"
    return [f"{RESULTS}/models/{wildcards.model}/teacher/adapter_model.safetensors"] if trained else []


def teacher_path(model):
    """Folder or hub id of a replication's teacher."""
    trained = config["model"]["teacher"] == "small"
    return f"{RESULTS}/models/{model}/teacher" if trained else config["model"]["teacher"]
