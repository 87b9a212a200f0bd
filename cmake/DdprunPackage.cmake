# Packages that may be put anywhere, so that no path in them is absolute. DDPRUN_PACKAGE says which: `wheel`, for Python
# (pyproject.toml, python/train/pyproject.toml), whose prefix is an environment with Torch, UCX and NCCL; or `system`, for
# cpack: packages of Debian, and an archive. Included before all targets.
set(DDPRUN_PACKAGE "" CACHE STRING "Build for a package: wheel or system; empty: for this machine")

# The components of an installation are Debian's packages. A wheel has one for all that needs LibTorch.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME ddprun)
foreach(component ddprun libddprun1 ddprun-plugins libddprun-dev)
  set(ddprun_torch_${component} ${component})
  if(DDPRUN_PACKAGE STREQUAL wheel)
    set(ddprun_torch_${component} train)
  endif()
endforeach()
if(NOT DDPRUN_PACKAGE)
  return()
endif()
if(NOT DDPRUN_PACKAGE MATCHES "^(wheel|system)$")
  message(FATAL_ERROR "DDPRUN_PACKAGE is '${DDPRUN_PACKAGE}'; expected wheel or system")
endif()

# Where a wheel and an archive have what is not part of every Linux.
set(ddprun_bundled "$ORIGIN/../lib/ddprun/bundled" "$ORIGIN/../bundled")
set(CMAKE_INSTALL_RPATH ${ddprun_bundled})
# DT_RPATH, which also holds for what a bundled library needs; DT_RUNPATH does not.
add_link_options(-Wl,--disable-new-dtags)
if(DDPRUN_PACKAGE STREQUAL system)
  set(DDPRUN_UCX_DIR system CACHE STRING "")
  return()
endif()

# The folders of a package's libraries, from bin/, lib/ and libexec/, and from the plugins' folder. A wheel does not know
# the environment's Python.
function(ddprun_wheel_rpath out)
  set(folders "")
  foreach(package IN LISTS ARGN)
    foreach(minor RANGE 10 14)
      list(APPEND folders "$ORIGIN/../lib/python3.${minor}/site-packages/${package}"
                          "$ORIGIN/../../python3.${minor}/site-packages/${package}")
    endforeach()
  endforeach()
  set(${out} "${folders}" PARENT_SCOPE)
endfunction()
ddprun_wheel_rpath(ddprun_wheel_torch torch/lib)
ddprun_wheel_rpath(ddprun_wheel_ucx libucx/lib)
ddprun_wheel_rpath(ddprun_wheel_nccl nvidia/nccl/lib nvidia/cu13/lib)

# The folder of the wheel `package` in the environment that builds; "" if it is not there.
find_package(Python COMPONENTS Interpreter REQUIRED)
function(ddprun_wheel_folder out package)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import importlib.util
print(importlib.util.find_spec('${package}').submodule_search_locations[0])"
                  OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()
foreach(pair UCX=libucx NCCL=nvidia.nccl CUDA=nvidia.cu13)
  string(REPLACE "=" ";" pair ${pair})
  list(POP_FRONT pair name package)
  if(NOT DDPRUN_${name}_DIR)
    ddprun_wheel_folder(DDPRUN_${name}_DIR ${package})
  endif()
endforeach()
if(DDPRUN_TORCH AND NOT DDPRUN_TORCH_DIR)
  ddprun_wheel_folder(DDPRUN_TORCH_DIR torch)
endif()
