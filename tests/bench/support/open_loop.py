"""An open-loop client for streamed completions: each request is sent at its time, whatever became of those before."""

import asyncio
import json
import time
import urllib.parse

DEADLINE = 60.0  # of one request


async def _one(host, port, at, body, start):
    await asyncio.sleep(max(0.0, start + at - time.perf_counter()))
    reader, writer = await asyncio.open_connection(host, port)
    try:
        data = json.dumps(body).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        sent = time.perf_counter()
        writer.write(f"{head}Connection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        header = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in header.split(b"\r\n", 1)[0]:
            raise RuntimeError(header.decode(errors="replace") + (await reader.read(500)).decode(errors="replace"))
        first = None
        while await reader.read(65536):
            first = first or time.perf_counter()
        return first - sent, time.perf_counter() - sent, sent - start - at
    finally:
        writer.close()


async def _run(urls, requests):
    hosts = [urllib.parse.urlsplit(url) for url in urls]
    start = time.perf_counter() + 0.5
    calls = []
    for number, (at, body) in enumerate(requests):
        to = hosts[number % len(hosts)]
        calls.append(asyncio.wait_for(_one(to.hostname, to.port, at, body, start), at + DEADLINE))
    return await asyncio.gather(*calls)


def run(url, requests):
    """`requests`: (seconds after the start, body) each; `url`: one, or a list that takes turns. [(TTFT, duration, how
    late it was sent)] in seconds."""
    return asyncio.run(_run([url] if isinstance(url, str) else url, requests))
