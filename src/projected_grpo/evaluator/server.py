"""Any OpenAI-compatible server as a backend, through the official client.

Base URL, key and model come from the environment (`OPENAI_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_MODEL`); the
key is kept out of every message and answer. The client repeats 429, 5xx, timeouts and lost connections with
growing pauses.
"""

import json
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import openai

from projected_grpo.errors import UserError
from projected_grpo.evaluator.backends import NoStructuredOutput, Reply, Usage
from projected_grpo.evaluator.endpoint import endpoint

log = logging.getLogger(__name__)
# The HTTP library's names for "nobody answers at this address"; which library that is depends on the client.
NOT_THERE = ("ConnectError", "ConnectTimeout", "UnsupportedProtocol")
CONNECT = 5.0  # seconds for a connection at most: a server that drops packets is no slow one
REFUSED = (openai.BadRequestError, openai.UnprocessableEntityError)  # servers refuse a form with 400 or 422
OLD_LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"  # newer models refuse the older name
MIN_KEY = 8  # characters; a shorter "key" (none, x) is no secret and occurs in honest answers
WINDOW = 4  # requests held ready per worker: what a crash can lose, at most


class ServerBackend:
    """`concurrency` requests at a time; each is tried 1 + `retries` times and may take `timeout` seconds a
    try, of which at most 5 for the connection.

    After `patience` failed requests in a row the server counts as down. Raises UserError when there is no
    model, the server cannot be reached, refuses the key, does not know the model, or is down.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        concurrency: int = 8,
        timeout: float = 60.0,
        retries: int = 3,
        max_tokens: int = 512,
        patience: int = 20,
        price_in: float | None = None,
        price_out: float | None = None,
    ):
        model, host = endpoint(model)
        if not model:
            raise UserError("self_taught: no model; set OPENAI_MODEL (and OPENAI_BASE_URL, OPENAI_API_KEY)")
        self._key = os.environ.get("OPENAI_API_KEY", "")
        # The client reads OPENAI_BASE_URL itself; a local server needs no key, but the client wants one.
        patient = openai.Timeout(timeout, connect=min(timeout, CONNECT))
        self._client = openai.OpenAI(api_key=self._key or "none", max_retries=retries, timeout=patient)
        self._model, self._retries, self._max_tokens = model, retries, max_tokens
        self._concurrency, self._patience = concurrency, patience
        self._failures = 0
        self._structured, self._limit = True, OLD_LIMIT
        self._lock = threading.Lock()
        self.name = f"server:{model}"
        self.where = host or "the server"
        self.usage = Usage(price_in, price_out)

    def generate(self, prompts: Sequence[str], temperature: float, seed: int) -> Iterator[Reply]:
        """Free text; see `backends.Backend`."""
        return self._in_order(lambda prompt: self._ask(prompt, None, temperature, seed), prompts)

    def generate_structured(
        self, prompts: Sequence[str], schema: dict, temperature: float, seed: int
    ) -> Iterator[Reply]:
        """JSON by schema where the server has it; a server that refuses the request's form is asked for free
        text.
        """
        if not self._structured:
            raise NoStructuredOutput(self.name)
        return self._in_order(lambda prompt: self._ask(prompt, schema, temperature, seed), prompts)

    def _in_order(self, ask: Callable[[str], Reply], prompts: Sequence[str]) -> Iterator[Reply]:
        """Replies in order from a window of requests under way. After an error nothing new is asked, the
        replies that are there still come out, and the error last.
        """
        waiting: deque[Future] = deque()
        stop: list[UserError] = []
        pool = ThreadPoolExecutor(self._concurrency)

        def next_reply() -> Reply:
            try:
                return waiting.popleft().result()
            except (UserError, CancelledError) as error:
                if isinstance(error, UserError) and not stop:
                    stop.append(error)
                    for future in waiting:
                        future.cancel()
                return Reply("", "stopped", again=True)

        try:
            for prompt in prompts:
                if stop:
                    break
                waiting.append(pool.submit(ask, prompt))
                if len(waiting) >= WINDOW * self._concurrency:
                    yield next_reply()
            while waiting:
                yield next_reply()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        if stop:
            raise stop[0]

    def _ask(
        self, prompt: str, schema: dict | None, temperature: float, seed: int, limit: str | None = None
    ) -> Reply:
        # What this request sends decides: meanwhile another thread may find out what the server takes.
        sent, limit = schema if self._structured else None, limit or self._limit
        try:
            reply = self._request(prompt, sent, limit, temperature, seed)
        except REFUSED as error:
            if limit == OLD_LIMIT and OLD_LIMIT in str(error):
                reply = self._ask(prompt, schema, temperature, seed, NEW_LIMIT)
                if not reply.problem:
                    self._limit = NEW_LIMIT
                return reply
            if sent is None:
                return self._failed("bad_request", error)
            reply = self._ask(prompt, None, temperature, seed, limit)
            if not reply.problem and self._structured:  # the form was the trouble, not this prompt
                log.info("%s at %s has no JSON-schema output: free text from here on", self.name, self.where)
                self._structured = False
            return reply
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            raise UserError(f"self_taught: {self.where} refuses {self.name}: {self._clean(error)}") from None
        except openai.APIConnectionError as error:  # timeouts are a kind of it
            if type(error.__cause__).__name__ in NOT_THERE:
                raise UserError(
                    f"self_taught: {self.where} cannot be reached ({self._clean(error.__cause__)}) after "
                    f"{self._retries + 1} tries; finished pairs are kept, run again to go on"
                ) from None
            timeout = isinstance(error, openai.APITimeoutError)
            return self._failed("timeout" if timeout else "connection", error)
        except openai.RateLimitError as error:
            return self._failed("rate_limit", error)
        except openai.InternalServerError as error:
            return self._failed("server_error", error)
        except (
            openai.APIError,
            json.JSONDecodeError,
        ) as error:  # an answer that is not in the protocol's form
            return self._failed("bad_response", error)
        with self._lock:
            self._failures = 0
        return reply

    def _request(self, prompt: str, schema: dict | None, limit: str, temperature: float, seed: int) -> Reply:
        form = openai.omit
        if schema is not None:
            form = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": True},
            }
        response = self._client.chat.completions.create(
            model=self._model,
            messages=[{"role": "user", "content": prompt}],
            temperature=temperature,
            seed=seed,
            response_format=form,
            **{limit: self._max_tokens},
        )
        choices = getattr(response, "choices", None)
        message = getattr(choices[0], "message", None) if choices else None
        if message is None:
            return Reply("", "bad_response")
        self.usage.add(*_tokens(response))
        if message.refusal or choices[0].finish_reason == "content_filter":
            return Reply("", "refusal")
        text = message.content if isinstance(message.content, str) else ""
        return Reply(self._hide(text), "truncated" if choices[0].finish_reason == "length" else "")

    def _failed(self, problem: str, error: Exception) -> Reply:
        """Count a request that failed after all its tries; too many in a row mean that the server is down."""
        message = self._clean(error)
        log.warning("%s at %s: %s (%s)", self.name, self.where, problem, message)
        with self._lock:
            self._failures += 1
            if self._failures >= self._patience:
                raise UserError(
                    f"self_taught: {self._failures} requests in a row failed at {self.where}, the last with "
                    f"{problem} ({message}); finished pairs are kept, run again to go on"
                )
        return Reply("", problem, again=problem != "bad_request")

    def _clean(self, error: object) -> str:
        """An error's text on one line, without the key."""
        return " ".join(self._hide(str(error)).split())[:200]

    def _hide(self, text: str) -> str:
        return text.replace(self._key, "[key]") if len(self._key) >= MIN_KEY else text


def _tokens(response) -> tuple[int, int]:
    """Tokens in and out as the server counts them; 0 where it says nothing."""
    usage = getattr(response, "usage", None)
    return getattr(usage, "prompt_tokens", 0) or 0, getattr(usage, "completion_tokens", 0) or 0
