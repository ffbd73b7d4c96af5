"""The indexer's HTTP API against the real stack: /match_sort agrees with what engines report, engines are registered
and leave again, a router asks it over HTTP, and `infernex kv` shows it."""

import json
import os
import random
import subprocess
import tempfile
import unittest

import client
import harness
from harness import BINARY, MODEL, Stack, end_process, free_port, start_process, wait_until
from kv import KvView, words

BLOCK = 16
CONFIG = {"simulator": {"speed": 100, "block_size": BLOCK}}


def run_kv(*words_):
    """Output of `infernex kv ...`."""
    done = subprocess.run([BINARY, "kv", *words_], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


class IndexerApi(unittest.TestCase):
    def best(self, indexer, question):
        answer = client.call("POST", indexer + "/match_sort", {"model": MODEL, **question})
        self.assertEqual(answer.status, 200, answer)
        rows = answer.json()["instances"]
        order = [-row["matched_tokens"] for row in rows]
        self.assertEqual(order, sorted(order))
        return answer.json(), rows[0]

    def test_match_sort_agrees_with_cached_tokens(self):
        rng = random.Random(7)
        with Stack(engines=3, config=CONFIG) as stack:
            view = KvView(stack)
            view.await_exact()
            indexer = view.indexer
            shared = words(300, rng)
            checked = 0
            for number in range(12):
                prompt = shared[: len(shared) * rng.randint(1, 4) // 4] + words(rng.randint(1, 60), rng)
                body = {"model": MODEL, "prompt": prompt, "max_tokens": 1}
                if number % 2:
                    body = client.chat_body(prompt, max_tokens=1)
                path = "/v1/chat/completions" if number % 2 else "/v1/completions"
                form = {key: body[key] for key in ("prompt", "messages") if key in body}
                answer, best = self.best(indexer, form)
                self.assertEqual(answer["tokens_by"], "render")
                self.assertEqual(len(answer["instances"]), 3)
                # Sent to the best one: it reports as cached what the index said, to the token.
                reply = client.call("POST", best["url"] + path, body)
                usage = reply.json()["usage"]
                self.assertEqual(usage["prompt_tokens"], answer["prompt_tokens"])
                self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], best["matched_tokens"], (number, best))
                self.assertEqual(best["device_tokens"], best["matched_tokens"])
                self.assertTrue(best["exact"])
                checked += best["matched_tokens"] > 0
                # The same by token ids, once the index has the events; and by block keys.
                rendered = client.call("POST", best["url"] + "/tokenize", {"model": MODEL, **form}).json()
                ask = lambda: self.best(indexer, {"token_ids": rendered["tokens"], "explain": True})
                whole = (usage["prompt_tokens"] - 1) // BLOCK * BLOCK
                wait_until(lambda: ask()[1]["matched_tokens"] == whole, 10, "every block of the prompt in the index")
                again, same = ask()
                self.assertEqual(again["tokens_by"], "given")
                _, by_keys = self.best(indexer, {"block_keys": again["block_keys"]})
                self.assertEqual(by_keys["matched_tokens"], same["matched_tokens"])
            self.assertGreater(checked, 4)

            whole = {"model": MODEL, "prompt": shared + words(5, rng), "max_tokens": 1}
            self.assertEqual(client.call("POST", view.engines["engine-1"] + "/v1/completions", whole).status, 200)
            asked = {"prompt": whole["prompt"]}
            wait_until(lambda: self.best(indexer, asked)[1]["matched_tokens"] == 304, 10, "the whole prompt")
            view.settle_all()

            # Every key is in the dump, once.
            dump = client.get(f"{indexer}/dump?model={MODEL.replace('/', '%2F')}").json()
            self.assertTrue(dump["complete"])
            rows = view.index()
            for one in dump["instances"]:
                self.assertEqual(len(set(one["keys"])), rows[one["instance"]]["keys"])
            digest = 0
            for key in dump["instances"][0]["keys"]:
                digest ^= int(key, 16)
            self.assertEqual(digest, int(rows[dump["instances"][0]["instance"]]["digest"], 16))

            self.show(stack, indexer, shared)

    def show(self, stack, indexer, prompt):
        table = run_kv("top", "--once", "--url", indexer)
        self.assertIn("MEMORY", table)
        for name in stack.engine_names():
            self.assertRegex(table, rf"{name} +exact +Ready")
        self.assertEqual(len(json.loads(run_kv("top", "--once", "--json", "--url", indexer))["models"]), 1)
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(prompt)
            file.flush()
            text = run_kv("explain", "--prompt-file", file.name, "--url", indexer)
            self.assertIn("300 tokens (render), 18 blocks of 16", text)
            self.assertRegex(text, r"18/18")
            self.assertIn("the last 12 tokens fill no block", text)
            answer = json.loads(run_kv("explain", "--json", "--prompt-file", file.name, "--url", indexer))
            self.assertEqual(len(answer["block_keys"]), 18)
            missing = subprocess.run([BINARY, "kv", "explain", "--prompt-file", file.name + ".none", "--url", indexer],
                                     capture_output=True, text=True, timeout=30)
            self.assertEqual(missing.returncode, 1)
            self.assertIn("not_found", missing.stderr)

    def test_an_engine_nobody_knows_is_registered_queried_and_unregistered(self):
        with Stack(engines=1, config=CONFIG) as stack:
            view = KvView(stack)
            view.await_exact()
            indexer = view.indexer
            ports = {name: free_port() for name in ("http", "events", "replay")}
            endpoint = lambda name: f"tcp://127.0.0.1:{ports[name]}"
            engine = start_process([BINARY, "engine-sim", "--config", str(stack.config_file), "--instance", "guest",
                                    "--port", str(ports["http"]), "--kv-events", endpoint("events"), "--kv-replay",
                                    endpoint("replay")], stderr=subprocess.DEVNULL)
            try:
                url = f"http://127.0.0.1:{ports['http']}"

                def answers():
                    try:
                        return client.get(url + "/health").status == 200
                    except OSError:
                        return False

                wait_until(answers, 20, "the guest engine")
                body = {"model": MODEL, "prompt": words(100, random.Random(3)), "max_tokens": 1}
                self.assertEqual(client.call("POST", url + "/v1/completions", body).status, 200)
                tokens = client.call("POST", url + "/tokenize", {"model": MODEL, "prompt": body["prompt"]}).json()
                what = {"endpoint": endpoint("events"), "replay_endpoint": endpoint("replay"), "type": "vLLM",
                        "modelname": MODEL, "tenant_id": "default", "instance_id": "guest", "block_size": BLOCK,
                        "dp_rank": 0}
                done = client.call("POST", indexer + "/register", what)
                self.assertEqual(done.json(), {"status": "registered successfully", "instance_id": "guest"})

                def held():
                    query = {"model": MODEL, "token_ids": tokens["tokens"], "block_size": BLOCK}
                    found = client.call("POST", indexer + "/query", query).json()
                    return found["default"].get("guest", {}).get("longest_matched", 0)

                # What it had stored before it was registered comes by replay.
                wait_until(lambda: held() >= 96, 20, "the guest's blocks")
                # The same by our own keys of its blocks.
                ask = {"model": MODEL, "token_ids": tokens["tokens"], "explain": True}
                keys = client.call("POST", indexer + "/match_sort", ask).json()["block_keys"]
                found = client.call("POST", indexer + "/query_by_hash", {"model": MODEL, "seq_hashes": keys})
                self.assertEqual(found.json()["default"]["guest"]["longest_matched"], len(keys) * BLOCK)
                # Its URL is not known, so nothing is routed to it.
                for number in range(8):
                    answer = client.chat(stack.url, f"hello {number}", max_tokens=1)
                    self.assertEqual(answer.headers["x-infernex-endpoint"], "engine-0")
                gone = client.call("POST", indexer + "/unregister", {"instance_id": "guest"})
                self.assertEqual(gone.json()["removed_instances"], ["guest|default|0"])
                wait_until(lambda: held() == 0, 20, "the end of the guest's blocks")
                self.assertEqual(client.call("POST", indexer + "/unregister", {"instance_id": "guest"}).status, 404)
            finally:
                end_process(engine)

    def test_a_router_that_asks_over_http(self):
        port = free_port()
        config = {**CONFIG, "router": {"kvmanager": {"url": "127.0.0.1", "port": port, "timeout": 1}}}
        with Stack(engines=2, config=config) as stack:
            # The indexer that `up` runs has a port of its own; this one is the KV manager.
            manager = start_process([BINARY, "indexer", "--nats", stack.nats_url, "--admin-port", str(port)],
                                    stderr=subprocess.DEVNULL)
            try:
                def ready():
                    try:
                        return client.get(f"http://127.0.0.1:{port}/readyz").status == 200
                    except OSError:
                        return False

                wait_until(ready, 20, "the second indexer")
                KvView(stack).await_exact()
                prompt = "the same long beginning " * 40
                first = client.chat(stack.url, prompt + "first", max_tokens=1)

                def cached():
                    answer = client.chat(stack.url, prompt + "again", max_tokens=1)
                    return answer if answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"] > 0 else None

                again = wait_until(cached, 10, "a cache hit")
                self.assertEqual(again.headers["x-infernex-endpoint"], first.headers["x-infernex-endpoint"])
                self.assertGreater(client.metric(f"http://127.0.0.1:{port}", "infernex_indexer_lookup_seconds_count"), 0)
            finally:
                end_process(manager)
            # Without it requests are placed by load, and go on.
            self.assertEqual(client.chat(stack.url, prompt + "once more", max_tokens=1).status, 200)


if __name__ == "__main__":
    harness.main(deadline=280)
