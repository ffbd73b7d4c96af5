"""make bench-replicas_live: do replicas cost latency? One trace is played to one gateway and one router, and to four gateways
and two routers, on the same fleet of simulated engines; ROUNDS (2) of each in turn, each with fresh engines."""

import contextlib
import os

from support import report  # before the modules of tests/e2e: it finds them
from support import open_loop
import client
from harness import BINARY, Stack, end_process, free_port, start_process, wait_until
from kv import await_fleet, listening
from support.live_trace import SIMULATOR, body_of, requests

POLICY = os.environ.get("POLICY") or "infernex"
ROUNDS = int(os.environ.get("ROUNDS") or 2)
ENGINES = 3
HEADERS = ["round", "gateways", "routers", "ttft_mean_ms", "ttft_p50_ms", "ttft_p90_ms", "ttft_p99_ms"]


def more(running, stack, role, *options):
    with open(os.devnull, "wb") as nowhere:
        process = start_process([BINARY, role, "--nats", stack.nats_url, "--config", str(stack.config_file), *options],
                                stdout=nowhere, stderr=nowhere)
    running.callback(end_process, process)


def play(rows, gateways, routers):
    with contextlib.ExitStack() as running:
        config = {"simulator": SIMULATOR, "router": {"policy": {"strategy": POLICY}}}
        stack = running.enter_context(Stack(engines=ENGINES, config=config))
        urls = [stack.url]
        for _ in range(routers - 1):
            more(running, stack, "router")
        for _ in range(gateways - 1):
            port = free_port()
            more(running, stack, "gateway", "--port", str(port))
            urls.append(f"http://127.0.0.1:{port}")
        await_fleet(stack)
        for url in urls:
            placed = lambda: client.chat(url, max_tokens=1).headers.get("x-infernex-decision", "")
            by_tokens = lambda: "keys: " in (seen := listening(placed) or "") and "keys: text" not in seen
            wait_until(by_tokens, 60, "a gateway that places by tokens")
        samples = open_loop.run(urls, [(at, body_of(*rest)) for at, *rest in rows])
    return [first * 1e3 for first, _, _ in samples]


def main():
    rows, source = requests()
    table, p99 = [], {}
    for number in range(ROUNDS):
        for gateways, routers in ((1, 1), (4, 2)):
            ttft = play(rows, gateways, routers)
            shares = [report.percentile(ttft, share) for share in (0.5, 0.9, 0.99)]
            p99.setdefault(gateways, []).append(shares[-1])
            table.append([number + 1, gateways, routers, *(round(x, 1) for x in (sum(ttft) / len(ttft), *shares))])
    ratio = sum(p99[4]) / sum(p99[1])
    print(f"TTFT p99 with four gateways and two routers: {ratio:.3f} of that with one of each")
    report.publish("replicas_live", HEADERS, table, engines=ENGINES, requests=len(rows), trace=source, policy=POLICY,
                   p99_ratio=round(ratio, 3),
                   note="load generator (Python), engines, bus, routers and gateways share the cores")


if __name__ == "__main__":
    main()
