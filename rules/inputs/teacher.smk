# Where the teacher and its pool come from.


def teacher_adapter(model):
    """The adapter file that jobs with the teacher wait for; a given teacher is an input by its content alone."""
    if CONFIG.model.teacher != "small":
        return given_checkpoint(CONFIG.model.teacher, "adapter_config.json")
    return [f"{RESULTS}/models/{model}/teacher/adapter_model.safetensors"]


def teacher_files(wildcards):
    """The teacher of a replication."""
    return teacher_adapter(wildcards.model)


def teacher_path(model):
    """Folder or hub id of a replication's teacher."""
    trained = CONFIG.model.teacher == "small"
    return f"{RESULTS}/models/{model}/teacher" if trained else CONFIG.model.teacher
