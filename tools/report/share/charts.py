"""What ddprun uses of the Python package vl-convert-python: Vega for the page, and charts as SVG and PNG.

    charts.py bundle FILE    writes Vega, Vega-Lite and vega-embed as one script
    charts.py render FILE    draws what the file asks for: {"config": ..., "scale": 2, "charts": [{"path": ..., "spec":
                             ...}]}, each chart as its path's ending says, .svg or .png
"""
import json
import os
import sys

import vl_convert


def draw(chart, request):
    spec = {**chart["spec"], "config": request["config"]}
    if chart["path"].endswith(".svg"):
        return vl_convert.vegalite_to_svg(spec).encode()
    return vl_convert.vegalite_to_png(spec, scale=request["scale"])


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


def render(path):
    with open(path) as file:
        request = json.load(file)
    write({chart["path"]: draw(chart, request) for chart in request["charts"]})


if len(sys.argv) == 3 and sys.argv[1] == "render":
    render(sys.argv[2])
elif len(sys.argv) == 3 and sys.argv[1] == "bundle":
    write({sys.argv[2]: vl_convert.javascript_bundle().encode()})
else:
    sys.exit(__doc__)
