"""Requests that go on in the background while a test breaks something."""

import dataclasses
import json
import threading
import time

import client


@dataclasses.dataclass
class Record:
    started: float
    ended: float
    # HTTP status; 0: the connection was refused or broke.
    status: int
    endpoint: str
    streamed: bool
    # What went wrong, empty if nothing did.
    problem: str

    @property
    def ok(self):
        return not self.problem


class Load:
    """`clients` threads, each with one request at a time, every third of them streaming; a context manager."""

    def __init__(self, base, clients=6, max_tokens=16, pause=0.01):
        self.base, self.max_tokens, self.pause = base, max_tokens, pause
        self.records, self._stop = [], threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(i,), daemon=True) for i in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._stop.set()
        for thread in self.threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self.threads), "a request of the load never ended"

    def _run(self, number):
        count = 0
        while not self._stop.wait(self.pause):
            count += 1
            text = f"client {number % 3} asks the question number {count} of many"
            self.records.append(self._one(text, streamed=number % 3 == 2))

    def _one(self, text, streamed):
        started, status, endpoint, problem = time.monotonic(), 0, "", ""
        try:
            if streamed:
                status, endpoint, problem = self._stream(text)
            else:
                answer = client.chat(self.base, text, max_tokens=self.max_tokens)
                status, endpoint = answer.status, answer.headers.get("x-infernex-endpoint", "")
                if status != 200:
                    problem = answer.body.decode(errors="replace")
                elif not answer.json()["choices"]:
                    problem = "an answer without choices"
        except client.BROKEN as failure:
            problem = f"{type(failure).__name__}: {failure}"
        return Record(started, time.monotonic(), status, endpoint, streamed, problem)

    def _stream(self, text):
        body = client.chat_body(text, max_tokens=self.max_tokens)
        stream = client.EventStream(self.base + "/v1/chat/completions", body)
        endpoint, problem = stream.headers.get("x-infernex-endpoint", ""), "the stream ended without [DONE]"
        try:
            if stream.status != 200:
                return stream.status, endpoint, stream.response.read().decode(errors="replace")
            for data in stream:
                if data == "[DONE]":
                    problem = ""
                elif "error" in json.loads(data):
                    problem = data
        except client.BROKEN:
            # After an error event the gateway breaks the connection, so that nobody takes the answer for whole.
            if not problem.startswith("{"):
                raise
        finally:
            stream.close()
        return stream.status, endpoint, problem

    def done_since(self, when):
        """Requests that were sent after `when` and have ended."""
        return [record for record in list(self.records) if record.started > when]
