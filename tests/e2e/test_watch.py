"""Everything on the control plane can be watched: with the nats CLI, and with `infernex sub`."""

import json
import os
import socket
import subprocess
import threading
import unittest

import client
import harness
from harness import BINARY, MODEL, Stack, end_process, start_process, tool, wait_until
from watch import Watch

KINDS = {"EngineAnnounce", "EngineLoad", "KvDelta", "RouteQuery", "RouteDecision", "RequestLife"}
CONFIG = {"simulator": {"speed": 50}}


class Watching(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = cls.enterClassContext(Stack(engines=2, config=CONFIG))

    def chat_until(self, condition, what):
        """New prompts, so that there are new blocks to be announced, until the condition holds."""
        self.count = getattr(self, "count", 0)

        def ask():
            self.count += 1
            self.assertEqual(client.chat(self.stack.url, f"{what} question {self.count} " + "word " * 60).status, 200)
            return condition()

        wait_until(ask, 30, what, every=0.1)

    def test_infernex_sub_shows_every_kind(self):
        with Watch(self.stack.nats_url) as watch:
            self.chat_until(lambda: KINDS <= {seen.kind for seen in watch.seen}, "every kind in infernex sub")
        first = {seen.kind: seen for seen in reversed(watch.seen)}
        announce = first["EngineAnnounce"]
        self.assertRegex(announce.subject, r"^ix\.v1\.engine\.sim_2Fllama\.engine-\d\.announce$")
        self.assertEqual((announce.body["model"], announce.body["state"]), (MODEL, "Ready"))
        self.assertEqual(announce.body["url"], self.stack.engine_url(int(announce.body["instance"][-1])))
        self.assertGreater(announce.body["origin"]["epoch"], 1_600_000_000_000_000_000)
        self.assertGreaterEqual(first["EngineLoad"].body["kv_usage"], 0)
        self.assertTrue(any(seen.body.get("added") for seen in watch.seen if seen.kind == "KvDelta"))
        self.assertTrue(first["RouteQuery"].body["items"][0]["keys"])
        choice = first["RouteDecision"].body["choices"][0]
        self.assertIn(choice["instance"], self.stack.engine_names())
        self.assertTrue(choice["reason"])

    def test_infernex_sub_ends_after_count(self):
        done = subprocess.run([BINARY, "sub", "ix.v1.engine.>", "--nats", self.stack.nats_url, "--count", "3"],
                              capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len([json.loads(line) for line in done.stdout.splitlines()]), 3)

    def test_infernex_sub_without_a_server_is_a_clear_error(self):
        with socket.socket() as bound:  # bound and not listening: refused for certain, and nobody else's meanwhile
            bound.bind(("127.0.0.1", 0))
            done = subprocess.run([BINARY, "sub", "--nats", f"nats://127.0.0.1:{bound.getsockname()[1]}"],
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bus_down", done.stderr)

    def test_printed_sub_line_works_as_printed(self):
        with open(os.devnull) as nothing:
            process = start_process(["sh", "-c", "exec " + self.stack.printed_line(BINARY)], stdin=nothing,
                                    stdout=subprocess.PIPE, text=True)
        try:
            self.assertIn("message", json.loads(process.stdout.readline()))
        finally:
            end_process(process)
            process.stdout.close()

    def test_printed_nats_line_shows_every_kind(self):
        nats = tool("nats", "NATS_CLI")
        environment = {**os.environ, "PATH": os.path.dirname(nats) + ":" + os.environ["PATH"]}
        process = start_process(["sh", "-c", "exec " + self.stack.printed_line("nats ")], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        kinds, broken = set(), []

        def read():
            for line in process.stdout:
                if not line.startswith("{"):
                    continue  # the CLI's own words: subjects and headers
                try:
                    kinds.add(json.loads(line)["message"])
                except (ValueError, KeyError):
                    broken.append(line)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            self.chat_until(lambda: KINDS <= kinds, "every kind of message in nats sub")
        finally:
            process.terminate()
            process.wait(10)
            reader.join(5)
            process.stdout.close()
        self.assertEqual(broken, [])


class Decode(unittest.TestCase):
    def decode(self, data):
        return subprocess.run([BINARY, "decode"], input=data, capture_output=True, timeout=30)

    def test_a_bad_buffer_is_an_error_line_and_exit_code_1(self):
        head = b"\x10\0\0\0"
        for data in (b"", b"x", b"\0" * 64, head + b"IXAN", head + b"IXAN" + b"\xff" * 40, head + b"NONE" + b"\0" * 40):
            with self.subTest(data=data):
                done = self.decode(data)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout, b"")
                self.assertRegex(done.stderr.decode(), r"^infernex decode: (malformed|wrong)_message(_type)?: .+\n$")

    def test_unlimited_input_ends_at_the_bound(self):
        done = self.decode(b"\x10\0\0\0IXAN" + b"\0" * (9 << 20))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"infernex decode: ", done.stderr)


if __name__ == "__main__":
    harness.main(deadline=240)
