"""2,000 requests, 128 at a time, over 4P4D where one request in a hundred meets each of the faults: every one is answered in
full, with the text of an undisturbed run, or refused clearly; none is lost, and nothing is left of them."""

import asyncio
import collections
import json
import unittest
import urllib.parse

import client
import harness
from pd import PdStack, whole

CONFIG = {
    "simulator": {"speed": 10, "kv_transfer": {"lease": "3s", "timeout": "3s"}},
    "proxy": {"prefill_timeout": "3s", "first_token_timeout": "5s", "stream_idle_timeout": "3s", "timeout": "20s",
              "connect_timeout": "500ms"},
    "agent": {"probe_interval": "200ms"},
}
REQUESTS, AT_ONCE, PROMPTS, TOKENS, DEADLINE = 2_000, 128, 40, 12, 60.0
FAULTS = {
    "prefill": ({"fault": "error500"}, {"fault": "error503"}, {"fault": "reset"}, {"fault": "hang"},
                {"fault": "cut", "when": "prefill"}, {"fault": "die", "when": "prefill", "down_ms": 200}),
    "decode": ({"fault": "error500"}, {"fault": "reset"}, {"fault": "hang"}, {"fault": "cut", "after_tokens": 4},
               {"fault": "die", "after_tokens": 4, "down_ms": 200}, {"fault": "recomputed", "after_tokens": 5}),
}


def question(number):
    return f"question {number}: " + "what of the sea and of the wind " * (1 + number % 9)


async def ask(host, port, number):
    """(status, text, what is wrong) of one streamed chat."""
    body = json.dumps(client.chat_body(question(number), max_tokens=TOKENS, stream=True)).encode()
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        rest = await reader.read()
        while more := await reader.read():
            rest += more
    finally:
        writer.close()
    status = int(head.split()[1])
    if status != 200:
        return status, "", "" if b'"error"' in rest and b'"message"' in rest else f"no clear error: {rest[:200]!r}"
    said, done, problem = "", False, ""
    for line in rest.split(b"\n"):
        if not line.startswith(b"data: "):
            continue
        if line[6:].strip() == b"[DONE]":
            done = True
            continue
        event = json.loads(line[6:])
        if "error" in event:
            return 200, said, "" if event["error"].get("message") else f"no clear error: {event}"
        for choice in event["choices"]:
            said += choice["delta"].get("content") or ""
    return 200, said if done else "", "" if done else "a stream that neither ended nor failed"


async def ask_all(url):
    parts = urllib.parse.urlsplit(url)
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number):
        async with room:
            try:
                told = await asyncio.wait_for(ask(parts.hostname, parts.port, number % PROMPTS), DEADLINE)
            except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as problem:
                told = 0, "", f"lost: {problem!r}"
            return number % PROMPTS, told

    return await asyncio.gather(*(one(i) for i in range(REQUESTS)))


class UnderFaults(unittest.TestCase):
    def test_none_is_lost(self):
        for protocol in ("nixl", "mooncake"):
            with self.subTest(protocol=protocol), PdStack(protocol, 4, 4, config=CONFIG, args=["--faults"]) as stack:
                stack.await_pairs()
                expected = [whole(stack.url, question(i), max_tokens=TOKENS)[0] for i in range(PROMPTS)]
                stack.await_idle()
                for part, faults in FAULTS.items():
                    for seed, fault in enumerate(faults):
                        stack.arm(part, **fault, probability=0.01, seed=seed)
                told = asyncio.run(ask_all(stack.url))
                struck = {name: client.get(stack.member_url(name) + "/sim/faults").json() for name in stack.members}
                stack.disarm()
                proxy = stack.proxy_url()
                count = collections.Counter(status if text else f"{status} with an error" for _, (status, text, _) in told)
                migrated = client.metric(proxy, "infernex_proxy_migrations_total")
                print(f"{protocol}: {dict(count)}; migrations {migrated:g}, local prefills "
                      f"{client.metric(proxy, 'infernex_proxy_local_prefills_total'):g}")
                self.assertEqual([problem for _, (_, _, problem) in told if problem], [])
                wrong = [(i, text) for i, (_, text, _) in told if text and text != expected[i]]
                self.assertEqual(wrong, [])
                self.assertGreater(migrated, 0, "no stream was migrated: the faults did not strike")
                self.assertGreater(sum(fault["struck"] for each in struck.values() for fault in each["faults"]), 50)
                self.assertGreater(count[200], 0.95 * REQUESTS)
                stack.await_idle(30)


if __name__ == "__main__":
    harness.main(280)
