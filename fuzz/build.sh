#!/usr/bin/env bash
# The targets as OSS-Fuzz and ClusterFuzzLite want them: in $OUT, with options, a dictionary and a seed corpus each. They set
# $CC, $CXX, $CFLAGS and $CXXFLAGS (compiler and sanitizer, which Meson reads by itself), $LIB_FUZZING_ENGINE (what targets are
# linked with), $SRC (where the sources are, if they are not around this script) and $WORK.
set -euo pipefail
: "${OUT:?where the targets go}"
cd "${SRC:-/nowhere}/x0x-policy" 2>/dev/null || cd "$(dirname "$0")/.."
export CC=${CC:-clang} CXX=${CXX:-clang++}
export CXXFLAGS="${CXXFLAGS:--O1 -g1 -fsanitize=address,undefined,fuzzer-no-link}"
CXXFLAGS=${CXXFLAGS//-stdlib=libc++/}  # Debian's libraries in C++ are built with the other one
export LDFLAGS="-Wl,-rpath,\$ORIGIN/lib ${LDFLAGS:-}"
build=${WORK:-$PWD/build-fuzz}/x0x
[ -f "$build/build.ninja" ] || meson setup "$build" -Dfuzz=true -Dfuzz_engine="${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}" \
  -Dbuildtype=plain -Dwerror=false -Db_lundef=false
ninja -C "$build" fuzz-targets
mkdir -p "$OUT/lib"
sed -n 's/^ *T(\([a-z_]*\), \([0-9]*\)).*/\1 \2/p' fuzz/target.hpp | while read -r target size; do
  cp "$build/fuzz/fuzz-$target" "$OUT/$target"
  # The machine that runs them has a C library and nothing else.
  ldd "$build/fuzz/fuzz-$target" | sed -n 's/.*=> \(.*lib\(sodium\|antlr4-runtime\|fmt\|re2\|tomlplusplus\|stdc++\|gcc_s\)[^ ]*\) .*/\1/p' |
    xargs -r cp -L -t "$OUT/lib"
  printf '[libfuzzer]\nmax_len = %d\n' "$size" >"$OUT/$target.options"
  [ ! -f "fuzz/$target.dict" ] || cp "fuzz/$target.dict" "$OUT/"
  seeds=("corpus/fuzz/$target")
  [ "$target" != policy_toml ] || seeds+=(corpus/policies)
  python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" "${seeds[@]}"
done
