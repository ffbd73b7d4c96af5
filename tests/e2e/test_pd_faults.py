"""A table of faults: protocol x fault x {stream, whole}. Each request ends in a full answer or a clear error within its
deadline, and nothing is left of it in any engine."""

import json
import os
import socket
import subprocess
import sys
import time
import unittest

import client
import harness
from harness import wait_until
from pd import PROTOCOLS, PdStack, streamed, whole

# Real deadlines, only shorter: a hang is told from an answer by them.
CONFIG = {
    "simulator": {"speed": 4, "kv_transfer": {"lease": "2s", "timeout": "1500ms", "latency": "5ms"}},
    "proxy": {"prefill_timeout": "1s", "first_token_timeout": "2s", "stream_idle_timeout": "1s", "timeout": "8s",
              "connect_timeout": "300ms", "breaker": {"failures": 1000}},
    "agent": {"probe_interval": "100ms"},
    "gateway": {"timeout": "10s", "backoff_first": "10ms", "backoff_most": "50ms"},
}
DEADLINE = 12.0
TOKENS = 16

# Name, part, what is armed at every engine of that part before the request.
FAULTS = {
    "P refuses": ("prefill", {"fault": "refuse", "down_ms": 400}),
    "P 500": ("prefill", {"fault": "error500", "count": 1}),
    "P hangs": ("prefill", {"fault": "hang", "count": 1}),
    "P dies in mid-prefill": ("prefill", {"fault": "die", "when": "prefill", "count": 1, "down_ms": 200}),
    "transfer fails": (None, {"fault": "transfer", "count": 1}),
    "D refuses": ("decode", {"fault": "refuse", "down_ms": 400}),
    "D hangs": ("decode", {"fault": "hang", "count": 1}),
    "D dies before first token": ("decode", {"fault": "die", "after_tokens": 0, "count": 1, "down_ms": 200}),
    "D dies after first token": ("decode", {"fault": "die", "after_tokens": 3, "count": 1, "down_ms": 200}),
    "D restarts with a new id": ("decode", {"fault": "restart", "down_ms": 100}),
    "P restarts with a new id": ("prefill", {"fault": "restart", "down_ms": 100}),
    "recomputed": ("decode", {"fault": "recomputed", "after_tokens": 3, "count": 1}),
}
# Of the engine, when they are armed; all others strike a request, which is looked up.
AT_ONCE = ("refuse", "restart")
LEAVES = ("at once", "in prefill", "after the first token")


def question(number):
    return f"question {number}: " + "what of the sea and of the wind " * 6


