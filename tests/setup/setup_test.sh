#!/usr/bin/env bash
# setup_test.sh [PART OF A NAME]: tests the set-up with fake tools that record calls of apt, pip, CMake and ninja.
# shellcheck disable=SC2016,SC2317
set -uo pipefail
# shellcheck source=tests/setup/sandbox.sh
. "$(dirname "$0")/sandbox.sh"

test_when_all_is_there_nothing_is_installed_and_nothing_printed() {
  make_environment 'exit 1' torch-cpu.txt
  run ./ddprun first
  run ./ddprun --config 'a b.toml'
  expect status "$status" 0
  expect output "$output" "the program: --config a b.toml"
  expect errors "$errors" ""
  expect apt "$(calls_of apt-get)" ""
  expect pip "$(calls_of venv-python)" ""
  expect "configured once" "$(calls_of cmake | wc -l)" 1
}

test_missing_packages_are_installed_in_one_call_by_their_names() {
  make_environment 'exit 1' torch-cpu.txt
  sed -i -e '/^ninja-build$/d' -e '/^ccache$/d' "$box/installed"
  run ./ddprun
  expect status "$status" 0
  expect installs "$(calls_of apt-get | grep ' install ' | sed 's/.* install/install/')" \
    "install -y --no-install-recommends ccache ninja-build"
  expect_has line "$errors" "ddprun: set-up: installing 2 Debian packages (at most 120 MB): ccache ninja-build"
}

test_what_only_the_tests_need_is_installed_by_run_tests_alone() {
  make_environment 'exit 0' torch-cpu.txt torch-full.txt torch-tests.txt
  sed -i '/^chromium$/d' "$box/installed"
  run ./ddprun
  expect program "$(calls_of apt-get)" ""
  run ./run-tests
  expect tests "$(calls_of apt-get | grep -o ' install .*')" " install -y --no-install-recommends chromium"
}

test_a_package_that_is_only_configured_counts_as_missing() {
  make_environment 'exit 1' torch-cpu.txt
  fake dpkg-query 'sed -e "s/^/installed /" -e "s/installed ccache/config-files ccache/" "$BOX/installed"'
  run ./ddprun
  expect installs "$(calls_of apt-get | grep -o ' install .*')" " install -y --no-install-recommends ccache"
}

test_stale_package_lists_are_fetched_and_the_installation_tried_again() {
  make_environment 'exit 1' torch-cpu.txt
  sed -i '/^ccache$/d' "$box/installed"
  fake apt-get 'case "$*" in *update*) touch "$BOX/updated" ;; *) [ -e "$BOX/updated" ] ;; esac'
  run ./ddprun
  expect status "$status" 0
  expect "last two calls" "update install" \
    "$(calls_of apt-get | tail -n 2 | sed -E 's/.*(update|install).*/\1/' | paste -sd " ")"
}

test_without_root_sudo_runs_apt() {
  make_environment 'exit 1' torch-cpu.txt
  sed -i '/^ccache$/d' "$box/installed"
  fake id 'echo 1000'
  fake sudo 'shift; exec "$@"'
  run ./ddprun
  expect status "$status" 0
  expect_has sudo "$(calls_of sudo)" "apt-get -q -o DPkg::Lock::Timeout=300 -o DPkg::Options::=--force-confold install -y --no-install-recommends ccache"
}

test_without_root_and_sudo_one_line_says_what_to_run() {
  sed -i '/^ccache$/d' "$box/installed"
  fake id 'echo 1000'
  run ./ddprun
  expect status "$status" 1
  expect lines "$(wc -l <"$box/errors")" 1
  expect_has line "$errors" "as root: apt-get install -y --no-install-recommends ccache"
  expect apt "$(calls_of apt-get)" ""
}

