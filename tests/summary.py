"""Sums up what ctest wrote: names what failed and what was skipped, and counts test cases.

A doctest executable and a Python unittest script count as the cases they report, any other test as one, unless its
output has a line `N passed, N failed, N skipped`. Usage: summary.py FOLDER STAGE... with STAGE.xml (JUnit, from ctest) and
STAGE.status (exit status of build and tests) in the folder, or STAGE.skipped (why a stage was left out). Exit status 1 if
anything failed.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as xml

DOCTEST = re.compile(r"\[doctest\] test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed\s*\|\s*(\d+) skipped")
COUNTED = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n+(?:OK|FAILED)(?: \((.*)\))?", re.MULTILINE)
SHOWN_LINES = 60


def unittest_counts(ran, words):
    """Of `Ran 5 tests` and `failures=1, skipped=2`."""
    named = {key: int(n) for key, n in re.findall(r"(\w+)=(\d+)", words)}
    failed = named.get("failures", 0) + named.get("errors", 0) + named.get("successes", 0)  # "unexpected successes=1"
    return max(int(ran) - failed - named.get("skipped", 0), 0), failed, named.get("skipped", 0)


def reason(output):
    """What a test says of what it skipped: its lines `skipped ...`, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = [line for line in lines if line.lower().startswith("skip")]
    return "; ".join(said or lines[-1:]) or "no reason given"


def count(case):
    """(passed, failed, skipped, output) of one ctest test."""
    output = case.findtext("system-out") or ""
    skip = case.find("skipped")
    # ctest calls a test whose executable is missing "not run" and skipped; only the return code is a skip.
    skip_code = skip is not None and "SKIP_RETURN_CODE" in skip.get("message", "")
    ok = skip_code or (case.get("status") == "run" and skip is None)
    if found := DOCTEST.findall(output):
        passed, failed, skipped = (int(n) for n in found[-1][1:])
    elif found := COUNTED.findall(output):
        passed, failed, skipped = (int(n) for n in found[-1])
    elif found := UNITTEST.findall(output):
        passed, failed, skipped = unittest_counts(*found[-1])
    else:
        passed, failed, skipped = int(ok and not skip_code), 0, int(skip_code)
    if skip_code and skipped == 0:
        passed, failed, skipped = 0, 0, 1
    if not ok and failed == 0:
        failed = 1  # it ended badly after its own count: a crash, a leak, a time-out
    return passed, failed, skipped, output


def summarise(folder, stages):
    passed = failed = skipped = 0
    for stage in stages:
        status = int((folder / f"{stage}.status").read_text())
        left_out = folder / f"{stage}.skipped"
        if left_out.exists():
            print(f"skipped {stage}: {left_out.read_text().strip()}")
            skipped += 1
            continue
        report = folder / f"{stage}.xml"
        if not report.exists():
            print(f"FAILED {stage}: it did not come to the tests")
            failed += 1
            continue
        stage_failed = 0
        slowest = []
        for case in xml.parse(report).getroot().iter("testcase"):
            name = f"{stage}/{case.get('name')}"
            p, f, s, output = count(case)
            passed, failed, skipped, stage_failed = passed + p, failed + f, skipped + s, stage_failed + f
            slowest.append((float(case.get("time") or 0), name))
            if f:
                print(f"FAILED {name}")
                print("\n".join("  | " + line for line in output.splitlines()[-SHOWN_LINES:]))
            if s:
                print(f"skipped {name}: {reason(output)}")
        if status != 0 and stage_failed == 0:
            print(f"FAILED {stage}: ended with status {status}; see {folder / (stage + '.log')}")
            failed += 1
        for seconds, name in sorted(slowest, reverse=True)[:3]:
            print(f"test: {seconds:7.1f} s {name}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(summarise(pathlib.Path(sys.argv[1]), sys.argv[2:]))
