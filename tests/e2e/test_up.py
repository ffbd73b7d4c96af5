"""`infernex up`: what it starts, what it keeps running, how it ends; and the strategies and router modes."""

import collections
import signal
import subprocess
import time
import unittest

import client
import harness
from client import chat
from harness import Stack, end_process, free_port, start_process, wait_until
from kv import await_fleet
from watch import Watch

FAST = {"speed": 50}
# The path of an older product, with its spelling, and the right one.
LEGACY = ("/rest/hermes-router/v1beta1/v1/chat/completons", "/rest/hermes-router/v1beta1/v1/chat/completions")


class Up(unittest.TestCase):
    def test_the_whole_life(self):
        with Stack(engines=2, config={"simulator": FAST}) as stack:
            answer = chat(stack.url)
            self.assertEqual(answer.status, 200, answer)
            self.assertIn(answer.headers["x-infernex-endpoint"], stack.engine_names())
            self.assertTrue(answer.headers["x-infernex-decision"])
            self.assertEqual(sorted(stack.names()),
                             ["agent", "engine-0", "engine-1", "gateway", "indexer", "nats-server", "router"])
            for path in LEGACY:
                old = client.call("POST", stack.url + path, client.chat_body())
                self.assertEqual(old.status, 200, old)
                self.assertEqual(old.json()["object"], "chat.completion")
            for base in [stack.url] + [stack.admin_url(name) for name in ("agent", "indexer", "router")]:
                self.assertEqual(client.get(base + "/healthz").status, 200, base)
                wait_until(lambda: client.get(base + "/readyz").status == 200, 10, "ready: " + base)
                page = client.get(base + "/metrics")
                self.assertTrue(page.headers["Content-Type"].startswith("text/plain"), page.headers)
                self.assertTrue([name for name in client.metric_names(base) if name.startswith("infernex_")])
            self.assertGreaterEqual(client.metric(stack.url, "infernex_gateway_requests_total", code="200"), 3)
            self.assertEqual(client.get(stack.url + "/v1/models").json()["data"][0]["id"], harness.MODEL)
            # What dies comes back, as another process.
            for name in ("engine-1", "router", "agent"):
                old = stack.kill(name)
                wait_until(lambda: (stack.pid(name) or old) != old, 10, f"a new {name}")
            wait_until(lambda: chat(stack.url).status == 200, 10, "an answer")
            self.assertIsNone(stack.process.poll())
            started = time.monotonic()
            stack.stop(signal.SIGTERM)
            print(f"ended {1e3 * (time.monotonic() - started):.0f} ms after SIGTERM")

    def test_sigint_ends_everything_even_in_mid_stream(self):
        config = {"simulator": {"speed": 1, "eos_probability": 0}, "drain_deadline": "1s"}
        with Stack(engines=1, config=config) as stack:
            stream = client.EventStream(stack.url + "/v1/chat/completions", client.chat_body(max_tokens=5000))
            self.assertTrue(next(iter(stream)))
            stack.stop(signal.SIGINT)
            stream.close()

    def test_sigterm_before_it_is_ready(self):
        with Stack(engines=1, config={"simulator": {"load_time": "1h"}}, wait_ready=False) as stack:
            wait_until(lambda: stack.pid("gateway"), 20, "the gateway's process")
            stack.stop(signal.SIGTERM)
            self.assertEqual(stack.output(), "")

    def test_not_ready_is_503_with_retry_after(self):
        with Stack(engines=1, config={"simulator": {"load_time": "1h"}}, port=free_port(), wait_ready=False) as stack:
            def refused():
                try:
                    return chat(stack.url) if stack.pid("gateway") else None
                except OSError:
                    return None  # the gateway does not listen yet

            def loading():
                # First no engine is known at all; then there is one that loads.
                answer = refused()
                return answer if answer is not None and answer.status == 503 else None

            answer = wait_until(loading, 20, "503 of the gateway", every=0.1)
            self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
            self.assertTrue(answer.error["message"])
            self.assertEqual(client.get(stack.url + "/readyz").status, 503)
            self.assertEqual(client.get(stack.url + "/healthz").status, 200)
            self.assertNotIn("ready http", stack.output())

    def test_ready_line_comes_when_chat_works(self):
        config = {"simulator": {**FAST, "load_time": "2s"}}
        for mode in ("bus", "embedded"):
            started = time.monotonic()
            with self.subTest(mode=mode), Stack(engines=2, config={**config, "gateway": {"router": mode}}) as stack:
                self.assertEqual(chat(stack.url).status, 200)
                self.assertGreaterEqual(time.monotonic() - started, 2)

    def test_a_given_nats_server(self):
        port = free_port()
        server = start_process(["nats-server", "-a", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL)
        try:
            url = f"nats://127.0.0.1:{port}"
            with Stack(engines=1, config={"simulator": FAST}, args=["--nats", url]) as stack:
                self.assertNotIn("nats-server", stack.names())
                self.assertEqual(chat(stack.url).status, 200)
                with Watch(url, "ix.v1.engine.>") as watch:
                    self.assertGreater(watch.total, 0)
            self.assertIsNone(server.poll(), "a given server is not ours to end")
        finally:
            end_process(server)

    def test_a_taken_port_is_a_clear_error(self):
        with Stack(engines=1, config={"simulator": FAST}) as stack:
            port = int(stack.url.rsplit(":", 1)[1])
            with Stack(engines=1, config={"simulator": FAST}, port=port, wait_ready=False) as second:
                wait_until(lambda: str(port) in second.log() and "error" in second.log(), 20, "an error about the port")
                self.assertIsNone(stack.process.poll())
                self.assertEqual(chat(stack.url).status, 200)


class Strategies(unittest.TestCase):
    """Each strategy where the router is a process of its own, and where it is embedded in the gateway."""

    def stack(self, mode, strategy):
        where = "router" if mode == "bus" else "gateway"
        # One thread: where the router is embedded, each thread of the gateway takes turns of its own.
        config = {"simulator": FAST, "gateway": {"router": mode, "threads": 1}}
        config.setdefault(where, {})["policy"] = {"strategy": strategy}
        return Stack(engines=4, config=config)

    def endpoints(self, stack, count):
        await_fleet(stack)
        self.all_ready(stack)
        answers = [chat(stack.url, f"question {i} " + "word " * 20) for i in range(count)]
        self.assertEqual({answer.status for answer in answers}, {200})
        return collections.Counter(answer.headers["x-infernex-endpoint"] for answer in answers)

    def all_ready(self, stack):
        """An embedded router, too, hears of the engines one by one."""
        seen = set()

        def ask():
            answer = chat(stack.url, f"are you there {len(seen)}", max_tokens=1)
            seen.add(answer.headers["x-infernex-endpoint"])
            return len(seen) == stack.engines

        wait_until(ask, 20, "an answer of every engine")

    def test_round_robin(self):
        for mode in ("bus", "embedded"):
            with self.subTest(mode=mode), self.stack(mode, "round-robin") as stack:
                self.assertEqual(self.endpoints(stack, 16), {name: 4 for name in stack.engine_names()})

    def test_least_load(self):
        for mode in ("bus", "embedded"):
            with self.subTest(mode=mode), self.stack(mode, "least-load") as stack:
                counts = self.endpoints(stack, 16)
                self.assertEqual(set(counts), set(stack.engine_names()), counts)
                self.assertLessEqual(max(counts.values()), 8, counts)

    def test_kv_aware(self):
        for mode in ("bus", "embedded"):
            with self.subTest(mode=mode), self.stack(mode, "kv-aware") as stack:
                self.assertEqual("indexer" in stack.names(), mode == "bus")
                await_fleet(stack)
                prompt = "the same long beginning " * 40
                first = chat(stack.url, prompt + "first", max_tokens=1)

                def cached():
                    answer = chat(stack.url, prompt + "again", max_tokens=1)
                    details = answer.json()["usage"]["prompt_tokens_details"]
                    return answer if details["cached_tokens"] > 0 else None

                again = wait_until(cached, 10, "a cache hit")
                self.assertEqual(again.headers["x-infernex-endpoint"], first.headers["x-infernex-endpoint"])


if __name__ == "__main__":
    harness.main(deadline=280)