test_a_system_without_dpkg_is_refused_in_words() {
  rm "$box/bin/dpkg-query"
  run ./ddprun
  expect status "$status" 1
  expect_has line "$errors" "this set-up knows Debian 12 and 13, and this is "
  expect_has packages "$errors" "install in its way what Debian calls g++ cmake ninja-build "
  expect lines "$(wc -l <"$box/errors")" 1
}

test_another_system_with_dpkg_is_named_before_debians_packages_are_tried() {
  make_environment 'exit 1' torch-cpu.txt
  printf 'ID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04 LTS"\n' >"$box/os-release"
  sed -i "s|^os_release=.*|os_release=$box/os-release|" "$clone/cmake/setup/setup.sh"
  run ./ddprun
  expect installs "$(calls_of apt-get)" ""
  sed -i '/^ccache$/d' "$box/installed"
  run ./ddprun
  expect_has line "$errors" "this set-up knows Debian 12 and 13; on Ubuntu 24.04 LTS it tries their package names"
}

test_what_a_user_can_mend_is_one_line() {
  local reason
  for reason in "the disk is full=OSError: [Errno 28] No space left on device" \
    "no connection to the packages=Err:1 Temporary failure resolving 'deb.debian.org'" \
    "/usr/bin/python3 has no venv; install python3-venv=ensurepip is not available"; do
    sed -i '/^ccache$/d' "$box/installed"
    fake apt-get "echo \"${reason#*=}\"; exit 100"
    run ./ddprun
    expect status "$status" 1
    expect lines "$(wc -l <"$box/errors")" 2
    expect_has reason "$(tail -n 1 "$box/errors")" ": failed (exit 100): ${reason%%=*}"
  done
}

test_a_cache_that_cannot_be_written_is_one_line() {
  variables+=("XDG_CACHE_HOME=/proc/no")
  run ./ddprun
  expect status "$status" 1
  expect errors "$errors" \
    "ddprun: set-up: cannot write /proc/no/ddprun/ucx-1.22.0; set XDG_CACHE_HOME to a folder for what the set-up downloads"
}

test_a_failed_step_names_itself_and_its_log() {
  make_environment 'exit 1' torch-cpu.txt
  fake cmake 'echo "CMake Error: the reason"; exit 7'
  run ./ddprun
  expect status "$status" 1
  expect_has "end of the log" "$errors" "CMake Error: the reason"
  expect "last line" "$(tail -n 1 "$box/errors")" \
    "ddprun: set-up: configuring build/release: failed (exit 7); log: $clone/build/setup/configure-release.log"
  expect_has log "$(<"$clone/build/setup/configure-release.log")" "the reason"
  run ./ddprun
  expect "tried again" "$(calls_of cmake | wc -l)" 2
}

test_a_failed_build_shows_its_errors_and_never_runs_the_program() {
  make_environment 'exit 1' torch-cpu.txt
  fake ninja 'printf "%s\n" "[0/1] Re-checking" "[1/9] Building a.o" "FAILED: b.o" "b.cpp:1: error: bad"; exit 1'
  run ./ddprun
  expect status "$status" 1
  expect output "$output" ""
  expect_has compiler "$errors" "b.cpp:1: error: bad"
  expect_has "last line" "$(tail -n 1 "$box/errors")" \
    "building build/release (log: $clone/build/setup/build-release.log): failed (exit 1)"
}

test_a_short_build_prints_one_line() {
  make_environment 'exit 1' torch-cpu.txt
  run ./ddprun
  fake ninja 'echo "[0/1] Re-checking globbed directories..."; echo "[1/2] Building a.o"; echo "[2/2] Linking"'
  run ./ddprun
  expect errors "$errors" "ddprun: set-up: building build/release (log: $clone/build/setup/build-release.log)"
}

test_a_long_build_says_how_far_it_is() {
  make_environment 'exit 1' torch-cpu.txt
  run ./ddprun
  variables=(DDPRUN_PROGRESS_EVERY=1)
  fake ninja 'echo "[1/4] Building a.o"; sleep 2.5; echo "[3/4] Building b.o"; sleep 1.5; echo "[4/4] Linking"'
  run ./ddprun
  expect_has "while ninja is silent" "$errors" "ddprun: set-up: building build/release: 1 of 4 files"
  expect_has "afterwards" "$errors" "ddprun: set-up: building build/release: 3 of 4 files"
}

