# shellcheck shell=bash disable=SC2034
# To be sourced with the build folder in $build. Installs the build and moves the prefix. Sets box, a temporary folder that
# is removed at the end, and prefix. Everything must be found through the prefix, and not through the environment.
box=$(mktemp -d "${TMPDIR:-/tmp}/ddprun-prefix-XXXXXX")
trap 'rm -rf "$box"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
unset DDPRUN_PLUGIN_PATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH
export XDG_DATA_HOME=$box/data  # the user's own plugins
# ccache returns what an earlier run has compiled. CCACHE_BASEDIR makes paths relative, because $box has another name in
# each run.
export PATH=/usr/lib/ccache:$PATH CCACHE_BASEDIR=$box CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=include_file_ctime

cmake --install "$build" --prefix "$box/first" >"$box/install.log"
prefix=$box/moved
mv "$box/first" "$prefix"
