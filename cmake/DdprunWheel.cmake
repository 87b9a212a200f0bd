# Installs for Python wheels (pyproject.toml, python/train/pyproject.toml): the prefix is then that of an environment, and
# pip moves the files there. So no run path is absolute: Torch, UCX and NCCL are those of the environment, and what else
# is not part of every Linux is in lib/ddprun/bundled. Included before all targets.
option(DDPRUN_WHEEL "Install for a Python wheel" OFF)
if(NOT DDPRUN_WHEEL)
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
set(ddprun_wheel_bundled "$ORIGIN/../lib/ddprun/bundled" "$ORIGIN/../bundled")
set(CMAKE_INSTALL_RPATH ${ddprun_wheel_bundled})
# DT_RPATH, which also holds for what a bundled library needs; DT_RUNPATH does not.
add_link_options(-Wl,--disable-new-dtags)

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