test_on_a_terminal_a_build_counts_in_place() {
  make_environment 'exit 1' torch-cpu.txt
  run ./ddprun
  fake ninja 'echo "[1/4] Building a.o"; sleep 1.2; echo "[4/4] Linking"'
  run script --quiet --return --command ./ddprun /dev/null
  expect status "$status" 0
  expect_has "line" "$output" $'\rddprun: set-up: building build/release: 1 of 4 files\e[K'
}

test_the_time_left_is_guessed_from_the_files_done() {
  # shellcheck source=cmake/setup/progress.sh
  . "$source_dir/cmake/setup/progress.sh"
  expect "too early" "$(time_left 9 5 10)" ""
  expect minutes "$(time_left 120 20 60)" ", about 4 min left"
  expect "the end" "$(time_left 120 50 60)" ", less than a minute left"
}

test_a_long_step_says_how_long_it_has_taken() {
  make_environment 'exit 1' torch-cpu.txt
  variables=(DDPRUN_PROGRESS_EVERY=1)
  fake cmake "sleep 2.5; $fake_cmake"
  run ./ddprun
  expect_has "line" "$errors" "ddprun: set-up: configuring build/release: 2 s so far"
}

test_an_interrupt_ends_what_says_how_long_a_step_takes() {
  make_environment 'exit 1' torch-cpu.txt
  fake cmake 'kill -INT $PPID; sleep 2; exit 1'
  variables=(DDPRUN_PROGRESS_EVERY=1)
  run ./ddprun
  expect status "$status" 130
  expect_has "line" "$errors" "ddprun: set-up: interrupted"
  sleep 2.5
  expect "lines since" "$(<"$box/errors")" "$errors"
}

test_only_what_a_run_needs_is_built() {
  make_environment 'exit 1' torch-cpu.txt
  rm "$charts/ddprun-complete.txt"
  run ./ddprun --config exp.toml
  expect targets "$(calls_of ninja | sed 's/.* -j [0-9]* //')" runtime
  expect "no charts" "$(calls_of charts-python)" ""
}

test_a_tool_is_built_when_it_is_named() {
  make_environment 'exit 1' torch-cpu.txt
  rm "$charts/ddprun-complete.txt"
  run ./ddprun bench --ranks 2
  expect targets "$(calls_of ninja | sed 's/.* -j [0-9]* //')" "runtime ddprun-bench"
  expect "no charts" "$(calls_of charts-python)" ""
  expect output "$output" "the program: bench --ranks 2"
}

test_a_tool_that_draws_brings_the_charts() {
  make_environment 'exit 1' torch-cpu.txt
  run ./ddprun report runs/a
  expect targets "$(calls_of ninja | sed 's/.* -j [0-9]* //')" "runtime ddprun-report"
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_CHARTS_PYTHON=$charts/bin/python"
}

test_the_help_has_all_tools() {
  make_environment 'exit 1' torch-cpu.txt
  run ./ddprun --help
  expect targets "$(calls_of ninja | sed 's/.* -j [0-9]* //')" "runtime tools"
}

test_DDPRUN_TORCH_DIR_is_used() {
  make_torch "$box/mine" 2.8
  variables=(DDPRUN_TORCH_DIR="$box/mine")
  run ./ddprun
  expect status "$status" 0
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_TORCH_DIR=$box/mine"
}

test_DDPRUN_TORCH_DIR_without_torch_is_an_error() {
  make_environment 'exit 1' torch-cpu.txt
  variables=(DDPRUN_TORCH_DIR="$box/none")
  run ./ddprun
  expect status "$status" 1
  expect_has line "$errors" "DDPRUN_TORCH_DIR=$box/none has no include/ATen/ATen.h"
}

