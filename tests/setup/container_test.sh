#!/usr/bin/env bash
# container_test.sh WHEELS TORCH UCX: builds the image of examples/clusters/Dockerfile without Docker: the test reads the
# steps from the file and runs them in a bare Debian 12 (a chroot). Then it trains and measures in the container as an
# administrator restricts it: no root, no capabilities, a root file system that is read-only, and Docker's /dev/shm of
# 64 MiB. TORCH and UCX are the folders of these packages; pip finds them installed instead of downloading them. The bare
# Debian (300 MB) is kept in ~/.cache/ddprun/bare-bookworm.
set -euo pipefail
wheels=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
bare=${XDG_CACHE_HOME:-$HOME/.cache}/ddprun/bare-bookworm
# shellcheck source=tests/setup/bare_system.sh
. "$root/tests/setup/bare_system.sh" debootstrap ip
for package in "$2" "$3"; do [[ -d $package ]] || skip "Torch or UCX is no folder: \"$package\""; done
torch=$(readlink -f "$2/..") ucx=$(readlink -f "$3/..")
box=$(mktemp -d /var/tmp/ddprun-container-XXXXXX)
trap 'rm -rf --one-file-system "$box"' EXIT
"$root/tests/fresh/run" --bare "$bare" 2>"$box/log" || skip "no bare Debian 12: $(tail -n 1 "$box/log")"
system=$box/system context=$box/context
cp -aT --reflink=auto "$bare" "$system"
mkdir -p "$context" "$system/mnt/torch" "$system/mnt/ucx"
ln -s "$root/cmake" "$context/cmake"
ln -s "$(readlink -f "$wheels")" "$context/wheels"

# inside FLAGS COMMAND...: in namespaces of its own, so that its processes and mounts end with it. FLAGS: of unshare.
inside() {
  local flags=$1
  shift
  # shellcheck disable=SC2016,SC2086
  unshare --mount --pid --ipc --uts $flags --fork --kill-child -- bash -euo pipefail -c '
    system=$1 torch=$2 ucx=$3 flags=$4; shift 4
    mount --bind "$system" "$system"
    mount --bind "$torch" "$system/mnt/torch"
    mount --bind "$ucx" "$system/mnt/ucx"
    mount -t proc proc "$system/proc"
    mount -t sysfs sysfs "$system/sys" -o ro
    mount -t tmpfs dev "$system/dev" -o mode=755
    ln -s /proc/self/fd "$system/dev/fd"
    for node in null zero full random urandom; do
      : >"$system/dev/$node"
      mount --bind "/dev/$node" "$system/dev/$node"
    done
    mkdir -m 1777 "$system/dev/shm"
    mount -t tmpfs shm "$system/dev/shm" -o size=64m,nosuid,nodev,noexec
    if [[ $flags ]]; then
      ip link set lo up
      mount --bind "$system/results" "$system/results"
      mount -t tmpfs tmp "$system/tmp" -o nosuid,nodev,noexec
      mount -o remount,bind,ro "$system"
    fi
    exec chroot "$system" "$@"' inside "$system" "$torch" "$ucx" "$flags" "$@" </dev/null
}

# Gives the environment what the lists of the Dockerfile name, as pip would install it.
link_packages() {
  python3 - "$(echo "$system"/opt/ddprun/lib/python3*/site-packages)" \
    "$root/cmake/setup/torch-cpu.txt" "$torch" /mnt/torch "$root/cmake/setup/ucx.txt" "$ucx" /mnt/ucx <<'PYTHON'
import csv, pathlib, re, sys
packages, *rest = sys.argv[1:]
for pins, source, mounted in zip(*[iter(rest)] * 3):
    for name, version in re.findall(r"^([\w-]+)==(\S+)", pathlib.Path(pins).read_text(), re.M):
        record = pathlib.Path(source, f"{name.replace('-', '_')}-{version}.dist-info/RECORD")
        if not record.exists():
            print(f"skipped: {source} has no {name} {version}, which is in the image")
            sys.exit(77)
        for file, *_ in csv.reader(record.open()):
            link = pathlib.Path(packages, file)
            if ".." not in file and "__pycache__" not in file:
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(pathlib.Path(mounted, file))
PYTHON
  linked=true
}

