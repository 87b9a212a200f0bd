# The files that draw reports, in share/ddprun of the build folder and of the prefix: the templates of pages and charts,
# and Vega from the Python package vl-convert-python. DDPRUN_CHARTS_PYTHON is a Python with that package; in a clone,
# ./ddprun installs one. Without it, a message says so, and `ddprun report` reports what is missing.
set(ddprun_charts_python "$ENV{DDPRUN_CHARTS_PYTHON}")
if(NOT ddprun_charts_python)
  set(ddprun_charts_cache $ENV{XDG_CACHE_HOME})
  if(NOT ddprun_charts_cache)
    set(ddprun_charts_cache $ENV{HOME}/.cache)
  endif()
  file(GLOB ddprun_charts_python LIST_DIRECTORIES false ${ddprun_charts_cache}/ddprun/charts-1.9.0/bin/python)
endif()
set(DDPRUN_CHARTS_PYTHON "${ddprun_charts_python}" CACHE FILEPATH "Python with vl-convert-python, which brings Vega")

set(ddprun_share ${PROJECT_BINARY_DIR}/share/ddprun)
set(ddprun_share_files axes.json bars.json frame.json histogram.json lines.json page.css page.html page.js
                       shares.json table.html theme.json timeline.json)
foreach(file ${ddprun_share_files})
  configure_file(${PROJECT_SOURCE_DIR}/tools/report/share/${file} ${ddprun_share}/${file} COPYONLY)
endforeach()
list(TRANSFORM ddprun_share_files PREPEND ${ddprun_share}/)
if(DDPRUN_CHARTS_PYTHON)
  add_custom_command(OUTPUT ${ddprun_share}/vega.js DEPENDS ${PROJECT_SOURCE_DIR}/tools/report/charts.py
                     COMMAND ${DDPRUN_CHARTS_PYTHON} ${PROJECT_SOURCE_DIR}/tools/report/charts.py ${ddprun_share}/vega.js VERBATIM)
  list(APPEND ddprun_share_files ${ddprun_share}/vega.js)
elseif(DDPRUN_PACKAGE)
  message(FATAL_ERROR "Charts: no Python with vl-convert-python; `./ddprun report --help` installs one, or set "
                      "DDPRUN_CHARTS_PYTHON")
else()
  message(STATUS "Charts: no Python with vl-convert-python, so `ddprun report` cannot draw; ./ddprun installs one, or "
                 "set DDPRUN_CHARTS_PYTHON")
endif()
add_custom_target(ddprun_charts DEPENDS ${ddprun_share_files})