test_DDPRUN_TORCH_DIR_with_an_old_torch_is_an_error() {
  make_environment 'exit 1' torch-cpu.txt
  make_torch "$box/old" 2.6
  variables=(DDPRUN_TORCH_DIR="$box/old")
  run ./ddprun
  expect status "$status" 1
  expect_has line "$errors" "Torch 2.6.0 in $box/old (from DDPRUN_TORCH_DIR) is not used: ddprun needs 2.7 or later"
}

test_CMAKE_PREFIX_PATH_is_searched_as_a_list_and_as_torch_gives_it() {
  make_torch "$box/mine" 2.10
  mkdir -p "$box/mine/share/cmake"
  variables=(CMAKE_PREFIX_PATH="/nowhere:$box/mine/share/cmake")
  run ./ddprun
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_TORCH_DIR=$box/mine"
}

test_the_active_pythons_torch_is_used() {
  make_torch "$box/site/torch" 2.7
  fake python3 "echo '$box/site/torch'"
  run ./ddprun
  expect status "$status" 0
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_TORCH_DIR=$box/site/torch"
}

test_an_old_torch_of_the_active_python_is_passed_over_with_a_line() {
  make_torch "$box/site/torch" 1.13
  fake python3 "echo '$box/site/torch'"
  make_environment '[[ $* == *incomplete.py* ]] && exit 0'
  run ./ddprun
  expect status "$status" 0
  expect_has line "$errors" \
    "Torch 1.13.0 in $box/site/torch (from python3 on the PATH) is not used: ddprun needs 2.7 or later"
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_TORCH_DIR=$venv/lib/python3.11/site-packages/torch"
}

test_another_torch_configures_again() {
  make_environment 'exit 1' torch-cpu.txt
  make_torch "$box/mine" 2.8
  run ./ddprun
  variables=(DDPRUN_TORCH_DIR="$box/mine")
  run ./ddprun
  expect_has cmake "$(calls_of cmake | tail -n 1)" "-DDDPRUN_TORCH_DIR=$box/mine"
}

test_a_whole_environment_without_a_stamp_is_recognised_and_stamped() {
  make_environment '[[ $* == *incomplete.py* ]] || exit 1'
  run ./ddprun
  expect status "$status" 0
  expect "nothing installed" "$(calls_of venv-python | grep -c ' install ')" 0
  expect stamp "$(<"$venv/ddprun-complete.txt")" "$(entries "$clone/cmake/setup/torch-cpu.txt" | sort)"
  run ./ddprun
  expect "checked once" "$(calls_of venv-python | wc -l)" 1
}

test_without_a_driver_only_what_is_incomplete_of_the_cpu_list_is_installed() {
  [[ -e /proc/driver/nvidia/version ]] && { echo "skipped: $test: this machine has an NVIDIA driver"; return; }
  make_environment 'case "$*" in
    *incomplete.py*) [ -e "$BOX/done" ] || echo torch==2.11.0 ;;
    *install*) touch "$BOX/done" ;;
  esac'
  run ./ddprun
  expect status "$status" 0
  expect pip "$(calls_of venv-python | grep -o ' install .*')" \
    " install --no-deps --no-cache-dir --no-compile --progress-bar off torch==2.11.0"
  expect stamp "$(<"$venv/ddprun-complete.txt")" "$(entries "$clone/cmake/setup/torch-cpu.txt" | sort)"
}

test_with_a_driver_the_full_list_is_asked_for() {
  fake nvidia-smi ''
  make_environment '[[ $* == *incomplete.py* ]] || exit 1' torch-cpu.txt
  run ./ddprun
  expect_has pins "$(calls_of venv-python)" "nvidia-nccl-cu13==2.28.9"
  expect_has stamp "$(<"$venv/ddprun-complete.txt")" "nvidia-nccl-cu13==2.28.9"
}

