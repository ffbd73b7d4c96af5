"""HTTP and NATS as the tests speak them: the standard library only, one connection a call, a deadline each."""

import http.client
import json
import re
import socket
import urllib.parse

from harness import MODEL


# What a call raises when there is no proper answer.
BROKEN = (OSError, http.client.HTTPException, ValueError, KeyError)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json()["error"]

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


def _connect(url, timeout):
    parts = urllib.parse.urlsplit(url)
    path = (parts.path or "/") + ("?" + parts.query if parts.query else "")
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout), path


def call(method, url, body=None, headers=None, timeout=60.0):
    """`body`: bytes as they are, anything else as JSON."""
    connection, path = _connect(url, timeout)
    try:
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        fields = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, body, {**fields, **(headers or {})})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def get(url, timeout=30.0):
    return call("GET", url, timeout=timeout)


def chat_body(text="Hello", max_tokens=8, system=None, **more):
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": text})
    return {"model": MODEL, "messages": messages, "max_tokens": max_tokens, **more}


def chat(base, text="Hello", headers=None, timeout=60.0, **more):
    return call("POST", base + "/v1/chat/completions", chat_body(text, **more), headers, timeout)


class EventStream:
    """A streamed answer: iterate over the data of its server-sent events; close() in mid-stream at will."""

    def __init__(self, url, body, timeout=60.0):
        self.connection, path = _connect(url, timeout)
        self.connection.request("POST", path, json.dumps({**body, "stream": True}).encode(),
                                {"Content-Type": "application/json"})
        self.response = self.connection.getresponse()
        self.status, self.headers = self.response.status, self.response.headers

    def __iter__(self):
        for line in self.response:
            if line.startswith(b"data: "):
                yield line[6:].strip().decode()

    def close(self):
        self.response.close()
        self.connection.close()


def metric(base, name, **labels):
    """Sum of a metric's samples that carry these labels; None if there is none."""
    total = None
    for line in get(base + "/metrics").body.decode().splitlines():
        found = re.match(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)", line)
        if not found or found.group(1) != name:
            continue
        have = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found.group(2) or ""))
        if all(have.get(key) == value for key, value in labels.items()):
            total = (total or 0.0) + float(found.group(3))
    return total


def metric_names(base):
    return set(re.findall(r"^([A-Za-z_:][\w:]*)[ {]", get(base + "/metrics").body.decode(), re.M))


class RawNats:
    """A NATS client that only publishes: for bytes that no client library of ours would send."""

    def __init__(self, url, timeout=10.0):
        parts = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout)
        self.reader = self.socket.makefile("rb")
        assert self.reader.readline().startswith(b"INFO ")
        self.socket.sendall(b'CONNECT {"verbose":false,"pedantic":false,"name":"raw"}\r\n')
        self.flush()

    def publish(self, subject, data, reply=""):
        head = " ".join(part for part in ("PUB", subject, reply, str(len(data))) if part)
        self.socket.sendall(head.encode() + b"\r\n" + data + b"\r\n")

    def flush(self):
        """Returns when the server has taken everything sent before."""
        self.socket.sendall(b"PING\r\n")
        while (line := self.reader.readline()) != b"PONG\r\n":
            if line == b"PING\r\n":
                self.socket.sendall(b"PONG\r\n")
            elif not line or line.startswith(b"-ERR"):
                raise AssertionError(f"nats-server answered {line!r}")

    def close(self):
        self.reader.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
