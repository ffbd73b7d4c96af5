"""What every benchmark driver in Python shares: the table for people, the JSON for machines, the machine's name."""

import datetime
import json
import math
import os
import pathlib
import sys

SOURCE = pathlib.Path(os.environ.get("INFERNEX_SOURCE") or pathlib.Path(__file__).resolve().parents[3])
sys.path.insert(0, str(SOURCE / "tests" / "e2e"))


def machine():
    cpu = "unknown CPU"
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    return f"{cpu}, {len(os.sched_getaffinity(0))} cores"


def percentile(values, share):
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def table(headers, rows):
    cells = [headers] + [[f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def publish(name, headers, rows, **facts):
    """Prints the table and writes build/bench/NAME.json: one object a row, keyed by the headers."""
    print(table(headers, rows))
    folder = SOURCE / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    report = {"name": name, "machine": machine(), "command": f"make bench-{name}",
              "when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), **facts,
              "rows": [dict(zip(headers, row)) for row in rows]}
    (folder / f"{name}.json").write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to build/bench/{name}.json ({report['machine']})")