test_an_installation_that_leaves_gaps_fails_and_leaves_no_stamp() {
  make_environment 'case "$*" in *incomplete.py*) echo torch==2.11.0 ;; esac'
  run ./ddprun
  expect status "$status" 1
  expect_has line "$errors" "still incomplete after pip: torch==2.11.0; log: $clone/build/setup/torch.log"
  expect "no stamp" "$(compgen -G "$venv/*complete*")" ""
}

test_UCX_has_an_environment_of_its_own_that_CMake_is_told() {
  make_torch "$box/mine" 2.8
  variables=(DDPRUN_TORCH_DIR="$box/mine")
  rm "$ucx/ddprun-complete.txt"
  fake ucx-python 'case "$*" in
    *incomplete.py*) [ -e "$BOX/done" ] || echo libucx-cu13==1.22.0 ;;
    *install*) touch "$BOX/done" ;;
  esac'
  run ./ddprun
  expect status "$status" 0
  expect pip "$(calls_of ucx-python | grep -o ' install .*')" \
    " install --no-deps --no-cache-dir --no-compile --progress-bar off libucx-cu13==1.22.0"
  expect stamp "$(<"$ucx/ddprun-complete.txt")" "libucx-cu13==1.22.0"
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_UCX_DIR=$ucx/lib/python3.11/site-packages/libucx"
}

test_DDPRUN_UCX_DIR_is_used_and_nothing_installed() {
  make_environment 'exit 1' torch-cpu.txt
  rm -r "$ucx"
  mkdir -p "$box/mine/include/ucp/api" "$box/mine/lib"
  touch "$box/mine/include/ucp/api/ucp.h" "$box/mine/lib/libucp.so.0"
  variables=(DDPRUN_UCX_DIR="$box/mine")
  run ./ddprun
  expect status "$status" 0
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_UCX_DIR=$box/mine"
  expect pip "$(calls_of ucx-python)" ""
}

test_NCCL_that_Torch_has_brought_is_used_and_the_rest_installed() {
  make_torch "$box/site/torch" 2.8
  mkdir -p "$box"/site/nvidia/{nccl,cu13}/{include,lib}
  touch "$box"/site/nvidia/nccl/{include/nccl.h,lib/libnccl.so.2} \
    "$box"/site/nvidia/cu13/{include/cuda_runtime.h,lib/libcudart.so.13}
  variables=(DDPRUN_TORCH_DIR="$box/site/torch")
  rm "$nccl/ddprun-complete.txt"
  fake nccl-python 'case "$*" in
    *incomplete.py*) [ -e "$BOX/done" ] || printf "%s\n" "${@:2}" ;;
    *install*) touch "$BOX/done" ;;
  esac'
  run ./ddprun
  expect status "$status" 0
  expect pip "$(calls_of nccl-python | grep -o ' install .*')" \
    " install --no-deps --no-cache-dir --no-compile --progress-bar off nvidia-cuda-cccl==13.0.85 nvidia-cuda-crt==13.0.88"
  expect stamp "$(<"$nccl/ddprun-complete.txt")" $'nvidia-cuda-cccl==13.0.85\nnvidia-cuda-crt==13.0.88'
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_NCCL_DIR=$box/site/nvidia/nccl"
  expect_has cmake "$(calls_of cmake)" \
    "-DDDPRUN_CUDA_DIR=$box/site/nvidia/cu13;$nccl/lib/python3.11/site-packages/nvidia/cu13"
}

test_NCCL_that_Torch_has_not_brought_is_installed() {
  make_torch "$box/mine" 2.8
  variables=(DDPRUN_TORCH_DIR="$box/mine")
  rm "$nccl/ddprun-complete.txt"
  fake nccl-python 'case "$*" in
    *incomplete.py*) [ -e "$BOX/done" ] || printf "%s\n" "${@:2}" ;;
    *install*) touch "$BOX/done" ;;
  esac'
  run ./ddprun
  expect status "$status" 0
  expect pip "$(calls_of nccl-python | grep -o ' off .*')" \
    " off nvidia-cuda-cccl==13.0.85 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-nccl-cu13==2.28.9"
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_NCCL_DIR=$nccl/lib/python3.11/site-packages/nvidia/nccl"
}

test_DDPRUN_NCCL_DIR_and_DDPRUN_CUDA_DIR_are_used_and_nothing_installed() {
  make_environment 'exit 1' torch-cpu.txt
  rm -r "$nccl"
  variables=(DDPRUN_NCCL_DIR="$box/mine" DDPRUN_CUDA_DIR="$box/cuda")
  run ./ddprun
  expect status "$status" 0
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_NCCL_DIR=$box/mine"
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_CUDA_DIR=$box/cuda"
}

test_DDPRUN_UCX_DIR_system_is_left_to_CMake() {
  make_environment 'exit 1' torch-cpu.txt
  variables=(DDPRUN_UCX_DIR=system)
  run ./ddprun
  expect status "$status" 0
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_UCX_DIR=system"
}

test_DDPRUN_UCX_DIR_without_UCX_is_an_error() {
  make_environment 'exit 1' torch-cpu.txt
  variables=(DDPRUN_UCX_DIR="$box/none")
  run ./ddprun
  expect status "$status" 1
  expect_has line "$errors" "DDPRUN_UCX_DIR=$box/none has no include/ucp/api/ucp.h"
}

test_charts_have_an_environment_of_their_own_that_CMake_is_told() {
  make_environment 'exit 1' torch-cpu.txt
  rm "$charts/ddprun-complete.txt"
  fake charts-python 'case "$*" in
    *incomplete.py*) [ -e "$BOX/done" ] || echo vl-convert-python==1.9.0.post1 ;;
    *install*) touch "$BOX/done" ;;
  esac'
  run ./ddprun report
  expect status "$status" 0
  expect pip "$(calls_of charts-python | grep -o ' install .*')" \
    " install --no-deps --no-cache-dir --no-compile --progress-bar off vl-convert-python==1.9.0.post1"
  expect stamp "$(<"$charts/ddprun-complete.txt")" "vl-convert-python==1.9.0.post1"
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_CHARTS_PYTHON=$charts/bin/python"
}

test_DDPRUN_CHARTS_PYTHON_is_used_and_nothing_installed() {
  make_environment 'exit 1' torch-cpu.txt
  rm -r "$charts"
  fake charts-python ''
  variables=(DDPRUN_CHARTS_PYTHON="$box/bin/charts-python")
  run ./ddprun report
  expect status "$status" 0
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_CHARTS_PYTHON=$box/bin/charts-python"
  expect pip "$(calls_of charts-python | grep -c ' install ')" 0
}

test_DDPRUN_CHARTS_PYTHON_without_the_package_is_an_error() {
  make_environment 'exit 1' torch-cpu.txt
  fake charts-python 'exit 1'
  variables=(DDPRUN_CHARTS_PYTHON="$box/bin/charts-python")
  run ./ddprun report
  expect status "$status" 1
  expect_has line "$errors" "DDPRUN_CHARTS_PYTHON=$box/bin/charts-python is no Python with vl-convert-python"
}

test_the_site_is_for_the_tests_alone_and_is_installed_once() {
  make_environment 'exit 0' torch-cpu.txt torch-full.txt torch-tests.txt
  rm "$site/ddprun-complete.txt"
  fake site-python 'case "$*" in
    *incomplete.py*) [ -e "$BOX/done" ] || echo mkdocs==1.6.1 ;;
    *install*) touch "$BOX/done" ;;
  esac'
  run ./ddprun report
  expect program "$(calls_of site-python)" ""
  run ./run-tests
  run ./run-tests
  expect pip "$(calls_of site-python | grep -o ' install .*')" \
    " install --no-deps --no-cache-dir --no-compile --progress-bar off mkdocs==1.6.1"
}

test_the_lock_is_not_inherited_by_the_program() {
  make_environment 'exit 1' torch-cpu.txt
  printf '#!/bin/bash\nflock --nonblock "%s" bash -c "echo free"\n' "$clone/build/setup/lock" \
    >"$clone/build/release/bin/ddprun"
  run ./ddprun
  expect output "$output" free
}

test_two_processes_do_not_set_up_one_clone_at_a_time() {
  make_environment 'exit 1' torch-cpu.txt
  fake ninja '[ -e "$BOX/busy" ] && echo "both at once" >>"$BOX/clash"; touch "$BOX/busy"; sleep 0.3; rm "$BOX/busy"'
  (run ./ddprun) &
  (run ./ddprun) &
  wait
  expect "builds" "$(calls_of ninja | wc -l)" 2
  expect clashes "$(cat "$box/clash" 2>/dev/null)" ""
}

test_run_tests_refuses_a_preset_that_there_is_not() {
  variables=(DDPRUN_PRESETS="release asna")
  run ./run-tests
  expect status "$status" 1
  expect_has line "$errors" "'asna': expected some of: release debug asan tsan"
}

test_run_tests_passes_its_arguments_to_each_ctest_and_ends_with_the_sum() {
  make_environment 'exit 0' torch-cpu.txt torch-full.txt torch-tests.txt
  ln -sf "$(command -v python3)" "$box/bin/python3"
  fake ctest 'while [ "$1" != --output-junit ]; do shift; done
    echo "<testsuite><testcase name=\"one\" status=\"run\"/></testsuite>" >"$2"'
  run ./run-tests -R config
  expect status "$status" 0
  for preset in release asan tsan torch-2.7 torch-2.15; do
    expect "ctest $preset" "$(calls_of ctest | grep -c -- "--preset ${preset%-*} .*/build/$preset/results.xml.* -R config$")" 1
  done
  expect "last line" "$(tail -n 1 "$box/output")" "5 passed, 0 failed, 0 skipped"
}

