"""Any process may be killed under load: what had not started is served, and the index is exact again."""

import threading
import time
import unittest

import client
import harness
from harness import Stack, wait_until
from kv import KvView, restart
from load import Load
from watch import Watch

# Engines load long enough for the agent to see them loading.
CONFIG = {"simulator": {"speed": 5, "load_time": "1200ms"}, "router": {"policy": {"strategy": "kv-aware"}}}


def said_state(announce):
    return announce.body["instance"], announce.body["state"]


class HeldDown:
    """Kills a process, and each that `up` starts in its place, until the end of the `with` block."""

    def __init__(self, stack, name):
        self.stack, self.name, self.done = stack, name, threading.Event()

    def __enter__(self):
        self.killed = {self.stack.kill(self.name)}
        self.at = time.monotonic()
        self.thread = threading.Thread(target=self._hold, daemon=True)
        self.thread.start()
        return self

    def _hold(self):
        while not self.done.wait(0.005):
            pid = self.stack.pid(self.name)
            if pid:
                self.killed.add(self.stack.kill(self.name))

    def __exit__(self, *_):
        self.done.set()
        self.thread.join(5)


class Faults(unittest.TestCase):
    def await_served(self, load, since, count, deadline=60):
        wait_until(lambda: len([r for r in load.done_since(since) if r.ok]) >= count, deadline, f"{count} answers")

    def await_engines(self, view):
        """All engines are ready, each with blocks in an index that is exact."""
        wait_until(lambda: view.is_exact() and all(row["keys"] > 0 for row in view.index().values()), 60,
                   "blocks of every engine in an exact index")

    def test_an_engine_is_killed(self):
        with Stack(engines=4, config=CONFIG) as stack:
            view = KvView(stack)
            keep = lambda seen: seen.kind == "EngineAnnounce"
            with Watch(stack.nats_url, keep=keep) as watch, Load(stack.url) as load:
                self.await_engines(view)
                self.await_served(load, 0, 50)
                before = view.index()["engine-1"]
                with HeldDown(stack, "engine-1") as held:
                    of_it = lambda state: lambda seen: said_state(seen) == ("engine-1", state)
                    down = watch.await_message(of_it("Down"), 10, "engine-1 announced as down", since=held.at)
                    print(f"down {down.at - held.at:.2f} s after SIGKILL")
                    keys = lambda: view.index()["engine-1"]["keys"]
                    wait_until(lambda: keys() == 0, 2, "no blocks of a dead engine")
                    self.await_served(load, down.at, 50)
                    load.stop()
                self.check_requests(load, held.at)
                self.assertLess(down.at - held.at, 1.0)
                self.assertGreater(before["keys"], 0)
                # They must not come back while the new process starts, nor when it is ready.
                seen = []
                back = lambda: seen.append(keys()) or watch.find(of_it("Ready"), down.at)
                ready = wait_until(back, 30, "engine-1 announced as ready")
                self.assertGreater(ready.body["engine_epoch"], before["engine_epoch"])
                wait_until(lambda: keys() == 0, 0.5, "no blocks of the process before the new one")
                self.assertEqual(max(seen), 0, "blocks of a dead process in the index")
                ask = lambda: client.chat(stack.url, f"another question at {time.monotonic()}", max_tokens=1)
                wait_until(lambda: ask().headers["x-infernex-endpoint"] == "engine-1", 30, "an answer of engine-1")
                self.check_exact(view, watch)

    def check_requests(self, load, killed_at):
        new = load.done_since(killed_at)
        self.assertEqual([r for r in new if not r.ok][:3], [], "of requests that had not started when it was killed")
        old = [r for r in load.records if r.started <= killed_at and not r.ok]
        print(f"{len(new)} new requests served; {len(old)} in progress failed")
        for record in old:
            # After its first token a stream cannot move yet; it must say so.
            self.assertTrue(record.streamed and record.endpoint == "engine-1" and '"error"' in record.problem, record)

    def check_exact(self, view, watch):
        """Engines are idle: the index equals what the agent announces from now on."""
        view.settle_all()
        since = time.monotonic()
        wait_until(lambda: not view.differences(watch, since), 15, "agreement of index and agent")
        self.assertEqual(view.differences(watch, since), [])

    def test_chat_goes_on_without_a_part_and_says_so(self):
        with Stack(engines=2, config=CONFIG) as stack:
            KvView(stack).await_exact()
            for name, word in (("indexer", "index"), ("router", "router"), ("nats-server", "bus")):
                with self.subTest(missing=name), HeldDown(stack, name):
                    answers = [client.chat(stack.url, f"{i} without {name}", max_tokens=1) for i in range(10)]
                    self.assertEqual({answer.status for answer in answers}, {200})
                    # The first may have been on its way when the process died.
                    for answer in answers[1:]:
                        self.assertIn(word, answer.headers["x-infernex-decision"])
                wait_until(lambda: stack.pid(name), 10, f"a new {name}")

    def test_each_other_process_is_killed_in_turn(self):
        with Stack(engines=4, config=CONFIG) as stack:
            view = KvView(stack)
            keep = lambda seen: seen.kind in ("EngineAnnounce", "RouteDecision")
            with Watch(stack.nats_url, keep=keep) as watch:
                with Load(stack.url) as load:
                    self.await_engines(view)
                for name in ("indexer", "router", "agent", "gateway", "nats-server"):
                    with self.subTest(killed=name):
                        self.one_restart(stack, view, watch, name)

    def one_restart(self, stack, view, watch, name):
        with Load(stack.url) as load:
            self.await_served(load, 0, 20)
            killed_at = time.monotonic()
            took = restart(stack, view, name)
            back = time.monotonic()
            self.await_served(load, back, 20)
            load.stop()
        print(f"{name}: process {took['process']:.2f} s, chat {took['chat']:.2f} s, index exact {took['index']:.2f} s")
        failed = [record for record in load.records if not record.ok]
        if name == "gateway":
            # Nobody else listens on its port: connections fail, and then it says that it knows no engine yet.
            failed = [r for r in failed if r.started > killed_at + took["chat"] or r.status not in (0, 503)]
        self.assertEqual(failed[:3], [], f"{len(failed)} requests failed while {name} was restarted")
        self.check_exact(view, watch)
        self.check_prediction(stack, view, watch, name)

    def check_prediction(self, stack, view, watch, name):
        """The index equals not only the mirror: what it predicts is what the engine finds in its cache."""
        prompt = f"common beginning {name} " + "and so on " * 60
        for number in range(3):
            request_id = f"after-{name}-{number}"
            answer = client.chat(stack.url, prompt + str(number), {"X-Request-Id": request_id}, max_tokens=4)
            self.assertEqual(answer.status, 200, answer)
            view.settle(answer.headers["x-infernex-endpoint"])
            of_it = lambda seen: seen.kind == "RouteDecision" and any(
                choice["request_id"] == request_id for choice in seen.body["choices"])
            seen = watch.await_message(of_it, 10, f"the decision of {request_id}")
            choice = next(c for c in seen.body["choices"] if c["request_id"] == request_id)
            cached = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
            self.assertEqual(choice["overlap_blocks"] * choice["block_size"], cached, choice)
        self.assertGreater(cached, 0)


if __name__ == "__main__":
    harness.main(deadline=280)
