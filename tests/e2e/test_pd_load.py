"""2,000 requests at concurrency 128 over four prefill and four decode engines, while one in a hundred meets each fault
of test_pd_faults: each is answered in full, or refused clearly; none is lost, hangs, or leaves anything behind."""

import collections
import concurrent.futures
import dataclasses
import json
import random
import socket
import threading
import time
import unittest

import client
import harness
from harness import wait_until
from kv import listening
from pd import PdStack, whole

# Deadlines that tell a hang from an answer on a busy machine. More attempts than by default: one death takes thirty
# answers with it, and there are eighty.
CONFIG = {
    "simulator": {"kv_transfer": {"lease": "4s", "timeout": "3s", "latency": "2ms"}},
    "proxy": {"prefill_timeout": "3s", "first_token_timeout": "6s", "stream_idle_timeout": "3s", "timeout": "12s",
              "connect_timeout": "1s", "max_attempts": 6, "max_migrations": 8, "pair_wait": "4s"},
    "agent": {"probe_interval": "100ms", "parity_probe": False},
    "gateway": {"timeout": "20s", "backoff_first": "10ms", "backoff_most": "100ms"},
}
CONCURRENCY = 128
# Long enough answers for the run to take a quarter of a minute: engines that die so often are down for less than half
# of it, and deaths strike in the middle of answers.
TOKENS = 48
QUESTIONS = 50
# Of one request: the gateway's own, twice more for the retries of a client, and their pauses.
DEADLINE = 3 * 20.0 + 10.0
SHARE = 0.01
DOWN_MS = 300

# Name: part, what strikes requests by chance, or the engine at once.
BY_CHANCE = {
    "P 500": ("prefill", {"fault": "error500"}),
    "P hangs": ("prefill", {"fault": "hang"}),
    "P dies in mid-prefill": ("prefill", {"fault": "die", "when": "prefill", "down_ms": DOWN_MS}),
    "transfer fails": ("prefill", {"fault": "transfer"}),
    "D hangs": ("decode", {"fault": "hang"}),
    "D dies before first token": ("decode", {"fault": "die", "after_tokens": 0, "down_ms": DOWN_MS}),
    "D dies after first token": ("decode", {"fault": "die", "after_tokens": 3, "down_ms": DOWN_MS}),
    "recomputed": ("decode", {"fault": "recomputed", "after_tokens": 3}),
}
AT_ONCE = {
    "P refuses": ("prefill", {"fault": "refuse", "down_ms": DOWN_MS}),
    "D refuses": ("decode", {"fault": "refuse", "down_ms": DOWN_MS}),
    "D restarts with a new id": ("decode", {"fault": "restart", "down_ms": DOWN_MS}),
}
LEAVES = ("at once", "in prefill", "after the first token")


def question(number):
    return f"question {number}: " + "what of the sea and of the wind " * 6


@dataclasses.dataclass
class Outcome:
    # answered, refused, left, wrong, or lost.
    how: str
    told: str = ""
    took: float = 0.0
    tries: int = 1


class Refused(Exception):
    def __init__(self, status, told, pause=0.5):
        super().__init__(f"{status} {told}")
        self.status, self.told, self.pause = status, told, pause


def clear_error(body):
    """OpenAI's shape, with words in it; else it is no clear refusal."""
    told = json.loads(body)["error"]
    assert told["message"] and told["type"], told
    return told["message"]


def ask_whole(url, text):
    answer = client.chat(url, text, max_tokens=TOKENS, timeout=DEADLINE)
    if answer.status != 200:
        raise Refused(answer.status, clear_error(answer.body), float(answer.headers.get("Retry-After", 0.5)))
    told = answer.json()
    return told["choices"][0]["message"]["content"], told["usage"]