test_run_tests_fails_when_ctest_gives_no_results() {
  make_environment 'exit 0' torch-cpu.txt torch-full.txt torch-tests.txt
  ln -sf "$(command -v python3)" "$box/bin/python3"
  fake ctest 'exit 8'
  variables=(DDPRUN_PRESETS=release)
  run ./run-tests
  expect status "$status" 1
  expect_has "skipped presets" "$errors" "not tested, as DDPRUN_PRESETS has no asan"
  expect "last line" "$(tail -n 1 "$box/output")" "0 passed, 1 failed, 0 skipped"
}

test_run_tests_refuses_a_Torch_that_is_too_old_or_unknown() {
  local version
  for version in 2.6 2.16 2 2.7.1 ''; do
    run ./run-tests --torch "$version"
    expect status "$status" 1
    expect line "$errors" "ddprun: set-up: --torch '$version': expected one of: 2.7 2.8 2.9 2.10 2.11 2.12 2.13 2.14 2.15"
  done
  run ./run-tests -R ddp --torch 2.7
  expect status "$status" 1
  expect line "$errors" "ddprun: set-up: --torch VERSION comes once, before the arguments of ctest"
  expect "nothing set up" "$(<"$box/calls")" ""
}

test_a_Torch_of_another_version_has_an_environment_of_its_own() {
  local folder=$box/home/.cache/ddprun/torch-2.7.1
  rm "$folder/ddprun-complete.txt"
  fake version-python 'case "$*" in
    *incomplete.py*) [ -e "$BOX/done" ] || printf "%s\n" "${@:2}" ;;
    *install*) touch "$BOX/done" ;;
  esac'
  run ./run-tests --torch 2.7
  run ./run-tests --torch 2.7
  expect pip "$(calls_of version-python | grep -o ' off .*')" \
    " off nvidia-cuda-cupti-cu12==12.6.80 nvidia-cuda-runtime-cu12==12.6.77 torch==2.7.1"
  expect "configured once" "$(calls_of cmake | wc -l)" 1
  expect "folder" "$(ls "$clone/build")" $'release\nsetup\ntorch-2.7'
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_TORCH_DIR=$folder/lib/python3.11/site-packages/torch"
}

