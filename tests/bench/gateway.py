"""make bench-gateway: what the gateway costs. The same streamed chats sent to the engines directly, through a gateway
that asks a router on the bus, and through one with the router embedded; rounds alternate within one run."""

import contextlib

from support import report  # before the modules of tests/e2e: it finds them
from support import load_generator
from client import metric
from harness import Stack, wait_until

ROUNDS = 3
LOADS = ((1, 200), (32, 1500))  # clients, requests a round
# Engines that take next to no time of their own, so that what is left is ours.
SIMULATOR = {"speed": 100_000, "total_blocks": 65_536}
HEADERS = ["path", "clients", "requests", "requests_per_second", "ttft_p50_ms", "ttft_p99_ms", "duration_p50_ms"]


def all_ready(stack):
    for i in range(stack.engines):
        wait_until(lambda: metric(stack.engine_url(i), "vllm:num_requests_running") is not None, 20, "an engine")


def main():
    with contextlib.ExitStack() as running:
        stacks = {}
        for mode in ("bus", "embedded"):
            config = {"simulator": SIMULATOR, "gateway": {"router": mode}}
            stacks[mode] = running.enter_context(Stack(engines=2, config=config))
        for stack in stacks.values():
            all_ready(stack)
        paths = {"direct": [stacks["bus"].engine_url(i) for i in range(2)],
                 "gateway, router on the bus": [stacks["bus"].url],
                 "gateway, router embedded": [stacks["embedded"].url]}
        results = {}
        for path, urls in paths.items():
            load_generator.run(urls, 4, 100, f"warm-up {path}")
        for clients, requests in LOADS:
            for turn in range(ROUNDS):
                for path, urls in paths.items():
                    label = f"round {turn} of {clients}, {path}:"
                    samples, seconds = load_generator.run(urls, clients, requests, label)
                    every, total = results.setdefault((clients, path), ([], []))
                    every += samples
                    total.append(seconds)
    rows = []
    for (clients, path), (samples, seconds) in results.items():
        firsts, durations = [first * 1e3 for first, _ in samples], [whole * 1e3 for _, whole in samples]
        rows.append([path, clients, len(samples), round(len(samples) / sum(seconds), 1),
                     round(report.percentile(firsts, 0.5), 3), round(report.percentile(firsts, 0.99), 3),
                     round(report.percentile(durations, 0.5), 3)])
    report.publish("gateway", HEADERS, rows, tokens_per_answer=8, rounds=ROUNDS,
                   note="load generator (Python), engines, bus and gateway share the cores")


if __name__ == "__main__":
    main()
