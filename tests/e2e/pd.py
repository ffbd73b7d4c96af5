"""A group of simulated prefill and decode engines behind gateway, router and proxy (or a gateway that does its work): its
stack, and what its engines hold."""

import json
import os

import client
from client import BROKEN
from harness import Stack, wait_until
from kv import listening

PROTOCOLS = ("nixl", "mooncake", "ascend", "ascend-layerwise", "sglang")
MODES = ("proxy", "embedded")


class PdStack(Stack):
    def __init__(self, protocol, prefill=2, decode=2, config=None, args=(), mode=os.environ.get("PD_MODE", "proxy")):
        shape = ("--pd", f"{prefill}p{decode}d", "--kv-protocol", protocol, "--pd-mode", mode)
        config = dict(config or {})
        for part in ("gateway", "router"):  # pairs for short prompts too, which cost less without
            config[part] = {"policy": {"strategy": "infernex-pd"}, **config.get(part, {})}
        super().__init__(engines=0, config=config, args=[*shape, *args])
        self.parts = {"prefill": [f"prefill-{i}" for i in range(prefill)],
                      "decode": [f"decode-{i}" for i in range(decode)]}
        self.mode = mode
        self.members = [name for part in self.parts.values() for name in part]

    def await_pairs(self, deadline=60.0):
        """Until gateway, router and proxy know the whole group."""
        router = self.admin_url("router")
        known = lambda: client.metric(router, "infernex_router_engines_ready")
        wait_until(lambda: listening(known) == len(self.members), deadline, "all engines at the router")
        ready = lambda: client.get(self.proxy_url() + "/healthcheck").json()
        whole = lambda: (seen := listening(ready)) and (seen["prefill_instances"], seen["decode_instances"]) == (
            len(self.parts["prefill"]), len(self.parts["decode"]))
        if self.mode == "proxy":
            wait_until(whole, deadline, "all engines at the proxy")
        indexer = self.admin_url("indexer")
        exact = lambda: client.get(indexer + "/readyz").status == 200
        wait_until(lambda: listening(exact), deadline, "an indexer that answers")
        placed = lambda: client.chat(self.url, "A first question", max_tokens=1).headers["x-infernex-decision"]
        by_pairs = lambda: "keys: text" not in (seen := listening(placed) or "keys: text") and "PD group" not in seen
        wait_until(by_pairs, deadline, "pairs by tokens")

    def proxy_url(self):
        return f"http://127.0.0.1:{self.option('proxy', '--port')}"

    def member_url(self, name):
        return f"http://127.0.0.1:{self.option(name, '--port')}"

    def arm(self, part, fault, **how):
        """At every engine of the part."""
        for name in self.parts[part]:
            answer = client.call("POST", self.member_url(name) + "/sim/faults", {"fault": fault, **how})
            assert answer.status == 200, answer

    def disarm(self):
        for name in self.members:
            listening(lambda: client.call("DELETE", self.member_url(name) + "/sim/faults"))

    def state(self, name):
        return client.get(self.member_url(name) + "/sim/state").json()

    def held(self):
        """What engines hold for requests, by engine; empty: nothing."""
        found = {}
        for name in self.members:
            try:
                seen = self.state(name)
            except BROKEN as problem:
                found[name] = repr(problem)
                continue
            counts = {key: seen[key] for key in ("running", "waiting", "answering", "taking") if seen[key]}
            if seen["leases"]:
                counts["leases"] = seen["leases"]
            if seen["kv_blocks"]["used"]:
                counts["kv_blocks"] = seen["kv_blocks"]["used"]
            if counts:
                found[name] = counts
        return found

    def await_quiet(self, deadline=20.0):
        """Idle engines, and a router that has heard of it."""
        self.await_idle(deadline)
        busy = lambda: client.metric(self.admin_url("router"), "infernex_router_in_flight_requests")
        wait_until(lambda: busy() == 0, deadline, "a router that knows of no request in flight")

    def await_idle(self, deadline=20.0):
        wait_until(lambda: not self.held(), deadline, f"idle engines; they hold {json.dumps(self.held())}")


def whole(url, text, max_tokens=24, **more):
    """(text, usage) of an answer that is not streamed."""
    answer = client.chat(url, text, max_tokens=max_tokens, **more)
    assert answer.status == 200, answer
    told = answer.json()
    return told["choices"][0]["message"]["content"], told["usage"]


def streamed(url, text, max_tokens=24, **more):
    """The same of a streamed one, with all that a stream must and must not repeat checked."""
    body = client.chat_body(text, max_tokens=max_tokens, stream_options={"include_usage": True}, **more)
    stream = client.EventStream(url + "/v1/chat/completions", body)
    assert stream.status == 200, stream.response.read()
    said, usage, ids, roles, finishes, done = "", None, set(), 0, [], False
    for data in stream:
        assert not done, f"after [DONE]: {data}"
        if data == "[DONE]":
            done = True
            continue
        event = json.loads(data)
        assert "error" not in event, event
        ids.add(event["id"])
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            roles += "role" in choice["delta"]
            said += choice["delta"].get("content") or ""
            finishes += [choice["finish_reason"]] if choice["finish_reason"] else []
    stream.close()
    assert done, f"a stream without its end: {said!r}"
    assert (len(ids), roles, len(finishes)) == (1, 1, 1), (ids, roles, finishes)
    return said, usage


def figures(usage):
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return usage["prompt_tokens"], usage["completion_tokens"], cached
