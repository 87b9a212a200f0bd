"""summary.py PRESET=RESULTS.xml...: ctest's results of several presets, summed up.

Lists what failed and what was skipped, with the reasons, and ends with "N passed, N failed, N skipped". A test is one
ctest entry. A program that skips some of its cases, and says so in lines that open with "skipped:", counts as passed
once, and each of those lines as skipped once: no skip may look like a pass. Exits 1 if anything failed, or if nothing
was run.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

SKIPPED_LINE = "skipped:"
# How doctest, unittest, tests/faults/run and the sanitizers begin the lines of a failure.
FAILURE = re.compile(r"FAILED  |FAIL: |.*: (FATAL )?ERROR: |.*(ERROR|WARNING): \w+Sanitizer|.*: runtime error: ")


def output_of(case):
    return [line.strip() for line in (case.findtext("system-out") or "").splitlines() if line.strip()]


def partial_skips(case):
    return [line[len(SKIPPED_LINE):].strip() for line in output_of(case) if line.startswith(SKIPPED_LINE)]


def reason_of_failure(case):
    """ctest gives none. The time shows a deadline that passed; what the test said are at most four lines from its
    first failure on, else its last line."""
    output = output_of(case)
    first = next((i for i, line in enumerate(output) if FAILURE.match(line)), None)
    said = output[-1:] if first is None else output[first:first + 4]
    return ": ".join([f"failed after {float(case.get('time', 0)):.1f} s"] + [" | ".join(said)] * bool(said))


def read(preset, path):
    """Gives three lists of lines: passed, failed, skipped."""
    passed, failed, skipped = [], [], []
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        return passed, [f"{preset}: no results: {error}"], skipped
    for case in cases:
        name, status = f"{preset}: {case.get('name')}", case.get("status")
        reasons = partial_skips(case)
        # ctest marks as skipped both SKIP_RETURN_CODE and what it could not start.
        mark = case.find("skipped")
        if status == "disabled" or (mark is not None and mark.get("message").startswith("SKIP_")):
            skipped += [f"{name}: {reason}" for reason in reasons or output_of(case)[-1:] or ["no reason given"]]
        elif mark is not None:
            failed.append(f"{name}: {mark.get('message')}")
        elif status == "run":
            passed.append(name)
            skipped += [f"{name}: {reason}" for reason in reasons]
        else:
            failed.append(f"{name}: {reason_of_failure(case)}")
    return passed, failed, skipped


def main(arguments):
    passed, failed, skipped = [], [], []
    for argument in arguments:
        preset, path = argument.split("=", 1)
        for total, part in zip((passed, failed, skipped), read(preset, path)):
            total += part
    for title, lines in (("skipped", skipped), ("failed", failed)):
        if lines:
            print(f"\n{title}:")
        for line in lines:
            print(f"  {line}")
    nothing = not (passed or failed or skipped)
    if nothing:
        print("\nno test was run")
    print(f"\n{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or nothing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
