"""make bench-replay_live: is the replay right? One trace is played to `infernex up` and recorded by `infernex record`; the
record is replayed with the same configuration. TTFT of both, as the gateway measures it."""

import contextlib
import json
import os
import pathlib
import subprocess

from support import report  # before the modules of tests/e2e: it finds them
from support import open_loop
from client import metric
from harness import BINARY, Stack, end_process, start_process, wait_until
from kv import await_fleet
from support.live_trace import SIMULATOR, body_of, requests

POLICY = os.environ.get("POLICY") or "kv-aware"
ENGINES = 3
HEADERS = ["ttft_ms", "live", "replay", "replay_over_live"]


def recorded(path):
    lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()[1:]]
    return [line["ttft_ms"] for line in lines if "ttft_ms" in line]


def main():
    rows, source = requests()
    with contextlib.ExitStack() as running:
        folder = report.SOURCE / "build" / "bench"
        folder.mkdir(parents=True, exist_ok=True)
        config = {"simulator": SIMULATOR, "router": {"policy": {"strategy": POLICY}}}
        stack = running.enter_context(Stack(engines=ENGINES, config=config))
        await_fleet(stack)
        trace, told_file = folder / "replay_live.jsonl", folder / "replay_live.record"
        with open(told_file, "wb") as errors:
            recording = start_process([BINARY, "record", "--out", str(trace), "--nats", stack.nats_url], stderr=errors)
        told = lambda: told_file.read_text()
        wait_until(lambda: "recording" in told(), 20, "infernex record")
        samples = open_loop.run(stack.url, [(at, body_of(*rest)) for at, *rest in rows])
        wait_until(lambda: len(recorded(trace)) >= len(rows), 20, "a record of every request")
        end_process(recording)
        print(told(), end="")
        counted = lambda what: sum(metric(stack.engine_url(i), f"vllm:prefix_cache_{what}_total") for i in range(ENGINES))
        hit_share = counted("hits") / counted("queries")
        same = folder / "replay_live.yaml"
        same.write_text(stack.config_file.read_text())
        live = recorded(trace)
        done = subprocess.run([BINARY, "replay", "--trace", str(trace), "--engines", str(ENGINES), "--config", str(same),
                               "--warm-up", "0", "--json"], capture_output=True, text=True, timeout=120, check=True)
    row = json.loads(done.stdout)["rows"][0]
    seen = row["ttft_ms"]
    table = []
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        lived = report.percentile(live, share)
        table.append([name, round(lived, 1), round(seen[name], 1), round(seen[name] / lived, 3)])
    mean = sum(live) / len(live)
    table.append(["mean", round(mean, 1), round(seen["mean"], 1), round(seen["mean"] / mean, 3)])
    table.append(["hit share, %", round(hit_share * 100, 1), round(row["hit_share"] * 100, 1),
                  round(row["hit_share"] / hit_share, 3)])
    late = report.percentile([late for _, _, late in samples], 0.99)
    clients = report.percentile([first for first, _, _ in samples], 0.5) * 1e3
    print(f"at the client: TTFT p50 {clients:.1f} ms; requests were sent at most {late * 1e3:.0f} ms late (p99)")
    report.publish("replay_live", HEADERS, table, engines=ENGINES, requests=len(rows), trace=source, policy=POLICY,
                   sent_late_p99_ms=round(late * 1e3, 1), ttft_p50_at_the_client_ms=round(clients, 1),
                   note="load generator (Python), engines, bus, router and gateway share the cores")


if __name__ == "__main__":
    main()
