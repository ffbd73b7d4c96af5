"""A light closed-loop client for streamed chats: asyncio, one connection kept open a client."""

import asyncio
import json
import time
import urllib.parse

from harness import MODEL


class Failure(Exception):
    pass


async def _one(reader, writer, host, body):
    """Sends one request and reads its stream to the end. Seconds to the first event, and to the end."""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    started = time.perf_counter()
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    header = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in header.split(b"\r\n", 1)[0] or b"chunked" not in header.lower():
        raise Failure(header.decode(errors="replace"))
    first = None
    while True:
        size = int(await reader.readuntil(b"\r\n"), 16)
        await reader.readexactly(size + 2)
        if size == 0:
            if first is None:
                raise Failure("a stream without an event")
            return first - started, time.perf_counter() - started
        first = first or time.perf_counter()


async def _client(url, number, counts, label, samples):
    parts = urllib.parse.urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        while counts["left"] > 0:
            counts["left"] -= 1
            # A new prompt each time: nothing is answered from a cache of exact repeats.
            text = f"{label} client {number} request {counts['left']}: what is the shortest way from here to there?"
            body = {"model": MODEL, "max_tokens": 8, "stream": True, "messages": [{"role": "user", "content": text}]}
            samples.append(await _one(reader, writer, parts.netloc, json.dumps(body).encode()))
    finally:
        writer.close()


async def _run(urls, clients, requests, label):
    counts, samples = {"left": requests}, []
    started = time.perf_counter()
    await asyncio.gather(*(_client(urls[i % len(urls)], i, counts, label, samples) for i in range(clients)))
    return samples, time.perf_counter() - started


def run(urls, clients, requests, label):
    """[(TTFT, duration) in seconds], and the wall time of all. Clients are spread over the URLs."""
    return asyncio.run(asyncio.wait_for(_run(urls, clients, requests, label), 120))
