# Where the drawing of charts comes from. Sourced by setup.sh. It has an environment of its own: a user's is left alone.
charts_venv=${XDG_CACHE_HOME:-$HOME/.cache}/ddprun/charts-1.9.0

# need_charts: sets charts_python for CMake. DDPRUN_CHARTS_PYTHON is an order: a Python that has vl-convert-python.
need_charts() {
  charts_python=${DDPRUN_CHARTS_PYTHON:-}
  if [[ $charts_python ]]; then
    python_imports "$charts_python" vl_convert ||
      fail "charts: DDPRUN_CHARTS_PYTHON=$charts_python is no Python with vl-convert-python"
    return
  fi
  need_environment charts "vl-convert 1.9.0, 85 MB" "$charts_venv" "$setup/charts.txt"
  charts_python=$charts_venv/bin/python
}
