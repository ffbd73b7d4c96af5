"""The router's predicted overlap equals the engine's reported cached_tokens, to the block, for every request that is
sent after the index has seen the events of the one before."""

import os
import random
import time
import unittest

import client
import harness
from client import chat_body
from harness import MODEL, Stack
from kv import KvView, words
from watch import Watch

BLOCK = 16


class Conversations:
    """Requests of mixed shared prefixes: system prompts of a pool, turns that continue an earlier request, exact
    repeats, chat and completions."""

    def __init__(self, rng, prompts, longest):
        self.rng = rng
        self.pool = [words(rng.randint(1, longest), rng) for _ in range(prompts)]
        self.past = []

    def next(self):
        dice = self.rng.random()
        if self.past and dice < 0.12:
            return self.rng.choice(self.past)
        if self.past and dice < 0.30:
            path, body = self.rng.choice(self.past)
            if path.endswith("chat/completions"):
                turns = [{"role": "assistant", "content": words(self.rng.randint(1, 30), self.rng).strip()},
                         {"role": "user", "content": words(self.rng.randint(1, 30), self.rng).strip()}]
                return self.remember(path, {**body, "messages": body["messages"] + turns})
            return self.remember(path, {**body, "prompt": body["prompt"] + words(self.rng.randint(1, 40), self.rng)})
        shared, own = self.rng.choice(self.pool), words(self.rng.randint(1, 80), self.rng)
        tokens = self.rng.randint(1, 40)
        if dice < 0.6:
            return self.remember("/v1/completions", {"model": MODEL, "prompt": shared + own, "max_tokens": tokens})
        return self.remember("/v1/chat/completions", chat_body(own, max_tokens=tokens, system=shared))

    def remember(self, path, body):
        # Bounded, so that the conversation is about what was said lately.
        self.past = self.past[-49:] + [(path, body)]
        return path, body


class Exactness(unittest.TestCase):
    def run_requests(self, count, simulator, prompts, longest):
        """(prediction, answer) of each request; and the keys removed from the index meanwhile."""
        seed = int(os.environ.get("INFERNEX_SEED") or time.time())
        print(f"seed {seed}")
        rng = random.Random(seed)
        config = {"router": {"policy": {"strategy": "kv-aware"}},
                  "simulator": {"speed": 100, "block_size": BLOCK, **simulator}}
        talk = Conversations(rng, prompts, longest)
        choices, removed, answers = {}, [], {}

        def keep(seen):
            if seen.kind == "RouteDecision":
                for choice in seen.body["choices"]:
                    choices.setdefault(choice["request_id"], []).append(choice)
            elif seen.kind == "KvDelta":
                removed.extend(seen.body.get("removed", ()))
            return False

        with Stack(engines=4, config=config) as stack:
            view = KvView(stack)
            view.await_exact()
            with Watch(stack.nats_url, keep=keep) as watch:
                for number in range(count):
                    path, body = talk.next()
                    name = f"exact-{number}"
                    answer = client.call("POST", stack.url + path, body, {"X-Request-Id": name})
                    self.assertEqual(answer.status, 200, answer)
                    answers[name] = answer
                    view.settle(answer.headers["x-infernex-endpoint"])
                harness.wait_until(lambda: answers.keys() <= choices.keys(), 20, "every decision on the bus")
                self.assertEqual(watch.bad_lines, [])
        return {name: (choices[name], answers[name]) for name in answers}, removed

    def check(self, results):
        wrong, reused = [], 0
        for name, (choices, answer) in results.items():
            self.assertEqual(len(choices), 1, f"{name} was decided more than once")
            choice, usage = choices[0], answer.json()["usage"]
            self.assertEqual(choice.get("instance"), answer.headers["x-infernex-endpoint"], choice)
            # A prompt of less than a block has nothing to ask the index for.
            has_keys = usage["prompt_tokens"] > BLOCK
            self.assertEqual((choice["key_mode"], choice["index_used"]), ("Token", has_keys), choice)
            self.assertEqual(choice["prompt_tokens"], usage["prompt_tokens"])
            self.assertEqual(choice["block_size"], BLOCK)
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            self.assertLessEqual(cached, (usage["prompt_tokens"] - 1) // BLOCK * BLOCK)
            reused += cached > 0
            if choice["overlap_blocks"] * BLOCK != cached:
                wrong.append((name, choice["instance"], choice["overlap_blocks"] * BLOCK, cached))
        print(f"predicted overlap equals cached_tokens: {len(results) - len(wrong)} of {len(results)}; "
              f"{reused} had cached tokens")
        self.assertEqual(wrong, [], "(request, engine, predicted, cached)")
        self.assertGreater(reused, len(results) // 4, "too little was shared for this to say anything")
        engines = {choices[0]["instance"] for choices, _ in results.values()}
        self.assertEqual(len(engines), 4, engines)

    def test_1000_requests_with_room_for_all(self):
        results, _ = self.run_requests(1000, {}, prompts=24, longest=400)
        self.check(results)

    def test_200_requests_with_evictions(self):
        results, removed = self.run_requests(200, {"total_blocks": 160, "max_model_len": 2400}, prompts=24, longest=600)
        print(f"{len(removed)} blocks were evicted")
        self.assertGreater(len(removed), 200)
        self.check(results)


if __name__ == "__main__":
    harness.main(deadline=280)
