# Where the teacher lies.


def teacher_path(model):
    """The canonical folder of a replication's teacher, trained here or given."""
    return f"{RESULTS}/models/{model}/teacher"


def teacher_checkpoint(model):
    """The checkpoint file that jobs with the teacher wait for."""
    return [f"{teacher_path(model)}/model.safetensors"]
