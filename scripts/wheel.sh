#!/usr/bin/env bash
# Builds wheels that need no Rust, into build/wheels.
#
#   scripts/wheel.sh [x86_64|aarch64]    the package and the gateway, for Linux with glibc 2.28 or newer;
#                    --try               then installs and uses it
#   scripts/wheel.sh macos               the package alone, for Macs of both kinds
#
# All are linked by zig, which knows older glibcs, other processors and other systems. Those for
# macOS have been built so, and not been run on a Mac.
set -euo pipefail
cd "$(dirname "$0")/.."

what=x86_64 attempt=
for word in "$@"; do
  case $word in
    x86_64 | aarch64 | macos) what=$word ;;
    --try) attempt=yes ;;
    *) echo "scripts/wheel.sh: $word: allowed are x86_64, aarch64, macos and --try" >&2 && exit 2 ;;
  esac
done
if [[ $attempt && $what != "$(uname -m)" ]]; then
  echo "scripts/wheel.sh: --try: a wheel for $what does not run on $(uname -m)" >&2
  exit 2
fi
target=${CARGO_TARGET_DIR:-target}
python=.venv/bin/python
export PATH="$PWD/.venv/bin:$PATH"
# Where it was built is nobody's business.
export RUSTFLAGS="--remap-path-prefix=$PWD=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"

# What is compiled for: Rust's standard library for it has to be there.
need() {
  [[ -d $(rustc --print target-libdir --target "$1") ]] || rustup target add "$1" || {
    echo "scripts/wheel.sh: no standard library of Rust for $1; install it: rustup target add $1" >&2
    exit 1
  }
}

if [[ $what == macos ]]; then
  for triple in aarch64-apple-darwin x86_64-apple-darwin; do
    need $triple
    $python -m maturin build --release --locked --quiet --zig --target $triple --out build/wheels
  done
  ls -l build/wheels/*macosx*.whl
  exit 0
fi

need "$what-unknown-linux-gnu"
cargo zigbuild --release --locked --quiet --target "$what-unknown-linux-gnu.2.28" --bin bluewater-gateway
$python -m maturin build --release --locked --quiet --zig \
  --target "$what-unknown-linux-gnu" --compatibility manylinux_2_28 --out build/wheels
wheel=$(ls -t build/wheels/*"linux_2_28_$what"*.whl | head -1)
# The gateway beside the command `bluewater`.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
$python -m wheel unpack --dest "$work" "$wheel"
scripts=$(echo "$work"/bluewater-*)/$(basename "$work"/bluewater-*).data/scripts
mkdir -p "$scripts"
cp "$target/$what-unknown-linux-gnu/release/bluewater-gateway" "$scripts"
$python -m wheel pack --dest-dir build/wheels "$work"/bluewater-*
$python -m auditwheel show "$wheel"
ls -l "$wheel"

[[ $attempt ]] || exit 0
# As somebody has it who has neither Rust nor this folder.
bare=$work/bare
python3 -m venv "$bare/venv"
"$bare/venv/bin/pip" install --quiet --disable-pip-version-check -c constraints.txt "$wheel"
cd "$bare"
bluewater() { env -i HOME="$bare" PATH=/usr/bin:/bin:/usr/sbin:/sbin "$bare/venv/bin/bluewater" "$@"; }
bluewater --version
bluewater reproduce feng/fig6-8 --quick --out results
bluewater compare red blue --rate 10mbit --flows 20 --duration 20s --out compared
if unshare -rn true 2>/dev/null; then
  bluewater shell --rate 10mbit --delay 5ms -- true
fi
