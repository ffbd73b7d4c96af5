"""make bench-pd_added: what running a transfer protocol adds to the time to first token, beyond what its two legs take: in
the gateway (`pd: embedded`) and in the group's proxy. The same streamed chats to both, in rounds that alternate within one
run. Puts its key into build/bench/pd.json, beside those of `make bench-pd`."""

import contextlib
import json
import re

from support import report  # before the modules of tests/e2e: it finds them
from support import load_generator
import client
from harness import wait_until
from kv import listening
from pd import MODES, PdStack

ROUNDS = 5
REQUESTS = 300  # a round, of one client: what is added, not what waits for a core
# Engines that take little time of their own, but send token by token; decisions in place, so that no router and indexer want
# the cores as well.
CONFIG = {"simulator": {"speed": 400, "total_blocks": 65_536}, "gateway": {"router": "embedded"}}
HISTOGRAM = "infernex_proxy_added_ttft_seconds"
HEADERS = ["pd", "requests", "added_p50_us", "added_p99_us", "client_ttft_p50_us", "client_ttft_p99_us"]


def buckets(url):
    """{upper bound in seconds: requests up to it} of the component's histogram."""
    page = client.get(url + "/metrics").body.decode()
    found = re.findall(rf'^{HISTOGRAM}_bucket{{le="([^"]+)"}} (\S+)$', page, re.M)
    return {float(bound): float(count) for bound, count in found}


def quantile(counts, share):
    """By Prometheus's rule: evenly within a bucket. In seconds."""
    bounds = sorted(counts)
    wanted = counts[bounds[-1]] * share
    low, below = 0.0, 0.0
    for bound in bounds:
        if counts[bound] >= wanted:
            return low + (bound - low) * (wanted - below) / max(counts[bound] - below, 1e-9) if bound != float("inf") else low
        low, below = bound, counts[bound]
    return low


def await_pairs(stack):
    """No router and indexer of its own to ask: until the answers are by pairs."""
    placed = lambda: client.chat(stack.url, "A first question", max_tokens=1).headers
    by_pairs = lambda: (seen := listening(placed)) and "x-infernex-prefill" in seen and "PD group" not in seen[
        "x-infernex-decision"]
    wait_until(by_pairs, 60, "answers by pairs")


def merge(key, value):
    """Into the file, which has keys of others."""
    path = report.SOURCE / "build" / "bench" / "pd.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = json.loads(path.read_text()) if path.exists() else {}
    told[key] = value
    path.write_text(json.dumps(told, indent=2) + "\n")


def main():
    with contextlib.ExitStack() as running:
        stacks, samples, before = {}, {}, {}
        for mode in MODES:
            stacks[mode] = running.enter_context(PdStack("nixl", config=CONFIG, mode=mode))
        component = {"embedded": stacks["embedded"].url, "proxy": stacks["proxy"].proxy_url()}
        for mode, stack in stacks.items():
            await_pairs(stack)
            load_generator.run([stack.url], 4, 200, f"warm-up {mode}")
            before[mode], samples[mode] = buckets(component[mode]), []
        for turn in range(ROUNDS):
            for mode, stack in stacks.items():
                some, _ = load_generator.run([stack.url], 1, REQUESTS, f"round {turn}, {mode}:")
                samples[mode] += some
        seen = {mode: {bound: count - before[mode][bound] for bound, count in buckets(component[mode]).items()}
                for mode in MODES}
    rows, result = [], {"machine": report.machine(), "protocol": "nixl", "requests": ROUNDS * REQUESTS}
    for mode in MODES:
        assert seen[mode][float("inf")] >= 0.99 * ROUNDS * REQUESTS, f"{mode}: not all went to a pair: {seen[mode]}"
        added = [round(1e6 * quantile(seen[mode], share), 1) for share in (0.5, 0.99)]
        firsts = [1e6 * first for first, _ in samples[mode]]
        whole = [round(report.percentile(firsts, share)) for share in (0.5, 0.99)]
        rows.append([mode, len(firsts), *added, *whole])
        result[mode] = {"p50": added[0], "p99": added[1], "client_ttft_p50": whole[0], "client_ttft_p99": whole[1]}
    print(report.table(HEADERS, rows))
    merge("added_ttft_us", result)
    print("written to build/bench/pd.json, added_ttft_us")


if __name__ == "__main__":
    main()
