"""How long the index takes to be exact again after a restart, with 100,000 blocks cached. Shared by the end-to-end
test and the benchmark."""

import contextlib
import time

import harness
import kv
from watch import Watch

BLOCKS = 100_000
BLOCK_SIZE = 4
CONFIG = {"simulator": {"speed": 100_000, "block_size": BLOCK_SIZE, "total_blocks": 60_000},
          "router": {"policy": {"strategy": "least-load"}}}
RESTARTED = ("indexer", "agent", "nats-server")


@contextlib.contextmanager
def filled_stack():
    """A stack whose four engines cache BLOCKS blocks together: (stack, view, number of keys)."""
    with harness.Stack(engines=4, config=CONFIG) as stack:
        view = kv.KvView(stack)
        view.await_exact()
        began = time.monotonic()
        keys = kv.fill(stack, view, BLOCKS, BLOCK_SIZE)
        print(f"{keys} blocks cached in {time.monotonic() - began:.1f} s")
        yield stack, view, keys


def measure(stack, view, name):
    """Seconds by phase (see kv.restart), checked against the agent's announcements."""
    view.settle_all()
    seconds = kv.restart(stack, view, name)
    view.settle_all()
    with Watch(stack.nats_url, "ix.v1.engine.>", lambda seen: seen.kind == "EngineAnnounce") as watch:
        since = time.monotonic()
        harness.wait_until(lambda: not view.differences(watch, since), 20, "agreement of index and agent")
    return seconds
