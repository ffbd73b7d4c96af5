"""Every transfer protocol serves chat through gateway, router and proxy, or a gateway that does the proxy's work, as one
aggregated engine would."""

import unittest

import client
import harness
from harness import Stack
from kv import await_fleet
from pd import MODES, PROTOCOLS, PdStack, figures, streamed, whole

# Slow enough for the router's gauge (every 20 ms) to see each request come and go: only when it has gone is the next one
# not kept from the engine that knows its prompt.
CONFIG = {"simulator": {"speed": 4}, "gateway": {"life_interval": "1ms"}}
# Asked in this order: a prompt shorter than a block, a long one, the same again (now it is cached), one that begins alike.
LONG = "tell me of " + "the sea and the wind and the rain and " * 12
QUESTIONS = ("Hi", LONG, LONG, LONG + "then of the sun")


def ask(url, settle=lambda: None):
    told = []
    for how in (whole, streamed):
        for question in QUESTIONS:
            settle()
            text, usage = how(url, question)
            told.append((figures(usage), text))
    return told


class EveryProtocol(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Stack(engines=1, config=CONFIG) as stack:
            await_fleet(stack)
            cls.expected = ask(stack.url)
        cached = [usage[2] for usage, _ in cls.expected]
        assert cached[1] < cached[2] and cached[3] > 0, f"nothing is cached: {cached}"

    def test_text_and_usage_are_those_of_an_aggregated_engine(self):
        for protocol in PROTOCOLS:
            for mode in MODES:
                with self.subTest(protocol=protocol, mode=mode):
                    self.one(protocol, mode)

    def one(self, protocol, mode):
        with PdStack(protocol, config=CONFIG, args=["--faults"], mode=mode) as stack:
            stack.await_pairs()
            self.assertEqual(ask(stack.url, stack.await_quiet), self.expected)
            stack.await_idle()
            # By pairs, all of them, and by the process that was to do it.
            component = stack.url if mode == "embedded" else stack.proxy_url()
            self.assertEqual("proxy" in stack.names(), mode == "proxy")
            self.assertGreaterEqual(client.metric(component, "infernex_proxy_prefill_seconds_count"), 2 * len(QUESTIONS))
            self.assertEqual(client.metric(component, "infernex_proxy_local_prefills_total"), 0)

    def test_what_a_decode_engine_begins_by_itself_a_pair_finishes(self):
        # Which costs less for such prompts.
        alone = {"policy": {"strategy": "infernex"}}
        lease = {"kv_transfer": {"lease": "2s"}}  # of blocks whose decode engine died, or computed them before
        config = {"simulator": {**CONFIG["simulator"], **lease}, "router": alone,
                  "gateway": {**CONFIG["gateway"], **alone}}
        for mode in MODES:
            with self.subTest(mode=mode), PdStack("ascend", config=config, args=["--faults"], mode=mode) as stack:
                stack.await_pairs()
                component = stack.url if mode == "embedded" else stack.proxy_url()
                told = [how(stack.url, "Hi") for how in (whole, streamed)]
                self.assertGreater(client.metric(component, "infernex_proxy_local_prefills_total"), 1)
                for fault in ({"fault": "recomputed"}, {"fault": "die", "down_ms": 200}):
                    for how, (text, _) in zip((whole, streamed), told):
                        stack.await_quiet()
                        stack.arm("decode", **fault, after_tokens=3, count=1)
                        self.assertEqual(how(stack.url, "Hi")[0], text, fault)
                        stack.disarm()
                self.assertGreaterEqual(client.metric(component, "infernex_proxy_recomputed_total"), 2)
                stack.await_idle()


if __name__ == "__main__":
    harness.main(290)
