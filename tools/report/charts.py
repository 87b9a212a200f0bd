"""Writes Vega, Vega-Lite and vega-embed, from the Python package vl-convert-python, as one script.

    charts.py FILE
"""
import os
import sys

import vl_convert

path = sys.argv[1]
with open(f"{path}.tmp", "w", encoding="utf-8") as file:
    file.write(vl_convert.javascript_bundle())
os.replace(f"{path}.tmp", path)
