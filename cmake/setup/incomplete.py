"""incomplete.py PIN...: prints each name==version that this Python's environment does not hold whole.

Whole: pip has finished with it (INSTALLER is the last but one file that pip writes, RECORD the last), and every file
of RECORD is there in its recorded size. What pip left half-done under that very version loses its metadata, because pip
would otherwise take it for installed.
"""
import importlib.metadata
import pathlib
import shutil
import sys


def is_whole(distribution):
    if distribution.read_text("INSTALLER") is None or not distribution.files:
        return False
    for file in distribution.files:
        path = pathlib.Path(distribution.locate_file(file))
        if path.suffix == ".pyc":
            continue
        if not path.exists() or (file.size is not None and path.stat().st_size != file.size):
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
