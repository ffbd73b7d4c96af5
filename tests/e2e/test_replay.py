"""Traffic is recorded from the bus as a trace without text, and traces are replayed in virtual time."""

import json
import pathlib
import random
import re
import socket
import subprocess
import tempfile
import unittest
import xml.dom.minidom

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


class Replaying(WithFolder):
    """Requests of 60 conversations in Mooncake's form, 10 a second."""

    def setUp(self):
        super().setUp()
        self.trace = self.folder / "trace.jsonl"
        rng, talks, lines = random.Random(1), [[] for _ in range(60)], []
        for i in range(600):
            talk = rng.choice(talks)
            talk.append(i)
            request = {"timestamp": 100 * i, "input_length": 512 * len(talk), "output_length": rng.randint(1, 200),
                       "hash_ids": talk}
            lines.append(json.dumps(request))
        self.trace.write_text("\n".join(lines) + "\n")

    def replay(self, *arguments):
        done = run("replay", "--trace", self.trace, "--engines", 3, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_equal_seeds_give_equal_results_and_policies_differ(self):
        both = ("--policy", "kv-aware", "--policy", "round-robin", "--seed", 5)
        report = self.replay(*both)
        self.assertEqual(report, self.replay(*both))
        self.assertEqual(report["requests"], 600)
        aware, turns = report["rows"]
        self.assertEqual((aware["policy"], turns["policy"]), ("kv-aware", "round-robin"))
        for row in (aware, turns):
            self.assertEqual(row["requests"] + row["warm_up_requests"], 600)
            self.assertEqual(row["completed"], row["requests"])
            self.assertEqual(row["ttft_ms"]["count"], row["requests"])
            self.assertLessEqual(row["ttft_ms"]["p50"], row["ttft_ms"]["p99"])
        # Conversations stay where their blocks are.
        self.assertGreater(aware["hit_share"], turns["hit_share"])

    def test_twice_the_speed_is_twice_the_rate_and_repeats_share_nothing(self):
        once = self.replay("--warm-up", 0)["rows"][0]
        self.assertAlmostEqual(once["offered_per_second"], 10, 2)
        self.assertAlmostEqual(self.replay("--speed", 2)["rows"][0]["offered_per_second"], 20, 2)
        often = self.replay("--warm-up", 0, "--minutes", 5)["rows"][0]
        self.assertEqual(often["requests"], 3000)
        self.assertLess(often["hit_share"], once["hit_share"] + 0.05)

    def test_loads_are_shares_of_full_load_and_can_be_drawn(self):
        plot = self.folder / "plot.svg"
        done = run("replay", "--trace", self.trace, "--engines", 2, "--loads", "0.5,0.9", "--minutes", 2, "--plot", plot)
        self.assertEqual(done.returncode, 0, done.stderr)
        full = float(re.search(r"full load: ([\d.]+) requests/s", done.stderr).group(1))
        rows = [line.split() for line in done.stdout.splitlines() if line.startswith("configured")]
        self.assertEqual([row[1] for row in rows], ["50.0", "90.0"])
        for row in rows:
            self.assertAlmostEqual(float(row[2]), full * float(row[1]) / 100, delta=0.02 * full)
        drawing = xml.dom.minidom.parse(str(plot))
        self.assertEqual(len(drawing.getElementsByTagName("polyline")), 2)

    def test_fleets_change_while_they_run(self):
        whole = self.replay("--warm-up", 0)["rows"][0]
        fewer = self.replay("--warm-up", 0, "--fail", "0@20", "--slow", "1=2")["rows"][0]
        self.assertEqual(fewer["completed"] + fewer["failed"] + fewer["shed"], 600)
        self.assertGreater(fewer["ttft_ms"]["mean"], whole["ttft_ms"]["mean"])
        helped = self.replay("--warm-up", 0, "--fail", "0@20", "--slow", "1=2", "--add", "20")["rows"][0]
        self.assertLess(helped["ttft_ms"]["mean"], fewer["ttft_ms"]["mean"])
        done = run("replay", "--trace", self.trace, "--prefill", 1, "--decode", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 prefill + 2 decode engines", done.stdout)

    def test_mistakes_are_named(self):
        for arguments, expected in ((["--policy", "best"], "--policy best: no such strategy"),
                                    (["--policy", "kv-awere"], 'did you mean "kv-aware"?'),
                                    (["--policy", "pd-bucket"], "is for prefill and decode engines apart"),
                                    (["--prefill", 1, "--decode", 2, "--policy", "kv-aware"], "engines that do both"),
                                    (["--fail", "7@1"], "--fail 7@1: ENGINE@SECONDS, engines are 0..3"),
                                    (["--plot", self.folder / "no" / "plot"], "cannot be written")):
            with self.subTest(arguments=arguments):
                done = run("replay", "--trace", self.trace, *arguments)
                self.assertEqual(done.returncode, 1)
                self.assertIn(expected, done.stderr)
        self.trace.write_text("no JSON\n" + self.trace.read_text())
        done = run("replay", "--trace", self.trace)
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"{self.trace}:1: ", done.stderr)
        self.assertIn("1 bad lines were left out, 600 requests are used", done.stderr)
        self.trace.write_text("")
        done = run("replay", "--trace", self.trace)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no request", done.stderr)


if __name__ == "__main__":
    harness.main(deadline=240)
