# DDPRUN_PYTHON: a Python with torch (and safetensors), for the tests that compare with PyTorch. The scripts themselves say so,
# and skip, when theirs has neither. The variable, or the environment's, wins; then the one that ./run-tests installs.
include_guard()
set(python $ENV{DDPRUN_PYTHON})
if(NOT python)
  file(GLOB python LIST_DIRECTORIES false $ENV{HOME}/.cache/ddprun/torch-2.11.0/bin/python)
endif()
if(NOT python)
  set(python python3)
endif()
set(DDPRUN_PYTHON "${python}" CACHE FILEPATH "Python with torch, for the comparisons with PyTorch")
