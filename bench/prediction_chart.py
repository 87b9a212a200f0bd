"""The chart of predict.py: efficiency over hosts, predicted and measured, a panel for each backend."""

import json
import os
import subprocess

PYTHON = "DDPRUN_CHARTS_PYTHON"


def why_not():
    """Why no chart can be drawn, or None."""
    return None if os.environ.get(PYTHON) else f"--png needs {PYTHON}, a Python with vl-convert-python (CONTRIBUTING.md)"


def specification(title, rows):
    """In Vega-Lite (https://vega.github.io/vega-lite). Lines are the prediction, points are measured."""
    values = [{"backend": row["backend"], "algorithm": row["algorithm"], "hosts": row["hosts"],
               **{name: 100 * row["efficiency"] * row["predicted"] / row[name]
                  for name in ("predicted", "measured")}} for row in rows]
    x = {"field": "hosts", "type": "quantitative", "title": "hosts", "axis": {"tickMinStep": 1, "format": "d"},
         "scale": {"zero": False}}
    color = {"field": "algorithm", "type": "nominal", "title": None, "legend": {"symbolOpacity": 1}}

    def layer(mark, field):
        y = {"field": field, "type": "quantitative", "title": "efficiency (%)", "scale": {"zero": True}}
        return {"mark": mark, "encoding": {"x": x, "y": y, "color": color}}
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "data": {"values": values},
            "title": {"text": title, "subtitle": "lines: predicted; points: measured"},
            "facet": {"column": {"field": "backend", "type": "nominal", "title": None}},
            "spec": {"width": 320, "height": 240, "layer": [
                layer({"type": "line"}, "predicted"),
                layer({"type": "point", "filled": True, "size": 70}, "measured")]}}


def draw(path, title, rows):
    """As PNG."""
    draw = "import json, sys, vl_convert; sys.stdout.buffer.write(vl_convert.vegalite_to_png(json.load(sys.stdin)))"
    spec = {**specification(title, rows), "config": {"font": "sans-serif"}}
    with open(path, "wb") as file:
        subprocess.run([os.environ[PYTHON], "-c", draw], input=json.dumps(spec).encode(), stdout=file,
                       check=True)
