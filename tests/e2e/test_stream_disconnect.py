"""A client that leaves, or an answer that takes too long, frees the engine at once."""

import time
import unittest

import client
import harness
from harness import Stack, wait_until

# At real speed an answer of 2,000 tokens takes more than ten seconds: an engine that is idle before that was told.
LONG = {"max_tokens": 2000, "ignore_eos": True}
LEAST_DURATION = 10.0


class Disconnect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config = {"gateway": {"timeout": "600ms"}, "simulator": {"speed": 1, "eos_probability": 0}}
        cls.stack = cls.enterClassContext(Stack(engines=1, config=config))
        cls.engine = cls.stack.engine_url(0)

    def running(self):
        return client.metric(self.engine, "vllm:num_requests_running")

    def await_running(self, count, deadline, what):
        wait_until(lambda: self.running() == count, deadline, what)

    def test_closing_in_mid_stream_frees_the_engine(self):
        gone_before = client.metric(self.stack.url, "infernex_gateway_client_gone_total") or 0
        started = time.monotonic()
        stream = client.EventStream(self.stack.url + "/v1/chat/completions", client.chat_body("Tell me all", **LONG))
        try:
            self.assertEqual(stream.status, 200)
            events = [data for data, _ in zip(stream, range(5))]
            self.assertEqual(len(events), 5)
            self.assertEqual(self.running(), 1)
        finally:
            stream.close()
        closed = time.monotonic()
        self.await_running(0, 3, "an idle engine after the client left")
        freed = time.monotonic()
        print(f"engine idle {1e3 * (freed - closed):.0f} ms after the client left")
        self.assertLess(freed - started, LEAST_DURATION)
        wait_until(lambda: client.metric(self.stack.url, "infernex_gateway_client_gone_total") == gone_before + 1, 5,
                   "the gateway's count of clients gone")
        wait_until(lambda: client.metric(self.engine, "vllm:kv_cache_usage_perc") == 0, 3, "no block in use")

    def test_many_at_once(self):
        streams = [client.EventStream(self.stack.url + "/v1/chat/completions", client.chat_body(f"Number {i}", **LONG))
                   for i in range(16)]
        for stream in streams:
            self.assertEqual(stream.status, 200)
            self.assertTrue(next(iter(stream)))
        self.await_running(16, 5, "16 running requests")
        for stream in streams:
            stream.close()
        self.await_running(0, 5, "an idle engine after 16 clients left")

    def test_a_late_whole_answer_is_504_and_cancelled(self):
        started = time.monotonic()
        answer = client.chat(self.stack.url, "Take your time", **LONG)
        took = time.monotonic() - started
        self.assertEqual(answer.status, 504, answer)
        self.assertEqual(answer.error["code"], "timeout")
        self.assertIn("600 ms", answer.error["message"])
        self.assertLess(took, 5)
        self.await_running(0, 3, "an idle engine after the time-out")

    def test_a_stream_may_outlast_the_timeout_of_whole_answers(self):
        body = client.chat_body("Slowly", max_tokens=150, ignore_eos=True)
        started = time.monotonic()
        stream = client.EventStream(self.stack.url + "/v1/chat/completions", body)
        try:
            last = [data for data in stream][-1]
        finally:
            stream.close()
        self.assertEqual(last, "[DONE]")
        self.assertGreater(time.monotonic() - started, 0.6)


if __name__ == "__main__":
    harness.main(deadline=120)
