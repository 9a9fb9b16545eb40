"""Which model on which server the environment names: known before any request, and never the key."""

import os
from urllib.parse import urlsplit

OPENAI = "https://api.openai.com/v1"  # where the official client goes when nothing else is said


def endpoint(model: str | None = None) -> tuple[str, str]:
    """(model, host with port) of a server critic; the model is `model` or OPENAI_MODEL, empty without both.

    The host is OPENAI_BASE_URL's, without user, password or path.
    """
    url = os.environ.get("OPENAI_BASE_URL", OPENAI)
    host = urlsplit(url).netloc.rpartition("@")[2]
    return model or os.environ.get("OPENAI_MODEL", ""), host
