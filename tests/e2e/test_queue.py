"""More requests than the engines can run: those of higher priority wait in the router and are all answered, sheddable ones
are turned away at once with a reason, and no client gets anything else."""

import concurrent.futures
import unittest

import client
import harness
from harness import Stack
from kv import await_fleet

CONFIG = {"simulator": {"speed": 5, "max_num_seqs": 2, "max_waiting": 1000},
          "agent": {"scrape_interval": "100ms", "probe_interval": "100ms"},
          "router": {"policy": {"queue": {"queue_depth": 2, "max_wait": "30s", "objectives": {"chat": 10, "batch": -1}}}}}
ROUNDS, AT_ONCE = 6, 36
OBJECTIVES = ("chat", "", "batch")


def ask(url, number):
    objective = OBJECTIVES[number % 3]
    headers = {"x-llm-d-inference-objective": objective, "x-llm-d-inference-fairness-id": f"tenant-{number % 2}"}
    return objective, client.chat(url, f"question {number} of many", headers, max_tokens=40, ignore_eos=True)


class Saturated(unittest.TestCase):
    def test_who_waits_is_answered_and_who_may_be_shed_is_told(self):
        with Stack(engines=2, config=CONFIG) as stack, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as clients:
            await_fleet(stack)
            told = list(clients.map(lambda number: ask(stack.url, number), range(ROUNDS * AT_ONCE)))
            router = stack.admin_url("router")
            released = client.metric(router, "infernex_router_queue_released_total")
            shed = client.metric(router, "infernex_router_queue_shed_total")
        turned_away = [answer for objective, answer in told if answer.status != 200]
        self.assertEqual({objective for objective, answer in told if answer.status != 200}, {"batch"})
        for answer in turned_away:
            self.assertEqual(answer.status, 429, answer)
            self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
            self.assertRegex(answer.error["message"], "is saturated: .* a request of priority -1 does not wait")
        waited = [answer for _, answer in told if "waited" in answer.headers.get("x-infernex-decision", "")]
        self.assertEqual((released, shed), (len(waited), len(turned_away)))
        self.assertGreater(released, 0)


if __name__ == "__main__":
    harness.main(120)