def ask_streamed(url, text):
    body = client.chat_body(text, max_tokens=TOKENS, stream_options={"include_usage": True})
    stream = client.EventStream(url + "/v1/chat/completions", body, timeout=DEADLINE)
    try:
        if stream.status != 200:
            raise Refused(stream.status, clear_error(stream.response.read()),
                          float(stream.headers.get("Retry-After", 0.5)))
        said, usage, finished = "", None, 0
        for data in stream:
            if data == "[DONE]":
                assert finished == 1, f"{finished} ends in one stream"
                return said, usage
            event = json.loads(data)
            if "error" in event:
                raise Refused(0, clear_error(data))
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                said += choice["delta"].get("content") or ""
                finished += choice["finish_reason"] is not None
        raise AssertionError(f"a stream without its end: {said!r}")
    finally:
        stream.close()


def leave(url, text, stage, patience):
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps(client.chat_body(text, max_tokens=400, ignore_eos=True, stream=True)).encode()
    with socket.create_connection((host, int(port)), DEADLINE) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body) + body)
        if stage == "in prefill":
            connection.settimeout(patience)
        if stage != "at once":
            try:
                connection.recv(100)
            except TimeoutError:
                assert stage == "in prefill", "no first token"


class Run:
    """So many requests by so many clients, each with one request at a time."""

    def __init__(self, stack, expected, requests, faults_at_once):
        self.stack, self.expected, self.requests = stack, expected, requests
        self.outcomes, self.lock = {}, threading.Lock()
        self.numbers = iter(range(requests))
        self.random = random.Random(7)
        # By the request before which it strikes.
        self.orders = collections.defaultdict(list)
        self.struck_at_once = collections.Counter()
        for name, (part, fault) in faults_at_once.items():
            for i in range(int(requests * SHARE)):
                self.orders[self.random.randrange(requests)].append((name, part, i, fault))
        leavers = self.random.sample(range(requests), int(requests * SHARE) * len(LEAVES))
        self.leavers = {number: LEAVES[i % len(LEAVES)] for i, number in enumerate(leavers)}

    def go(self):
        clients = [threading.Thread(target=self.work, daemon=True) for _ in range(CONCURRENCY)]
        for one in clients:
            one.start()
        for one in clients:
            one.join(200)
        return not any(one.is_alive() for one in clients)

    def work(self):
        while True:
            with self.lock:
                number = next(self.numbers, None)
            if number is None:
                return
            for order in self.orders[number]:
                self.strike(*order)
            started = time.monotonic()
            try:
                outcome = self.one(number)
            except Refused as refused:
                outcome = Outcome("refused", str(refused))
            except (AssertionError, *client.BROKEN) as problem:
                outcome = Outcome("lost", f"{type(problem).__name__}: {problem}")
            outcome.took = time.monotonic() - started
            with self.lock:
                self.outcomes[number] = outcome

    def strike(self, name, part, turn, fault):
        """One of the part, from `turn` on; another where that one is down already."""
        engines = self.stack.parts[part]
        for i in range(len(engines)):
            url = self.stack.member_url(engines[(turn + i) % len(engines)])
            try:
                if client.call("POST", url + "/sim/faults", fault, timeout=10).status == 200:
                    with self.lock:
                        self.struck_at_once[name] += 1
                    return
            except client.BROKEN:
                continue

    def one(self, number):
        text = question(number % QUESTIONS)
        if number in self.leavers:
            leave(self.stack.url, text, self.leavers[number], 0.01 + number % 7 * 0.01)
            return Outcome("left")
        ask = ask_streamed if number % 2 else ask_whole
        # As OpenAI's own clients do: twice more, after as long as the server says.
        for tries in (1, 2, 3):
            try:
                said, usage = ask(self.stack.url, text)
                break
            except Refused as refused:
                if tries == 3 or refused.status < 500:
                    raise
                time.sleep(refused.pause)
        if said != self.expected[number % QUESTIONS] or usage["completion_tokens"] > TOKENS:
            return Outcome("wrong", f"{said!r} {usage}", tries=tries)
        return Outcome("answered", tries=tries)


