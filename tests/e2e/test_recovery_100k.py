"""With 100,000 blocks cached, the index is exact again within seconds of a restart of indexer, agent or nats-server."""

import unittest

import big_cache
import harness

# Far above what it takes; a wrong way (say, a snapshot asked again and again) takes longer.
SLOWEST = 30.0


class Recovery(unittest.TestCase):
    def test_restarts(self):
        with big_cache.filled_stack() as (stack, view, keys):
            self.assertGreaterEqual(keys, big_cache.BLOCKS)
            for name in big_cache.RESTARTED:
                with self.subTest(restarted=name):
                    seconds = big_cache.measure(stack, view, name)
                    print(f"{name}: index of {keys} blocks exact again after {seconds['index']:.2f} s, "
                          f"chat after {seconds['chat']:.2f} s")
                    self.assertLess(seconds["index"], SLOWEST)


if __name__ == "__main__":
    harness.main(deadline=280)
