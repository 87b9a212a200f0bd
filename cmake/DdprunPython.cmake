# External programs and data of the tests. DDPRUN_PYTHON: a Python with torch (and safetensors), for comparisons with
# PyTorch. If it lacks them, the scripts report that and skip. Order: the CMake variable, the environment variable, the
# Python that ./run-tests installs.
include_guard()
set(python $ENV{DDPRUN_PYTHON})
if(NOT python)
  set(cache $ENV{XDG_CACHE_HOME})
  if(NOT cache)
    set(cache $ENV{HOME}/.cache)
  endif()
  file(GLOB python LIST_DIRECTORIES false ${cache}/ddprun/torch-2.11.0/bin/python)
endif()
if(NOT python)
  set(python python3)
endif()
set(DDPRUN_PYTHON "${python}" CACHE FILEPATH "Python with torch, for the comparisons with PyTorch")

# The folder with mnist/ and more; tests that need it skip with a message if it is missing.
set(test_data $ENV{DDPRUN_TEST_DATA})
if(NOT test_data AND IS_DIRECTORY ${PROJECT_SOURCE_DIR}/../shared/data)
  get_filename_component(test_data ${PROJECT_SOURCE_DIR}/../shared/data ABSOLUTE)
endif()
set(DDPRUN_TEST_DATA "${test_data}" CACHE PATH "Folder of real data for tests: mnist/*.gz")

# The torchrun of the Python installation that has this Torch, and MPICH's mpiexec, which is installed next to it.
# ./run-tests --torch says itself which torchrun works.
if(DDPRUN_TORCH)
  if(NOT DDPRUN_TORCHRUN)
    cmake_path(ABSOLUTE_PATH DDPRUN_TORCH_DIR OUTPUT_VARIABLE DDPRUN_TORCHRUN)
    cmake_path(APPEND DDPRUN_TORCHRUN ../../../../bin/torchrun)
    cmake_path(NORMAL_PATH DDPRUN_TORCHRUN)
  endif()
  cmake_path(REPLACE_FILENAME DDPRUN_TORCHRUN mpiexec.hydra OUTPUT_VARIABLE DDPRUN_MPICH)
endif()
