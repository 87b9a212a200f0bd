# What builds and checks the wheels (python/build-wheels). Sourced by setup.sh. It has an environment of its own.
wheels_venv=${XDG_CACHE_HOME:-$HOME/.cache}/ddprun/wheels-1.1.2

need_wheels() { need_environment wheels "scikit-build-core 1.1.2 and twine, 60 MB" "$wheels_venv" "$setup/wheels.txt"; }
