#!/usr/bin/env bash
# The targets as OSS-Fuzz and ClusterFuzzLite want them: in $OUT, with a seed corpus and options each. $CXX and $CXXFLAGS
# choose compiler and sanitizer, $LIB_FUZZING_ENGINE is what the targets are linked with.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${OUT:?where the targets go}"
build=${WORK:-$PWD/build-fuzz}/x0x
meson setup "$build" -Dfuzz=true -Dfuzz_engine="${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}" -Dbuildtype=plain -Db_lundef=false
sed -n 's/^ *T(\([a-z_]*\), \([0-9]*\)).*/\1 \2/p' fuzz/target.hpp | while read -r target size; do
  ninja -C "$build" "fuzz/fuzz-$target"
  cp "$build/fuzz/fuzz-$target" "$OUT/$target"
  printf '[libfuzzer]\nmax_len = %d\n' "$size" >"$OUT/$target.options"
  [ ! -f "fuzz/$target.dict" ] || cp "fuzz/$target.dict" "$OUT/"
  [ ! -d "corpus/fuzz/$target" ] || (cd "corpus/fuzz/$target" && python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" .)
done
