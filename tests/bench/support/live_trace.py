"""The conversation trace as a load for a stack on this machine: prompts of token ids, and the engines they fit."""

import json
import os
import random

from support import report  # before the modules of tests/e2e: it finds them
from harness import MODEL

TRACE = os.environ.get("TRACE") or str(report.SOURCE.parent / "shared/data/traces/mooncake-conversation.jsonl")
REQUESTS = 900
# The trace is scaled to what fits this machine: every length by 8, time by 3. Prefill costs eight times as much a
# token, so that the engines' time is what counts, as it is with whole prompts on real ones.
SCALE, FASTER, BLOCK = 8, 3.0, 64
SIMULATOR = {"block_size": BLOCK, "total_blocks": 2_000, "max_model_len": 32_768, "max_num_batched_tokens": 1_024,
             "step_costs": {"prefill_linear": 0.1, "prefill_quadratic": 3.4e-06}}
MOST_TOKENS = 12_000


def requests():
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
