"""What ddprun uses of the Python package vl-convert-python: Vega for the page, and charts as SVG and PNG.

    charts.py bundle FILE                writes Vega, Vega-Lite and vega-embed as one script
    charts.py draw PAGE FOLDER KIND...   draws the charts of a page of ddprun, each as FOLDER/<number>-<title>.KIND (png,
                                         svg), and prints the paths
"""
import json
import os
import re
import sys

import vl_convert

WIDTH = 720  # pixels
SCALE = 2  # of a PNG


def standalone(chart, theme):
    """A chart of a page as a separate drawing: with its width, title and note."""
    note = chart["usermeta"]["note"]
    title = {"text": chart["description"], **({"subtitle": note} if note else {})}
    chart = {key: value for key, value in chart.items() if key != "autosize"}
    return {**chart, "title": title, "width": WIDTH, "padding": 16, "config": theme}


def drawn(spec, kind):
    if kind == "svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    return vl_convert.vegalite_to_png(spec, scale=SCALE)


def write(files):
    """Writes {path: content}: all of them or, if one cannot be written, none."""
    asides = {path: f"{path}.tmp-{os.getpid()}" for path in files}
    try:
        for path, content in files.items():
            if os.path.isdir(path):
                raise IsADirectoryError(f"{path} is a folder")
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(asides[path], "wb") as file:
                file.write(content)
        for path, aside in asides.items():
            os.replace(aside, path)
    finally:
        for aside in asides.values():
            if os.path.exists(aside):
                os.remove(aside)


def draw(page, folder, kinds):
    with open(page, encoding="utf-8") as file:
        found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', file.read(), re.DOTALL)
    if not found:
        sys.exit(f"{page} is not a page of ddprun")
    content = json.loads(found[1])
    files = {}
    for number, chart in enumerate(content["charts"], 1):
        name = re.sub("[^a-z0-9]+", "-", f"{number:02}-{chart['description'].lower()}")[:60].rstrip("-")
        for kind in kinds:
            files[f"{folder}/{name}.{kind}"] = drawn(standalone(chart, content["light"]), kind)
    write(files)
    print(*files, sep="\n")


if len(sys.argv) > 4 and sys.argv[1] == "draw":
    draw(sys.argv[2], sys.argv[3], sys.argv[4:])
elif len(sys.argv) == 3 and sys.argv[1] == "bundle":
    write({sys.argv[2]: vl_convert.javascript_bundle().encode()})
else:
    sys.exit(__doc__)
