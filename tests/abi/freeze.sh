#!/usr/bin/env bash
# Copies the headers that the example plugins need into v1/. Only until version 1 is released.
set -euo pipefail
cd "$(dirname "$0")/v1"
rm -rf include
plugin=(comm_plugin.h comm_plugin.hpp dataset_entry.h dataset_options.hpp dataset_plugin.hpp model_entry.h
  model_plugin.hpp model_options.hpp model_shape.hpp classifier.hpp export.h option_spec.h options.hpp words.hpp futex.hpp
  host_identity.hpp process_watch.hpp detail/comm_adapter.hpp detail/comm_convert.hpp detail/comm_host.hpp
  detail/dataset_table.hpp detail/option_values.hpp)
for file in comm_backend.hpp error.hpp "${plugin[@]/#/plugin/}"; do
  install -D -m 644 "../../../core/include/ddprun/$file" "include/ddprun/$file"
done
find include -type f | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