test_with_another_Torch_only_what_depends_on_Torch_is_built_and_tested() {
  rm "$charts/ddprun-complete.txt" "$site/ddprun-complete.txt"
  ln -sf "$(command -v python3)" "$box/bin/python3"
  fake ctest 'while [ "$1" != --output-junit ]; do shift; done
    echo "<testsuite><testcase name=\"one\" status=\"fail\"/></testsuite>" >"$2"'
  run ./run-tests --torch 2.15 -R ddp
  expect status "$status" 1
  expect targets "$(calls_of ninja | sed 's/.* -j [0-9]* //')" torch_versions
  expect_has "no comparisons" "$errors" "build/torch-2.15: no comparisons with PyTorch"
  expect ctest "$(calls_of ctest)" "ctest --preset torch --output-junit $clone/build/torch-2.15/results.xml -L ^torch_versions$ -LE ^torch$ -R ddp"
  expect "other environments" "$(calls_of charts-python; calls_of site-python; calls_of venv-python)" ""
  expect_has failure "$output" "torch-2.15: one: failed"
}

test_with_another_Torch_a_Python_that_has_it_compares() {
  fake same-python '[[ $* == *partition* ]] && echo 2.7.1; exit 0'
  variables=(DDPRUN_PYTHON="$box/bin/same-python")
  run ./run-tests --torch 2.7
  expect targets "$(calls_of ninja | sed 's/.* -j [0-9]* //')" "torch_versions torch_comparisons"
  expect_has cmake "$(calls_of cmake)" "-DDDPRUN_PYTHON=$box/bin/same-python"
  run ./run-tests --torch 2.15
  expect "other version" "$(calls_of ninja | tail -n 1 | sed 's/.* -j [0-9]* //')" torch_versions
}