# As `docker build`: environment, user, folder and command are what the container is started with.
environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin) user=0:0 folder=/ command=() linked=''
mapfile -t given < <(env | grep -iE '^(https?|no)_proxy=' || true)  # docker build passes them too
expand() { env -i "${environment[@]}" sh -c "printf '%s' \"$1\""; }
build() {
  local instruction rest paths
  while read -r instruction rest; do
    case $instruction in
      FROM) [[ $rest == debian:12 ]] || fail "FROM $rest: this test starts from debian:12" ;;
      RUN)
        inside '' env -i -C "$folder" "${environment[@]}" "${given[@]}" sh -c "$rest" >"$box/log" 2>&1 ||
          fail "RUN $rest: $(tail -n 20 "$box/log")" ;;
      COPY)
        # shellcheck disable=SC2206
        paths=($rest)
        mkdir -p "$system${paths[-1]}"
        # shellcheck disable=SC2068
        (cd "$context" && cp -rL ${paths[@]::${#paths[@]}-1} "$system${paths[-1]}") ;;
      ARG | ENV) environment+=("$(expand "$rest")") ;;
      USER) user=$rest ;;
      WORKDIR) folder=$rest && mkdir -p "$system$folder" ;;
      ENTRYPOINT) mapfile -t command < <(python3 -c 'import json, sys; print(*json.loads(sys.argv[1]), sep="\n")' "$rest") ;;
      *) fail "this test does not know the instruction $instruction" ;;
    esac
    if [[ ! $linked && -e $system/opt/ddprun/bin/pip ]]; then link_packages; fi
  done < <(sed '/^#/d' "$root/examples/clusters/Dockerfile" | sed -z 's/\\\n//g')
}

# run USER COMMAND...: as `docker run --read-only --network none --cap-drop ALL --security-opt no-new-privileges`, with
# /tmp and /results writable.
run() {
  local user=$1 home
  shift
  home=$(awk -F: -v user="${user%:*}" '$3 == user { print $6 }' "$system/etc/passwd")
  inside --net setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --no-new-privs --inh-caps=-all \
    --bounding-set=-all env -i -C "$folder" "${environment[@]}" "HOME=${home:-/}" OMP_NUM_THREADS=1 "$@"
}
# runs TEXT COMMAND...: it succeeds as the image's user, and prints TEXT.
runs() {
  local text=$1
  shift
  run "$user" "$@" >"$box/out" 2>&1 || fail "$*: exit code $?: $(<"$box/out")"
  grep -q -- "$text" "$box/out" || fail "$*: no \"$text\": $(<"$box/out")"
}

inside '' env -i "${environment[@]}" "${given[@]}" apt-get -o APT::Update::Error-Mode=any update >"$box/log" 2>&1 ||
  skip "Debian's mirror cannot be used: $(tail -n 1 "$box/log")"
rm -rf "$system"/var/lib/apt/lists/*  # as in Docker's debian:12
build
# The experiment of the Kubernetes manifest, but short, and the script of its pods.
manifest=$root/examples/clusters/kubernetes.yaml
mkdir "$system/config"
sed -n '/exp.toml: |/,/^---/s/^    //p' "$manifest" | sed 's/^epochs = .*/steps = 40/' >"$system/config/exp.toml"
sed -n '/^ *- |$/,/^ *env:$/s/^ \{14\}//p' "$manifest" >"$system/config/pod.sh"
echo "127.0.0.1 ddprun-0.ddprun" >>"$system/etc/hosts"

runs "^torch 2\." "${command[@]}" --version
runs "^0 errors" "${command[@]}" doctor
for backend in gloo shm ucx; do
  runs "^communication  *$backend " "${command[@]}" --config /config/exp.toml -n 2 --set "comm.backend=$backend"
done
runs=("$system"/results/runs/*)
((${#runs[@]} == 3)) || fail "run folders: ${runs[*]}"
# More than /dev/shm has.
runs " shm .* 0$" "${command[@]}" bench --ranks 2 --backend shm --sizes 96M --rounds 1 -n 1 -w 0
runs " ucx .* 0$" "${command[@]}" bench --ranks 2 --backend gloo,ucx --sizes 4K --rounds 1 -n 1 -w 0
! run "$user" env UCX_TLS=posix,self "${command[@]}" bench --ranks 2 --backend ucx --sizes 4K >"$box/out" 2>&1 ||
  fail "UCX needs more than 64 MiB in /dev/shm, and got it"
grep -q "needs a /dev/shm of 128 MiB: docker run --shm-size=128m" "$box/out" || fail "too small a /dev/shm: $(<"$box/out")"
# A user whom the image does not know, as with `docker run --user`: the home is then /.
of_image=$user user=4321:4321
runs "^communication  *shm " "${command[@]}" --config /config/exp.toml -n 2 --set comm.backend=shm \
  --set experiment.output=/tmp/runs
user=$of_image
# shellcheck disable=SC2016
runs "^world size  *6$" env DDPRUN_SECRET="$(printf '5%.0s' {1..64})" sh -c '
  for index in 0 1 2; do JOB_COMPLETION_INDEX=$index sh /config/pod.sh & pods="$pods $!"; done
  for pod in $pods; do wait "$pod" || exit; done'
echo "passed: the image, and a training in it with each backend, without root and with a /dev/shm of 64 MiB"
