"""A real HTTP server on 127.0.0.1 that speaks the chat-completions protocol, well or badly, for tests.

The prompt says how to answer it: `[good]`, `[text]`, `[truncated]`, `[500]`, ... (see TEXTS and `respond`). A
prompt without such a mark is answered by `server.answer`.
"""

import json
import re
import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GOOD = {"wrong_phi_after": 9, "wrong_reasoning": "it looks finished", "mistake_type": "inflated score"}
# What the model says, by mark; HTTP-level behaviours are in `do_POST`.
TEXTS = {
    "good": json.dumps(GOOD),
    "text": "Sure, here is one:\n```json\n" + json.dumps(GOOD) + "\n```\nHope it helps {really}.",
    "malformed": '{"wrong_phi_after": 9, "wrong_reasoning": ',
    "prose": "I would give it a nine.",
    "empty": "",
    "missing": json.dumps({"wrong_phi_after": 9, "mistake_type": "inflated score"}),
    "type": json.dumps({**GOOD, "wrong_phi_after": "nine"}),
    "nan": '{"wrong_phi_after": NaN, "wrong_reasoning": "x", "mistake_type": "inflated score"}',
    "infinite": '{"wrong_phi_after": 1e999, "wrong_reasoning": "x", "mistake_type": "inflated score"}',
    "unknown": json.dumps({**GOOD, "mistake_type": "laziness"}),
    "surrogate": '{"wrong_phi_after": 9, "wrong_reasoning": "\\ud800", "mistake_type": "inflated score"}',
}


def _said(content=TEXTS["good"], finish="stop", refusal=None, **changes):
    """A response's body with these changes."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "judge", "choices": [choice]}
    return json.dumps(body | changes).encode()


# What comes back with status 200 and is no answer, by mark.
BODIES = {
    "halfbody": b'{"choices": [{"mess',
    "nobody": b"",
    "null": b"null",
    "nochoices": b'{"id": "1", "object": "chat.completion"}',
    "emptychoices": _said(choices=[]),
    "textchoices": _said(choices="none"),
    "nomessage": _said(choices=[{"index": 0, "finish_reason": "stop"}]),
    "parts": _said([{"type": "text", "text": TEXTS["good"]}]),
    "usagetext": _said(usage={"prompt_tokens": "many", "completion_tokens": 7}),
    "usageword": _said(usage="little"),
    "latin": _said("X").replace(b"X", b"\xfc\xff"),
    "deep": b'{"choices":' + b"[" * 100_000,
    "error": b'{"error": {"message": "overloaded"}}',
}


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # as real servers have: 5 is less than what a client opens at once


class FakeServer:
    """`url` to point a client at; `requests` and `headers` are what it received, `tries` by prompt.

    `refuses`: keys of a request that it does not know; it says so with the status `refusal`, to all but the
    first such request only after `lag` seconds.
    """

    def __init__(
        self, *, refuses: tuple[str, ...] = (), refusal: int = 400, lag: float = 0.0, slow: float = 3.0
    ):
        self.refuses, self.refusal, self.lag, self.slow = refuses, refusal, lag, slow
        self.refused = 0
        self.requests: list[dict] = []
        self.headers: list = []
        self.connections: list[socket.socket] = []
        self.tries: dict[str, int] = {}
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.answer = lambda prompt: TEXTS["good"]
        self.http = Listener(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


@contextmanager
def running(**options):
    """A FakeServer that answers while the block runs."""
    server = FakeServer(**options)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        for connection in server.connections:  # keep-alive would go on being served
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        server.http.server_close()
        thread.join(timeout=10)


def _handler(server: FakeServer):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 20  # seconds a connection may sit idle

        def setup(self):
            super().setup()
            # Without it each small answer waits 40 ms.
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.connections.append(self.connection)

        def log_message(self, *args):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = body["messages"][0]["content"]
            with server.lock:
                server.requests.append(body)
                server.headers.append(self.headers)
                server.tries[prompt] = tries = server.tries.get(prompt, 0) + 1
                server.at_once += 1
                server.most_at_once = max(server.most_at_once, server.at_once)
            try:
                self.respond(body, prompt, tries)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client gave up waiting
            finally:
                with server.lock:
                    server.at_once -= 1

        def respond(self, body, prompt, tries):
            mark = (re.findall(r"\[([a-z0-9_]+)\]", prompt) or ["plain"])[0]
            for key in set(server.refuses) & set(body):
                with server.lock:
                    server.refused += 1
                    first = server.refused == 1
                time.sleep(0 if first else server.lag)
                return self.send(server.refusal, {"error": {"message": f"{key} is not supported"}})
            if mark == "500" or (mark == "once" and tries == 1):
                return self.send(500, {"error": {"message": "boom"}})
            if mark == "429" and tries == 1:
                return self.send(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.1"})
            if mark == "400":
                return self.send(400, {"error": {"message": "context too long"}})
            if mark == "401":
                return self.send(401, {"error": {"message": "bad key " + self.headers["Authorization"]}})
            if mark == "slow" or (mark == "slowonce" and tries == 1):
                time.sleep(server.slow)
            if mark == "html":
                return self.send_bytes(200, b"<html>gateway</html>", "text/html")
            if mark == "cut":
                return self.send_less_than_said([b'{"choices"'])
            if mark == "drip":  # no silence is long enough for a limit on silence
                return self.send_less_than_said([b" "] * 100)
            if mark in BODIES or (mark == "gatewayonce" and tries == 1):
                return self.send_bytes(200, BODIES.get(mark, b"<html>gateway</html>"), "application/json")
            usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
            if mark == "refusal":
                said = _said(None, refusal="I cannot help with that", usage=usage)
            elif mark == "truncated":
                said = _said(TEXTS["malformed"], "length", usage=usage)
            elif mark == "echo":
                key = self.headers["Authorization"]
                said = _said(json.dumps({**GOOD, "wrong_reasoning": f"your key is {key}"}), usage=usage)
            else:
                said = _said(TEXTS[mark] if mark in TEXTS else server.answer(prompt), usage=usage)
            return self.send_bytes(200, said, "application/json")

        def send_less_than_said(self, parts):
            """Parts of a body that is said to be longer, now and then."""
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "1000")
            self.end_headers()
            for part in parts:
                self.wfile.write(part)
                time.sleep(0.05)
            self.close_connection = True

        def send(self, status, value, headers=None):
            self.send_bytes(status, json.dumps(value).encode(), "application/json", headers)

        def send_bytes(self, status, data, kind, headers=None):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    return Handler
