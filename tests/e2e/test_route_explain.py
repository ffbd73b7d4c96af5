"""`infernex route explain` against the real stack, and offline from what it saved; the router follows the file of its
policy."""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import client
import harness
from client import metric
from harness import BINARY, MODEL, Stack, wait_until
from kv import KvView, await_fleet, words

BLOCK = 16

PICKER = """\
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
- name: cached
  type: overlap-scorer
- type: {load}
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: cached
    weight: 3
  - pluginRef: {load}
    weight: {weight}
"""

RANDOM = """\
apiVersion: llm-d.ai/v1
kind: EndpointPickerConfig
plugins: [{type: random-picker}]
schedulingProfiles: [{plugins: [{pluginRef: random-picker}]}]
"""


def infernex(*words_, code=0):
    """Standard output of a command (standard error, if it is to fail)."""
    done = subprocess.run([BINARY, *words_], capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout if code == 0 else done.stderr


def replace(file, text):
    """As editors and config maps do it: never half of it is there."""
    following = file.with_suffix(".next")
    following.write_text(text)
    os.replace(following, file)


class RouteExplain(unittest.TestCase):
    def test_explains_what_the_router_would_do(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            picker = folder / "picker.yaml"
            picker.write_text(PICKER.format(load="waiting-scorer", weight=2))
            config = {
                "simulator": {"speed": 100, "block_size": BLOCK},
                "router": {"policy": {"config": str(picker)}, "prediction": {"enabled": False}},
            }
            with Stack(engines=3, config=config) as stack:
                view = KvView(stack)
                view.await_exact()
                self.explain(stack, view, folder)
                self.follow(stack, view, folder, picker)

    def explain(self, stack, view, folder):
        prompt = words(100, random.Random(3))
        self.prompt = folder / "prompt"
        self.prompt.write_text(prompt)
        body = {"model": MODEL, "prompt": prompt, "max_tokens": 1}
        self.assertEqual(client.call("POST", view.engines["engine-1"] + "/v1/completions", body).status, 200)
        view.settle("engine-1")
        self.ask = ["route", "explain", "--nats", stack.nats_url, "--url", view.indexer]
        router = stack.admin_url("router")
        decided = lambda: metric(router, "infernex_router_decisions_total", strategy="picker.yaml")
        before = decided()

        saved = folder / "saved.json"
        text = infernex(*self.ask, "--prompt-file", str(self.prompt), "--save", str(saved))
        self.assertIn("3 engines of the model are known, 3 passed all filters", text)
        self.assertIn("choice: engine-1\n", text)
        self.assertIn("policy picker.yaml, 100 tokens in blocks of 16, KV index used", text)
        for engine in stack.engine_names():
            self.assertRegex(text, rf"(?m)^  {engine} .* passed$")
        # The same offline, without anybody to ask.
        self.assertEqual(infernex("route", "explain", "--snapshot", str(saved)), text)

        (choice,) = json.loads(saved.read_text())["body"]["choices"]
        self.assertEqual((choice["engines"], choice["considered"], len(choice["candidates"])), (3, 3, 3))
        best = choice["candidates"][0]
        self.assertEqual((best["instance"], best["overlap_blocks"]), ("engine-1", 6))
        for candidate in choice["candidates"]:
            self.assertEqual([s["scorer"] for s in candidate["scores"]], ["cached", "waiting-scorer"])
            self.assertEqual([s["weight"] for s in candidate["scores"]], [3, 2])
            self.assertAlmostEqual(candidate["total"], sum(s["value"] * s["weight"] for s in candidate["scores"]))

        # By its token ids it is the same prompt.
        tokens = client.call("POST", view.engines["engine-0"] + "/tokenize", {"model": MODEL, "prompt": prompt}).json()
        ids = folder / "ids.json"
        ids.write_text(json.dumps(tokens["tokens"]))
        by_ids = json.loads(infernex(*self.ask, "--token-ids", str(ids), "--json"))["body"]["choices"][0]
        self.assertEqual((by_ids["instance"], by_ids["overlap_blocks"]), ("engine-1", 6))
        # Nothing was decided by any of it.
        self.assertEqual(decided(), before)
        self.assertIn("name a prompt", infernex(*self.ask, code=1))
        self.assertIn("not_found", infernex("route", "explain", "--snapshot", str(folder / "none"), code=1))

    def follow(self, stack, view, folder, picker):
        router = stack.admin_url("router")
        reloads = lambda result: metric(router, "infernex_router_config_reloads_total", result=result)
        scorers = lambda: [
            (s["scorer"], s["weight"])
            for s in json.loads(infernex(*self.ask, "--prompt-file", str(self.prompt), "--json"))["body"]["choices"][0][
                "candidates"
            ][0]["scores"]
        ]
        replace(picker, PICKER.format(load="in-flight-scorer", weight=1))
        wait_until(lambda: reloads("applied") == 1, 10, "the new policy")
        self.assertEqual(scorers(), [("cached", 3), ("in-flight-scorer", 1)])

        replace(picker, PICKER.format(load="in-flihgt-scorer", weight=1))
        wait_until(lambda: reloads("refused") == 1, 10, "the wrong policy's refusal")
        self.assertEqual(scorers(), [("cached", 3), ("in-flight-scorer", 1)])
        where = f"{picker}:6:9: plugins[1].type: no plugin of type"
        self.assertIn(where, stack.log())
        self.assertIn(where, infernex("config", "check", str(stack.config_file), code=1))


class EmbeddedRouter(unittest.TestCase):
    def test_its_threads_follow_the_policy_too(self):
        with tempfile.TemporaryDirectory() as name:
            picker = pathlib.Path(name) / "picker.yaml"
            picker.write_text(PICKER.format(load="waiting-scorer", weight=2))
            config = {"simulator": {"speed": 100}, "gateway": {"router": "embedded", "policy": {"config": str(picker)}}}
            with Stack(engines=3, config=config) as stack:
                await_fleet(stack)
                decision = lambda: client.chat(stack.url, max_tokens=1).headers["x-infernex-decision"]
                reloads = lambda result: metric(stack.url, "infernex_gateway_config_reloads_total", result=result)
                self.assertNotIn("chosen of", decision())
                replace(picker, RANDOM)
                wait_until(lambda: reloads("applied") == 1, 10, "the new policy")
                # Whichever thread takes it.
                for _ in range(8):
                    self.assertRegex(decision(), r"^picker\.yaml: engine-\d, chosen of [123]")
                replace(picker, RANDOM.replace("random", "rnadom"))
                wait_until(lambda: reloads("refused") == 1, 10, "the wrong policy's refusal")
                self.assertRegex(decision(), r"^picker\.yaml: engine-\d, chosen of [123]")


if __name__ == "__main__":
    harness.main(deadline=240)
