#!/usr/bin/env bash
# Builds a wheel that needs no Rust: the package and the gateway, for Linux with glibc 2.28 or newer.
#
#   scripts/wheel.sh [x86_64|aarch64]    into build/wheels; --try then installs and uses it
#
# Both are linked by zig, which knows older glibcs and other processors.
set -euo pipefail
cd "$(dirname "$0")/.."

arch=x86_64 attempt=
for word in "$@"; do
  case $word in
    x86_64 | aarch64) arch=$word ;;
    --try) attempt=yes ;;
    *) echo "scripts/wheel.sh: $word: x86_64, aarch64 or --try" >&2 && exit 2 ;;
  esac
done
target=${CARGO_TARGET_DIR:-target}
python=.venv/bin/python

export PATH="$PWD/.venv/bin:$PATH"
rustup target add "$arch-unknown-linux-gnu"
cargo zigbuild --release --locked --quiet --target "$arch-unknown-linux-gnu.2.28" --bin bluewater-gateway
$python -m maturin build --release --locked --quiet --zig \
  --target "$arch-unknown-linux-gnu" --compatibility manylinux_2_28 --out build/wheels
wheel=$(ls -t build/wheels/*"$arch"*.whl | head -1)
# The gateway beside the command `bluewater`.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
$python -m wheel unpack --dest "$work" "$wheel"
scripts=$(echo "$work"/bluewater-*)/$(basename "$work"/bluewater-*).data/scripts
mkdir -p "$scripts"
cp "$target/$arch-unknown-linux-gnu/release/bluewater-gateway" "$scripts"
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
