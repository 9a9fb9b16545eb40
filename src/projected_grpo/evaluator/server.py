"""Any OpenAI-compatible server as a backend, through the official client.

Base URL, key and model come from the environment (`OPENAI_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_MODEL`); the
key is kept out of every message and answer. What fails on its way (429, 5xx, timeouts, lost connections) and
what comes back in another form than the protocol's (a gateway's page) is asked for again after growing pauses.
"""

import asyncio
import logging
import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import urlsplit

import openai
from pydantic import BaseModel, Field, NonNegativeInt, ValidationError

from projected_grpo.cells.self_taught import Server
from projected_grpo.errors import UserError
from projected_grpo.evaluator.answers import said
from projected_grpo.evaluator.backends import Reply, Usage, endpoint

log = logging.getLogger(__name__)
# The HTTP library's names for "nobody answers at this address"; which library that is depends on the client.
NOT_THERE = ("ConnectError", "ConnectTimeout", "UnsupportedProtocol")
FINAL = (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError)
CONNECT = 5.0  # seconds for a connection at most: a server that drops packets is no slow one
OLD_LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"  # newer models refuse the older name
PATIENT = Server()
MIN_KEY = 8  # characters; a shorter "key" (none, x) is no secret and occurs in honest answers
WINDOW = 4  # requests held ready per one under way: what a crash can lose, at most
PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds before the first retry; and at most, whatever a server asks for


class Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class Choice(BaseModel):
    message: Message
    finish_reason: str | None = None


class Tokens(BaseModel):
    prompt_tokens: NonNegativeInt | None = None
    completion_tokens: NonNegativeInt | None = None


class Completion(BaseModel, strict=True):
    """What is read of a response: anything else than this is no answer."""

    choices: list[Choice] = Field(min_length=1)
    usage: Tokens | None = None