class FaultTable(unittest.TestCase):
    def run_table(self, protocol):
        rows = []
        with PdStack(protocol, config=CONFIG, args=["--faults"]) as stack:
            stack.await_pairs()
            for number, (name, (part, fault)) in enumerate(FAULTS.items()):
                for how in (streamed, whole):
                    rows.append([name, how.__name__, self.one(stack, number, part, fault, how)])
            for stage in LEAVES:
                for stream in (True, False):
                    rows.append([f"client leaves {stage}", "streamed" if stream else "whole",
                                 self.leave(stack, stage, stream)])
        # Every decode engine hangs once, and of an answer that is not streamed nobody sees the first token: that may end in
        # an error. Of all else nearly everything is answered; an engine may be slow to come back.
        refused = [row for row in rows if row[2].startswith("refused") and row[0] != "D hangs"]
        self.assertLessEqual(len(refused), 2, refused)
        width = max(len(row[0]) for row in rows)
        print("\n".join(f"{protocol:17}{row[0]:{width + 2}}{row[1]:10}{row[2]}" for row in rows))

    def one(self, stack, number, part, fault, how):
        text = question(number)
        answered = lambda: (seen := client.chat(stack.url, text, max_tokens=TOKENS)).status == 200 and seen
        undisturbed = wait_until(answered, 10, "an undisturbed answer")
        expected = undisturbed.json()["choices"][0]["message"]["content"]
        self.settle(stack)
        for one in [part] if part else ("prefill", "decode"):
            stack.arm(one, **fault)
        started = time.monotonic()
        with self.subTest(fault=fault, how=how.__name__):
            try:
                said, usage = how(stack.url, text, max_tokens=TOKENS)
                self.assertEqual(said, expected)
                self.assertLessEqual(usage["completion_tokens"], TOKENS)
                result = "answered"
            except AssertionError as refused:
                result = self.clear_error(refused)
            took = time.monotonic() - started
            self.assertLess(took, DEADLINE)
            if fault["fault"] not in AT_ONCE:
                self.assertGreater(self.struck(stack, part), 0, "the fault has struck nobody")
            self.settle(stack)
            return f"{result} in {took:.2f} s"
        return "FAILED"

    def struck(self, stack, part):
        times = 0
        for name in stack.parts[part] if part else stack.members:
            page = lambda name: client.get(stack.member_url(name) + "/sim/faults").json()["faults"]
            told = wait_until(lambda: harness_listens(page, name), 10, f"{name} again")
            times += sum(one["struck"] for one in told)
        return times

    def clear_error(self, refused):
        """An error is one in OpenAI's shape that names what happened; anything else was no answer at all."""
        told = str(refused)
        if "error" not in told or "message" not in told:
            raise refused
        return "refused: " + told[:100]

    def leave(self, stack, stage, stream):
        self.settle(stack)
        if stage == "in prefill":
            stack.arm("prefill", "slow", factor=200)
        body = json.dumps(client.chat_body(question(99) * 3, max_tokens=400, ignore_eos=True, stream=stream)).encode()
        host, port = stack.url.removeprefix("http://").split(":")
        with self.subTest(stage=stage, stream=stream), socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                               b"Content-Length: %d\r\n\r\n" % len(body) + body)
            if stage == "in prefill":
                wait_until(lambda: any(stack.state(p)["answering"] for p in stack.parts["prefill"]), 5, "a prefill")
            elif stage == "after the first token":
                busy = lambda: any(stack.state(d)["running"] for d in stack.parts["decode"])
                wait_until(lambda: connection.recv(100) if stream else busy(), 5, "a first token")
            connection.close()
            if stage == "in prefill":
                stack.arm("prefill", "slow", factor=1)
            self.settle(stack)
            return "nothing left"
        return "FAILED"

    def settle(self, stack):
        """All engines answer, nothing is armed, nothing is held."""
        stack.disarm()
        up = lambda name: client.get(stack.member_url(name) + "/health").status == 200
        for name in stack.members:
            wait_until(lambda: harness_listens(up, name), 10, f"{name} again")
        stack.await_idle()
        router = stack.admin_url("router")
        ready = lambda: client.metric(router, "infernex_router_engines_ready")
        wait_until(lambda: ready() == len(stack.members), 10, "all engines ready at the router")


def harness_listens(question_of, name):
    try:
        return question_of(name)
    except client.BROKEN:
        return False


class EveryProtocol(unittest.TestCase):
    """Several tables at the same time: most of it is waiting."""

    def test_by_proxy(self):
        self.run_tables("proxy", PROTOCOLS)

    def test_embedded(self):
        """The same code with another way in: two protocols tell, one of each order."""
        self.run_tables("embedded", ("ascend", "mooncake"))

    def run_tables(self, mode, protocols):
        tables = {}
        for protocol in protocols:
            env = {**os.environ, "PROTOCOL": protocol, "PD_MODE": mode}
            tables[protocol] = harness.start_process([sys.executable, __file__], env=env, stdout=subprocess.PIPE,
                                                     stderr=subprocess.STDOUT, text=True)
            self.addCleanup(harness.end_process, tables[protocol])
        for protocol, table in tables.items():
            with self.subTest(mode=mode, protocol=protocol):
                told, _ = table.communicate(timeout=270)
                print(f"{mode}:\n{told}")
                self.assertEqual(table.returncode, 0)


if only := os.environ.get("PROTOCOL"):
    del EveryProtocol
    FaultTable.test_table = lambda self: self.run_table(only)

if __name__ == "__main__":
    harness.main(280)