class PdLoad(unittest.TestCase):
    def run_load(self, protocol, requests, least_answered, chance=SHARE):
        with PdStack(protocol, prefill=4, decode=4, config=CONFIG, args=["--faults"]) as stack:
            stack.await_pairs()
            # Option look-ups once, not with every fault.
            urls = {name: stack.member_url(name) for name in stack.members}
            stack.member_url = urls.__getitem__
            undisturbed = lambda n: whole(stack.url, question(n), max_tokens=TOKENS)[0]
            with concurrent.futures.ThreadPoolExecutor(10) as clients:
                expected = list(clients.map(undisturbed, range(QUESTIONS)))
            stack.await_quiet()
            for seed, name in enumerate(stack.members):
                self.arm_by_chance(stack, name, 100 * seed, requests, chance)
            run = Run(stack, expected, requests, AT_ONCE)
            started = time.monotonic()
            ended = run.go()
            took = time.monotonic() - started
            self.assertTrue(ended, f"{requests - len(run.outcomes)} requests hang")
            struck = self.struck_by_chance(stack) + run.struck_at_once
            proxy = stack.proxy_url()
            migrated = client.metric(proxy, "infernex_proxy_migrations_total")
            counts = collections.Counter(one.how for one in run.outcomes.values())
            again = sum(one.tries > 1 for one in run.outcomes.values())
            print(f"{protocol}: {dict(counts)} of {requests} in {took:.1f} s; {again} after a retry; {migrated:.0f} "
                  f"migrations; longest {max(one.took for one in run.outcomes.values()):.1f} s; {dict(struck)}")
            for kind in ("refused", "wrong", "lost"):
                told = collections.Counter(one.told[:300] for one in run.outcomes.values() if one.how == kind)
                print("".join(f"  {kind} {n}: {what}\n" for what, n in told.most_common(5)), end="")
            self.assertEqual(len(run.outcomes), requests)
            self.assertEqual((counts["lost"], counts["wrong"]), (0, 0))
            self.assertLess(max(one.took for one in run.outcomes.values()), DEADLINE)
            self.assertGreaterEqual(counts["answered"], least_answered * (requests - counts["left"]))
            self.assertGreater(migrated, 0)
            for name in (*BY_CHANCE, *AT_ONCE):
                self.assertGreaterEqual(struck[name], requests * SHARE / 3, f"{name} has hardly struck: {struck}")
            self.nothing_is_left(stack)

    def arm_by_chance(self, stack, name, seed, requests, chance):
        """As often as is one in a hundred of the clients' requests: attempts that come of a fault breed no faults."""
        mine = [fault for part, fault in BY_CHANCE.values() if name in stack.parts[part]]
        for i, fault in enumerate(mine):
            rule = {**fault, "probability": chance, "seed": seed + i, "count": int(requests * SHARE / 4)}
            answer = client.call("POST", stack.member_url(name) + "/sim/faults", rule)
            self.assertEqual(answer.status, 200, answer)

    def struck_by_chance(self, stack):
        struck = collections.Counter()
        for name in stack.members:
            mine = [kind for kind, (part, _) in BY_CHANCE.items() if name in stack.parts[part]]
            page = lambda: client.get(stack.member_url(name) + "/sim/faults").json()["faults"]
            faults = wait_until(lambda: listening(page), 10, f"{name} again")
            self.assertEqual(len(faults), len(mine))
            struck.update({kind: told["struck"] for kind, told in zip(mine, faults)})
        return struck

    def nothing_is_left(self, stack):
        stack.disarm()
        stack.await_quiet()
        for base, name in ((stack.proxy_url(), "infernex_proxy_in_flight_requests"),
                           (stack.url, "infernex_gateway_in_flight_requests")):
            wait_until(lambda: client.metric(base, name) == 0, 20, f"{name} of zero")
        # And it serves as before.
        ready = lambda: client.metric(stack.admin_url("router"), "infernex_router_engines_ready")
        wait_until(lambda: ready() == len(stack.members), 20, "all engines ready again")
        self.assertTrue(whole(stack.url, question(0), max_tokens=TOKENS)[0])

    def test_nixl(self):
        self.run_load("nixl", 2000, 0.97)

    def test_mooncake(self):
        self.run_load("mooncake", 500, 0.95, chance=4 * SHARE)


if __name__ == "__main__":
    harness.main(280)
