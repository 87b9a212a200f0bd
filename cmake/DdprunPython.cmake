# What the tests take from outside. DDPRUN_PYTHON: a Python with torch (and safetensors), for the tests that compare with PyTorch. The scripts themselves say so,
# and skip, when theirs has neither. The variable, or the environment's, wins; then the one that ./run-tests installs.
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

# The folder that holds mnist/ and more; the tests that need it say so where it is not there.
set(test_data $ENV{DDPRUN_TEST_DATA})
if(NOT test_data AND IS_DIRECTORY ${PROJECT_SOURCE_DIR}/../shared/data)
  get_filename_component(test_data ${PROJECT_SOURCE_DIR}/../shared/data ABSOLUTE)
endif()
set(DDPRUN_TEST_DATA "${test_data}" CACHE PATH "Folder of real data for tests: mnist/*.gz")
