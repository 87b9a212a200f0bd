"""What ddprun takes from the Python package vl-convert-python: Vega for the page, and charts as SVG and PNG.

    charts.py bundle FILE    writes Vega, Vega-Lite and vega-embed as one script
    charts.py render         reads {"config": ..., "scale": 2, "charts": [{"path": ..., "spec": ...}]} and writes each
                             chart as its path's ending says, .svg or .png; none before all of them are drawn
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


def write(path, data):
    aside = f"{path}.tmp-{os.getpid()}"
    try:
        with open(aside, "wb") as file:
            file.write(data)
        os.replace(aside, path)
    except OSError:
        if os.path.exists(aside):
            os.remove(aside)
        raise


def render():
    request = json.load(sys.stdin)
    for path, data in [(chart["path"], draw(chart, request)) for chart in request["charts"]]:
        write(path, data)


if sys.argv[1:] == ["render"]:
    render()
elif len(sys.argv) == 3 and sys.argv[1] == "bundle":
    write(sys.argv[2], vl_convert.javascript_bundle().encode())
else:
    sys.exit(__doc__)
