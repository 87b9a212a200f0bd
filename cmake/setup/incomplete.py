"""incomplete.py PIN...: prints each name==version that this Python's environment does not hold whole.

Whole: pip has finished with it (INSTALLER is the last but one file that pip writes, RECORD the last), and every file
of RECORD is there in its recorded size. What pip left half-done under that very version loses its metadata, because pip
would otherwise take it for installed.
"""
import csv
import importlib.metadata
import pathlib
import shutil
import sys


def is_whole(distribution):
    record = distribution.read_text("RECORD")  # distribution.files has only files that exist, since Python 3.12
    if distribution.read_text("INSTALLER") is None or not record:
        return False
    for file, _, size in csv.reader(record.splitlines()):
        path = pathlib.Path(distribution.locate_file(file))
        if path.suffix == ".pyc":
            continue
        if not path.exists() or (size and path.stat().st_size != int(size)):
            return False
    return True


for pin in sys.argv[1:]:
    name, version = pin.split("==")
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        print(pin)
        continue
    if distribution.version != version:
        print(pin)
    elif not is_whole(distribution):
        shutil.rmtree(distribution._path)
        print(pin)
