"""make bench-recovery: seconds until chat works and until the index is exact again, after SIGKILL of a process, with
100,000 blocks cached on 4 engines."""

from support import report  # before the modules of tests/e2e: it finds them
import big_cache

ROUNDS = 3
HEADERS = ["restarted", "round", "blocks", "process_s", "chat_s", "index_exact_s"]


def main():
    rows = []
    with big_cache.filled_stack() as (stack, view, _):
        for turn in range(1, ROUNDS + 1):
            for name in big_cache.RESTARTED:
                blocks = view.keys()
                seconds = big_cache.measure(stack, view, name)
                rows.append([name, turn, blocks] + [round(seconds[phase], 3) for phase in ("process", "chat", "index")])
    report.publish("recovery", HEADERS, rows, block_size=big_cache.BLOCK_SIZE)


if __name__ == "__main__":
    main()
