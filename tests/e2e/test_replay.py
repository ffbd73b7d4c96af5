"""Traffic is recorded from the bus as a trace without text, and traces are replayed in virtual time."""

import json
import pathlib
import socket
import subprocess
import tempfile
import unittest

import client
import harness
from harness import BINARY, Stack, end_process, start_process, wait_until
from kv import await_fleet
from watch import Watch

SECRET = "xylophone"


def run(*arguments, timeout=120):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=timeout)


class WithFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="infernex-replay-")))


class Recording(WithFolder):
    def record(self, stack, requests, expected):
        trace, told = self.folder / "live.jsonl", self.folder / "told"
        with open(told, "wb") as errors:
            process = start_process([BINARY, "record", "--out", str(trace), "--nats", stack.nats_url], stderr=errors)
        try:
            wait_until(lambda: "recording" in told.read_text(), 30, "infernex record")
            requests()
            wait_until(lambda: len(trace.read_text().splitlines()) >= expected, 30, "the recorded lines")
        finally:
            code = end_process(process)
        self.assertEqual(code, 0, told.read_text())
        return [json.loads(line) for line in trace.read_text().splitlines()], trace.read_text(), told.read_text()

    def test_a_record_holds_lengths_and_keys_but_no_text(self):
        with Stack(engines=2, config={"simulator": {"speed": 50}}) as stack:
            await_fleet(stack)

            def three_requests():
                for turn in range(3):
                    text = f"{SECRET} " + "word " * 100 + f"turn {turn}"
                    answer = client.chat(stack.url, text, max_tokens=5 + turn, ignore_eos=True)
                    self.assertEqual(answer.status, 200)

            lines, text, told = self.record(stack, three_requests, 4)
        header, requests = lines[0], lines[1:]
        self.assertEqual(header, {"infernex_trace": 1, "block_tokens": 16, "model": harness.MODEL})
        self.assertEqual([r["output_tokens"] for r in requests], [5, 6, 7])
        for request in requests:
            self.assertGreater(request["prompt_tokens"], 100)
            self.assertEqual(len(request["blocks"]), (request["prompt_tokens"] - 1) // 16)
        # The prompts have all but their ends in common, and so have the keys.
        self.assertEqual(requests[0]["blocks"][:6], requests[2]["blocks"][:6])
        self.assertNotIn(SECRET, text)
        self.assertIn("recorded 3 requests of sim/llama", told)

    def test_requests_of_embedded_gateways_are_counted_as_not_recorded(self):
        with Stack(engines=1, config={"simulator": {"speed": 50}, "gateway": {"router": "embedded"}}) as stack:
            await_fleet(stack)
            told = self.folder / "told"
            command = [BINARY, "record", "--out", str(self.folder / "none"), "--nats", stack.nats_url]
            with open(told, "wb") as errors:
                process = start_process(command, stderr=errors)
            wait_until(lambda: "recording" in told.read_text(), 30, "infernex record")
            ended = lambda seen: bool(seen.body.get("finished"))
            with Watch(stack.nats_url, "ix.v1.request.*.life", keep=ended) as watch:

                def ask():
                    self.assertEqual(client.chat(stack.url, "hello", max_tokens=2).status, 200)
                    return watch.seen

                wait_until(ask, 30, "a life message of the gateway's", every=0.1)
            self.assertEqual(end_process(process), 0)
        self.assertRegex(told.read_text(), r"recorded 0 requests\n  not recorded: [1-9]\d* without a query on the bus")

    def test_what_cannot_be_recorded_to_is_a_clear_error(self):
        done = run("record", "--out", self.folder / "no" / "such" / "file")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot be written", done.stderr)
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            config = self.folder / "config.yaml"
            config.write_text("bus:\n  connect_deadline: 100ms\n")
            done = run("record", "--out", self.folder / "x", "--config", config, "--nats",
                       f"nats://127.0.0.1:{bound.getsockname()[1]}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("bus_down", done.stderr)


if __name__ == "__main__":
    harness.main(deadline=240)