class ServerBackend:
    """how: `concurrency` requests at a time; each is tried 1 + `retries` times and may take `timeout` seconds
    a try in all, of which at most 5 for the connection.

    After `patience` failed requests in a row the server counts as down. Raises UserError when there is no
    model, the server cannot be reached, refuses the key, does not know the model, or is down.
    """

    def __init__(self, model: str | None = None, how: Server = PATIENT, max_tokens: int = 512):
        self._model, host = endpoint(model)
        if not self._model:
            raise UserError("self_taught: no model; set OPENAI_MODEL (and OPENAI_BASE_URL, OPENAI_API_KEY)")
        try:
            urlsplit(os.environ.get("OPENAI_BASE_URL", "")).port  # noqa: B018
        except ValueError as error:
            raise UserError(f"self_taught: OPENAI_BASE_URL is no address ({error})") from None
        self._key = os.environ.get("OPENAI_API_KEY", "")
        if not (self._key.isascii() and self._key.isprintable()):
            raise UserError("self_taught: OPENAI_API_KEY holds a character that no request can carry")
        self._how, self._max_tokens, self._failures = how, max_tokens, 0
        self._structured, self._limit = True, OLD_LIMIT
        self._refused: frozenset[str] = frozenset()  # ways of sampling that this model does not take
        self.name = f"server:{self._model}"
        self.where = host or "the server"
        self.usage = Usage()

    def answer(self, prompts: Sequence[str], schema: dict, temperature: float, seed: int) -> Iterator[Reply]:
        """See `backends.Backend`: replies in order from a window of requests under way.

        After an error nothing new is asked, the replies that are there still come out, and the error last.
        """
        waiting: deque[asyncio.Task[Reply]] = deque()
        sampling = {"temperature": temperature, "seed": seed}
        left, stop, cut = iter(prompts), None, 0
        with asyncio.Runner() as runner:
            client, turn, loop = self._client(), asyncio.Semaphore(self._how.concurrency), runner.get_loop()
            try:
                while True:
                    for prompt in islice(left, WINDOW * self._how.concurrency - len(waiting)):
                        waiting.append(loop.create_task(self._ask(client, turn, prompt, schema, sampling)))
                    if not waiting:
                        break
                    try:
                        reply = loop.run_until_complete(waiting.popleft())
                    except (UserError, asyncio.CancelledError) as error:
                        reply, left, stop = Reply("", "stopped", again=True), iter(()), stop or error
                        for task in waiting:
                            task.cancel()
                    cut += reply.problem == "truncated"
                    yield reply
            finally:  # also where nobody wants the rest
                for task in waiting:
                    task.cancel()
                runner.run(client.close())
        if stop:
            raise stop
        if prompts and cut == len(prompts):
            log.warning(
                "%s at %s: all %d answers were cut off after max_tokens = %d; a model that thinks first needs more "
                "of them or its thinking off, and one whose files name no end token never stops",
                *(self.name, self.where, cut, self._max_tokens),
            )

    def _client(self) -> openai.AsyncOpenAI:
        # It reads OPENAI_BASE_URL itself; a local server needs no key, but the client wants one.
        patient = openai.Timeout(self._how.timeout, connect=min(self._how.timeout, CONNECT))
        return openai.AsyncOpenAI(api_key=self._key or "none", max_retries=0, timeout=patient)

    async def _ask(
        self, client: openai.AsyncOpenAI, turn: asyncio.Semaphore, prompt: str, schema: dict, sampling: dict
    ) -> Reply:
        async with turn:
            # What this request sends decides: meanwhile another one may find out what the server takes.
            form, limit, failures = schema if self._structured else None, self._limit, 0
            sampling = {key: value for key, value in sampling.items() if key not in self._refused}
            while True:
                try:
                    completion = await self._request(client, prompt, form, limit, sampling)
                    break
                except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                    if limit == OLD_LIMIT and OLD_LIMIT in str(error):
                        limit = NEW_LIMIT
                    elif named := [key for key in sampling if re.search(rf"\b{key}\b", str(error))]:
                        sampling = {key: value for key, value in sampling.items() if key not in named}
                    elif form is not None:
                        form = None
                    else:
                        return self._failed("bad_request", error)
                except FINAL as error:
                    text = self._clean(error)
                    raise UserError(f"self_taught: {self.where} refuses {self.name}: {text}") from None
                except (openai.APIError, ValidationError, TimeoutError) as error:
                    if failures >= self._how.retries:
                        return self._failed(_problem(error), error)
                    await asyncio.sleep(_pause(error, failures))
                    failures += 1
        self._failures = 0
        self._limit = limit if limit == NEW_LIMIT else self._limit
        if refused := {"temperature", "seed"} - sampling.keys() - self._refused:
            ways = " and no ".join(sorted(refused))
            log.warning("%s at %s takes no %s: its own from here on", self.name, self.where, ways)
            self._refused |= refused
        if form is None and self._structured:  # the form was the trouble, not this prompt
            log.info("%s at %s has no JSON-schema output: free text from here on", self.name, self.where)
            self._structured = False
        return self._reply(completion)

    async def _request(
        self, client: openai.AsyncOpenAI, prompt: str, form: dict | None, limit: str, sampling: dict
    ) -> Completion:
        json_schema = {"name": "answer", "schema": form, "strict": True}
        # In all: a server that sends a byte now and then would hold the client, whose own limit is on silence.
        async with asyncio.timeout(self._how.timeout):
            response = await client.chat.completions.with_raw_response.create(  # type: ignore[call-overload]
                model=self._model,
                messages=[{"role": "user", "content": prompt}],
                response_format={"type": "json_schema", "json_schema": json_schema} if form else openai.omit,
                **{limit: self._max_tokens},
                **sampling,
            )
        return Completion.model_validate_json(response.content)

    def _reply(self, completion: Completion) -> Reply:
        """Counts the call, too."""
        tokens, choice = completion.usage or Tokens(), completion.choices[0]
        self.usage.add(tokens.prompt_tokens or 0, tokens.completion_tokens or 0)
        if choice.message.refusal or choice.finish_reason == "content_filter":
            return Reply("", "refusal")
        text = self._hide(choice.message.content or "")
        return Reply(text, "truncated" if choice.finish_reason == "length" else "")

    def _failed(self, problem: str, error: Exception) -> Reply:
        """Count a request that failed after all its tries; too many in a row mean that the server is down."""
        message = self._clean(error)
        if type(error.__cause__).__name__ in NOT_THERE:
            raise UserError(
                f"self_taught: {self.where} cannot be reached ({self._clean(error.__cause__)}) after "
                f"{self._how.retries + 1} tries; finished pairs are kept, run again to go on"
            ) from None
        log.warning("%s at %s: %s (%s)", self.name, self.where, problem, message)
        self._failures += 1
        if self._failures >= self._how.patience:
            raise UserError(
                f"self_taught: {self._failures} requests in a row failed at {self.where}, the last with "
                f"{problem} ({message}); finished pairs are kept, run again to go on"
            ) from None
        return Reply("", problem, again=problem != "bad_request")

    def _clean(self, error: BaseException | None) -> str:
        """An error's text on one line, without the key."""
        text = said(error) if isinstance(error, ValidationError) else str(error) or type(error).__name__
        return " ".join(self._hide(text).split())[:200]

    def _hide(self, text: str) -> str:
        return text.replace(self._key, "[key]") if len(self._key) >= MIN_KEY else text


def _problem(error: Exception) -> str:
    """A failure in one word. A timeout is a kind of connection error to the client."""
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return "timeout"
    kinds = {
        openai.APIConnectionError: "connection",
        openai.RateLimitError: "rate_limit",
        openai.InternalServerError: "server_error",
    }
    return next((name for kind, name in kinds.items() if isinstance(error, kind)), "bad_response")


def _pause(error: Exception, failures: int) -> float:
    """Seconds until the next try: what the server asks for, else twice as long each time."""
    wanted = error.response.headers.get("retry-after", "") if isinstance(error, openai.APIStatusError) else ""
    try:
        return min(max(0.0, float(wanted)), LONGEST_PAUSE)
    except ValueError:
        return min(PAUSE * 2**failures, LONGEST_PAUSE)