test_DDPRUN_PRESETS_names_a_Torch_for_which_few_tests_run() {
  fake ctest ''
  variables=(DDPRUN_PRESETS="torch-2.15 torch-2.7")
  run ./run-tests
  expect targets "$(calls_of ninja | sed 's/.* -j [0-9]* //' | paste -sd ' ')" "torch_quick torch_quick"
  expect ctest "$(calls_of ctest | grep -c -- ' -L ^torch_quick$$')" 2
  expect_has "not tested" "$errors" "not tested, as DDPRUN_PRESETS has no release: build/release"
}

test_the_versions_of_Torch_are_in_order_and_in_SUPPORT() {
  local version versions
  # shellcheck source=cmake/setup/torch.sh
  versions=$(setup=$source_dir/cmake/setup HOME=$box; . "$source_dir/cmake/setup/torch.sh"; torch_versions)
  expect "oldest" "${versions%% *}" "$(sed -n 's/^torch_oldest=//p' "$source_dir/cmake/setup/torch.sh")"
  for version in $versions; do
    expect "rows of $version" "$(grep -c "^| $version" "$source_dir/SUPPORT.md")" 1
  done
}

test_the_scripts_are_sound_bash() {
  local script
  for script in ddprun run-tests cmake/setup/{setup.sh,progress.sh,torch.sh,ucx.sh,nccl.sh,charts.sh,site.sh,pins.sh,find-torch} tests/fresh/run; do
    expect "$script" "$(bash -n "$source_dir/$script" 2>&1)" ""
  done
}

failures=0
for test in $(declare -F | awk '$3 ~ /^test_/ { print $3 }'); do
  [[ $# -eq 0 || $test == *"$1"* ]] || continue
  variables=() failed=''
  make_sandbox
  $test
  remove_sandbox
  if [[ $failed ]]; then
    echo "FAILED $test"
    ((failures++))
  else
    echo "ok $test"
  fi
done
exit $((failures > 0))
