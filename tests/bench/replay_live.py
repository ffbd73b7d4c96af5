"""make bench-replay_live: is the replay right? One trace is played to `infernex up` and recorded by `infernex record`; the
record is replayed with the same configuration. TTFT of both, as the gateway measures it."""

import contextlib
import json
import os
import pathlib
import random
import subprocess

from support import report  # before the modules of tests/e2e: it finds them
from support import open_loop
from client import metric
from harness import BINARY, MODEL, Stack, end_process, start_process, wait_until
from kv import await_fleet

TRACE = os.environ.get("TRACE") or str(report.SOURCE.parent / "shared/data/traces/mooncake-conversation.jsonl")
POLICY = os.environ.get("POLICY") or "kv-aware"
ENGINES = 3
REQUESTS = 900
# The trace is scaled to what fits this machine: every length by 8, time by 3. Prefill costs eight times as much a
# token, so that the engines' time is what counts, as it is with whole prompts on real ones.
SCALE, FASTER, BLOCK = 8, 3.0, 64
SIMULATOR = {"block_size": BLOCK, "total_blocks": 2_000, "max_model_len": 32_768, "max_num_batched_tokens": 1_024,
             "step_costs": {"prefill_linear": 0.1, "prefill_quadratic": 3.4e-06}}
MOST_TOKENS = 12_000
HEADERS = ["ttft_ms", "live", "replay", "replay_over_live"]


def traced():
    """(arrival in s, prompt tokens, output tokens, ids of blocks), scaled."""
    if os.path.exists(TRACE):
        with open(TRACE) as lines:
            rows = [json.loads(line) for line, _ in zip(lines, range(REQUESTS))]
        return [(r["timestamp"] / 1e3 / FASTER, min(MOST_TOKENS, r["input_length"] // SCALE),
                 max(1, r["output_length"] // SCALE), r["hash_ids"]) for r in rows], os.path.basename(TRACE)
    # Conversations that grow, as in the real trace: Poisson arrivals, prompts of about 850 tokens.
    rng, talks, rows, now = random.Random(1), [[i] for i in range(150)], [], 0.0
    for i in range(REQUESTS):
        now += rng.expovariate(10)
        talk = rng.choice(talks)
        talk += [1_000 * (i + 1) + j for j in range(rng.randint(1, 4))]
        rows.append((now, len(talk) * BLOCK + rng.randint(1, BLOCK), rng.randint(1, 80), list(talk)))
    return rows, "made up"


# Ids of the simulator's tokens of one letter: any of them make a valid prompt.
LETTERS = range(ord("a"), ord("z") + 1)


def prompt(tokens, blocks):
    ids = []
    for block in [*blocks[:tokens // BLOCK], f"the rest of {tokens} after {blocks}"]:
        ids += random.Random(block).choices(LETTERS, k=BLOCK)
    return ids[:tokens]


def body_of(tokens, output, blocks):
    return {"model": MODEL, "prompt": prompt(tokens, blocks), "max_tokens": output, "ignore_eos": True, "stream": True,
            "stream_options": {"include_usage": True}}


def recorded(path):
    lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()[1:]]
    return [line["ttft_ms"] for line in lines if "ttft_ms" in line]


def main():
    rows, source = traced()
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
