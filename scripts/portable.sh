#!/usr/bin/env bash
# Checks what the build on this machine does not show: that crates/aqm needs no standard library, and
# that everything compiles with the oldest Rust that Cargo.toml promises. Both need something from
# rustup. What is missing is left out, which `scripts/lacking.sh` says; with CI=1 it fails. `--get`
# installs it, `--there` asks whether it is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

bare=thumbv7em-none-eabi # a processor without an operating system: there is no std to be linked
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1.0/p' Cargo.toml)
target=${CARGO_TARGET_DIR:-target}

have_bare() { [[ -d $(rustc --print target-libdir --target "$bare") ]]; }
have_oldest() { rustup run "$oldest" rustc --version >/dev/null 2>&1; }

left_out() {
  [[ -z ${CI-} ]] || { echo "error: not checked: $1" >&2; exit 1; }
}

case ${1-} in
  --get)
    rustup target add "$bare"
    rustup toolchain install "$oldest" --profile minimal --no-self-update
    exit
    ;;
  --there)
    have_bare && have_oldest
    exit
    ;;
esac

if have_bare; then
  cargo check --quiet --locked --package bluewater-aqm --target "$bare"
else
  left_out "aqm without std; rustup target add $bare"
fi

if have_oldest; then
  # A folder of its own: another compiler's files would be built anew each time.
  CARGO_TARGET_DIR=$target/$oldest rustup run "$oldest" cargo check --quiet --locked --workspace --exclude bluewater-fuzz
else
  left_out "Rust $oldest; rustup toolchain install $oldest --profile minimal"
fi
