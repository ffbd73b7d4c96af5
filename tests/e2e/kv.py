"""What the engines, the agent and the indexer know of cached blocks; filling caches; waiting for agreement."""

import concurrent.futures
import random
import time

import client
from client import metric
from harness import MODEL, wait_until

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def words(count, rng):
    """Text of exactly `count` tokens: the simulator's tokenizer starts a token at each space and gives a word of
    two letters no second one."""
    return "".join(" " + rng.choice(LETTERS) + rng.choice(LETTERS) for _ in range(count))


def listening(question):
    """The answer, or None while the process that is asked does not listen yet."""
    try:
        return question()
    except client.BROKEN:
        return None


def await_fleet(stack, deadline=60.0):
    """The ready line comes with the first engine the gateway hears of; this waits until the router, where it is a
    process, knows all of them, and prompts are placed by their tokens (the block size comes with the metrics)."""
    if "router" in stack.names():
        router = stack.admin_url("router")
        known = lambda: metric(router, "infernex_router_engines_ready")
        wait_until(lambda: listening(known) == stack.engines, deadline, "all engines at the router")
    if "indexer" in stack.names():
        # A new replica is not asked before it is exact.
        indexer = stack.admin_url("indexer")
        ready = lambda: client.get(indexer + "/readyz").status == 200
        wait_until(lambda: listening(ready), deadline, "an indexer that answers")
    placed_by = lambda: client.chat(stack.url, max_tokens=1).headers["x-infernex-decision"]
    wait_until(lambda: "keys: text" not in placed_by(), deadline, "prompts placed by tokens")


class KvView:
    """Addresses are looked up once: `up` starts a process that died on its old ports."""

    def __init__(self, stack):
        await_fleet(stack)
        self.indexer, self.agent = stack.admin_url("indexer"), stack.admin_url("agent")
        self.engines = {name: stack.engine_url(i) for i, name in enumerate(stack.engine_names())}

    def index(self):
        """instance -> what the index knows of it; nothing while the indexer does not answer."""
        try:
            models = client.get(self.indexer + "/v1/index", timeout=10).json()["models"]
        except client.BROKEN:
            return {}
        return {row["instance"]: row for model in models for row in model["instances"]}

    def keys(self):
        return sum(row["keys"] for row in self.index().values())

    def is_exact(self):
        """The index says of every engine that it equals the agent's mirror."""
        rows = self.index()
        return len(rows) == len(self.engines) and all(row["exact"] for row in rows.values())

    def await_exact(self, deadline=60.0):
        wait_until(self.is_exact, deadline, "an index that is exact for every engine", every=0.005)

    def settle(self, instance, deadline=10.0):
        """Waits until the index has every event that the engine has published: the agent has applied as many batches
        as the engine has sent, and the index as many deltas as the agent has sent."""
        engine = self.engines[instance]

        def caught_up():
            sent = metric(engine, "infernex_sim_kv_batches_total") or 0
            if (metric(self.agent, "infernex_agent_batches_total", instance=instance) or 0) < sent:
                return False
            row = self.index().get(instance)
            told = metric(self.agent, "infernex_agent_deltas_total", instance=instance) or 0
            return row is not None and row["exact"] and row["sequence"] >= told

        wait_until(caught_up, deadline, f"the events of {instance} in the index", every=0.002)

    def settle_all(self, deadline=30.0):
        for instance in self.engines:
            self.settle(instance, deadline)

    def differences(self, watch, since):
        """Index against the agent's announcements made after `since`: what differs, as text; empty if nothing."""
        rows, found = self.index(), []
        for instance in self.engines:
            said = watch.latest("EngineAnnounce", instance)
            if said is None or said.at < since:
                found.append(f"{instance} has not been announced since")
                continue
            theirs = [said.body[name] for name in ("kv_sequence", "kv_keys", "kv_digest")]
            row = rows.get(instance) or {"sequence": None, "keys": None, "digest": "0"}
            ours = [row["sequence"], row["keys"], int(row["digest"], 16)]
            if ours != theirs:
                found.append(f"{instance}: the agent says {theirs}, the index {ours}")
        return found


def fill(stack, view, blocks, block_size, tokens=8_000, deadline=240.0):
    """Sends prompts of their own until the index holds so many keys; with the number of keys."""
    rng = random.Random(1)
    per_request = tokens // block_size

    def send(number):
        text = f"p{number}" + words(tokens, rng)
        answer = client.call("POST", stack.url + "/v1/completions", {"model": MODEL, "prompt": text, "max_tokens": 1},
                             timeout=deadline)
        assert answer.status == 200, answer

    until = time.monotonic() + deadline
    count = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        while view.keys() < blocks:
            assert time.monotonic() < until, f"only {view.keys()} blocks are cached after {deadline} s"
            wanted = max(1, (blocks - view.keys()) // per_request)
            list(pool.map(send, range(count, count + wanted)))
            count += wanted
            view.settle_all()
    return view.keys()


def restart(stack, view, name, deadline=120.0):
    """Kills a process with SIGKILL. Seconds until a new one is there, until chat works, until the index is exact: it
    has heard of every engine since, lacks none of the blocks it had (nothing is evicted), and says so."""
    before = view.index()
    old = stack.kill(name)
    began = time.monotonic()
    since = lambda: time.monotonic() - began
    wait_until(lambda: stack.pid(name) not in (None, old), 30, f"a new process {name}")
    seconds = {"process": since()}

    def answered():
        try:
            return client.chat(stack.url, f"after {name}", max_tokens=1, timeout=30).status == 200
        except client.BROKEN:
            return False

    def is_back(instance, row):
        heard = since() - row["age_ms"] / 1e3 > seconds["process"]
        same_agent = name != "agent" or row["agent_epoch"] > before[instance]["agent_epoch"]
        return row["exact"] and heard and same_agent and row["keys"] >= before[instance]["keys"]

    def exact():
        rows = view.index()
        return rows.keys() == before.keys() and all(is_back(*row) for row in rows.items())

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        chat = pool.submit(lambda: (wait_until(answered, deadline, "chat"), since())[1])
        wait_until(exact, deadline, f"an exact index after the restart of {name}", every=0.005)
        seconds["index"] = since()
        seconds["chat"] = chat.result()
    return seconds
