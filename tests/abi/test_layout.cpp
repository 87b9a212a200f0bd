// A change to a struct of version 1 breaks existing plugins, and this file does not compile. New fields go to the end,
// and the reader checks struct_size; any other change needs a new version in the entry's name.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.h"
#include "ddprun/plugin/dataset_entry.h"
#include "ddprun/plugin/model_entry.h"

static_assert(DDPRUN_COMM_ABI == 1 && DDPRUN_MODEL_ABI == 1 && DDPRUN_DATASET_ABI == 1);

// The offset and the size of a field in version 1 on 64-bit machines, and the size of each struct, so that no field is
// added unnoticed.
#define FIELD(type, field, offset, bytes) \
  static_assert(offsetof(type, field) == (offset) && sizeof(type::field) == (bytes))
#define STRUCT(type, bytes) static_assert(sizeof(type) == (bytes))

STRUCT(ddprun_option_spec, 64);
FIELD(ddprun_option_spec, struct_size, 0, 4);
FIELD(ddprun_option_spec, type, 4, 4);
FIELD(ddprun_option_spec, list, 8, 4);
FIELD(ddprun_option_spec, open, 12, 4);
FIELD(ddprun_option_spec, name, 16, 8);
FIELD(ddprun_option_spec, meaning, 24, 8);
FIELD(ddprun_option_spec, default_value, 32, 8);
FIELD(ddprun_option_spec, least, 40, 8);
FIELD(ddprun_option_spec, most, 48, 8);
FIELD(ddprun_option_spec, choices, 56, 8);

STRUCT(ddprun_comm_algorithm, 32);
FIELD(ddprun_comm_algorithm, struct_size, 0, 4);
FIELD(ddprun_comm_algorithm, dtypes, 4, 4);
FIELD(ddprun_comm_algorithm, ops, 8, 4);
FIELD(ddprun_comm_algorithm, memory, 12, 4);
FIELD(ddprun_comm_algorithm, name, 16, 8);
FIELD(ddprun_comm_algorithm, canonical_order, 24, 4);
FIELD(ddprun_comm_algorithm, reserved, 28, 4);

STRUCT(ddprun_comm_option, 16);
FIELD(ddprun_comm_option, key, 0, 8);
FIELD(ddprun_comm_option, value, 8, 8);

STRUCT(ddprun_comm_host, 96);
FIELD(ddprun_comm_host, struct_size, 0, 4);
FIELD(ddprun_comm_host, rank, 4, 4);
FIELD(ddprun_comm_host, size, 8, 4);
FIELD(ddprun_comm_host, device, 12, 4);
FIELD(ddprun_comm_host, deadline_ms, 16, 4);
FIELD(ddprun_comm_host, deterministic, 20, 4);
FIELD(ddprun_comm_host, algorithm, 24, 8);
FIELD(ddprun_comm_host, options, 32, 8);
FIELD(ddprun_comm_host, option_count, 40, 4);
FIELD(ddprun_comm_host, error_size, 44, 4);
FIELD(ddprun_comm_host, error, 48, 8);
FIELD(ddprun_comm_host, context, 56, 8);
FIELD(ddprun_comm_host, abort_flag, 64, 8);
FIELD(ddprun_comm_host, log, 72, 8);
FIELD(ddprun_comm_host, allgather, 80, 8);
FIELD(ddprun_comm_host, address, 88, 8);

STRUCT(ddprun_collective, 56);
FIELD(ddprun_collective, struct_size, 0, 4);
FIELD(ddprun_collective, dtype, 4, 4);
FIELD(ddprun_collective, op, 8, 4);
FIELD(ddprun_collective, root, 12, 4);
FIELD(ddprun_collective, memory, 16, 4);
FIELD(ddprun_collective, canonical_order, 20, 4);
FIELD(ddprun_collective, send, 24, 8);
FIELD(ddprun_collective, recv, 32, 8);
FIELD(ddprun_collective, count, 40, 8);
FIELD(ddprun_collective, stream, 48, 8);

STRUCT(ddprun_block, 16);
FIELD(ddprun_block, data, 0, 8);
FIELD(ddprun_block, bytes, 8, 8);

STRUCT(ddprun_exchange, 32);
FIELD(ddprun_exchange, struct_size, 0, 4);
FIELD(ddprun_exchange, memory, 4, 4);
FIELD(ddprun_exchange, send, 8, 8);
FIELD(ddprun_exchange, recv, 16, 8);
FIELD(ddprun_exchange, stream, 24, 8);

STRUCT(ddprun_comm_execution, 24);
FIELD(ddprun_comm_execution, struct_size, 0, 4);
FIELD(ddprun_comm_execution, reserved, 4, 4);
FIELD(ddprun_comm_execution, algorithm, 8, 8);
FIELD(ddprun_comm_execution, transport, 16, 8);

STRUCT(ddprun_comm_plugin, 200);
FIELD(ddprun_comm_plugin, struct_size, 0, 4);
FIELD(ddprun_comm_plugin, abi, 4, 4);
FIELD(ddprun_comm_plugin, name, 8, 8);
FIELD(ddprun_comm_plugin, version, 16, 8);
FIELD(ddprun_comm_plugin, library, 24, 8);
FIELD(ddprun_comm_plugin, capabilities, 32, 8);
FIELD(ddprun_comm_plugin, algorithms, 40, 8);
FIELD(ddprun_comm_plugin, algorithm_count, 48, 4);
FIELD(ddprun_comm_plugin, reserved, 52, 4);
FIELD(ddprun_comm_plugin, create, 56, 8);
FIELD(ddprun_comm_plugin, destroy, 64, 8);
FIELD(ddprun_comm_plugin, allreduce, 72, 8);
FIELD(ddprun_comm_plugin, broadcast, 80, 8);
FIELD(ddprun_comm_plugin, allgather, 88, 8);
FIELD(ddprun_comm_plugin, barrier, 96, 8);
FIELD(ddprun_comm_plugin, wait, 104, 8);
FIELD(ddprun_comm_plugin, abort, 112, 8);
FIELD(ddprun_comm_plugin, last_error, 120, 8);
FIELD(ddprun_comm_plugin, reduce_scatter, 128, 8);
FIELD(ddprun_comm_plugin, test, 136, 8);
FIELD(ddprun_comm_plugin, async_error, 144, 8);
FIELD(ddprun_comm_plugin, alloc, 152, 8);
FIELD(ddprun_comm_plugin, free, 160, 8);
FIELD(ddprun_comm_plugin, options, 168, 8);
FIELD(ddprun_comm_plugin, option_count, 176, 4);
FIELD(ddprun_comm_plugin, reserved_too, 180, 4);
FIELD(ddprun_comm_plugin, finish, 184, 8);
FIELD(ddprun_comm_plugin, exchange, 192, 8);

STRUCT(ddprun_model_plugin, 72);
FIELD(ddprun_model_plugin, struct_size, 0, 4);
FIELD(ddprun_model_plugin, abi, 4, 4);
FIELD(ddprun_model_plugin, name, 8, 8);
FIELD(ddprun_model_plugin, version, 16, 8);
FIELD(ddprun_model_plugin, torch_version, 24, 8);
FIELD(ddprun_model_plugin, cxx11_abi, 32, 4);
FIELD(ddprun_model_plugin, reserved, 36, 4);
FIELD(ddprun_model_plugin, create, 40, 8);
FIELD(ddprun_model_plugin, destroy, 48, 8);
FIELD(ddprun_model_plugin, options, 56, 8);
FIELD(ddprun_model_plugin, option_count, 64, 4);
FIELD(ddprun_model_plugin, reserved_too, 68, 4);

STRUCT(ddprun_dataset_option, 16);
FIELD(ddprun_dataset_option, key, 0, 8);
FIELD(ddprun_dataset_option, value, 8, 8);

STRUCT(ddprun_dataset_request, 32);
FIELD(ddprun_dataset_request, struct_size, 0, 4);
FIELD(ddprun_dataset_request, option_count, 4, 4);
FIELD(ddprun_dataset_request, root, 8, 8);
FIELD(ddprun_dataset_request, options, 16, 8);
FIELD(ddprun_dataset_request, seed, 24, 8);

STRUCT(ddprun_dataset_field, 16);
FIELD(ddprun_dataset_field, shape, 0, 8);
FIELD(ddprun_dataset_field, dimensions, 8, 4);
FIELD(ddprun_dataset_field, type, 12, 4);

STRUCT(ddprun_dataset_info, 72);
FIELD(ddprun_dataset_info, struct_size, 0, 4);
FIELD(ddprun_dataset_info, reserved, 4, 4);
FIELD(ddprun_dataset_info, size, 8, 8);
FIELD(ddprun_dataset_info, input, 16, 16);
FIELD(ddprun_dataset_info, target, 32, 16);
FIELD(ddprun_dataset_info, class_count, 48, 8);
FIELD(ddprun_dataset_info, classes, 56, 8);
FIELD(ddprun_dataset_info, vocabulary, 64, 8);

STRUCT(ddprun_dataset_error, 1160);
FIELD(ddprun_dataset_error, struct_size, 0, 4);
FIELD(ddprun_dataset_error, reserved, 4, 4);
FIELD(ddprun_dataset_error, key, 8, 128);
FIELD(ddprun_dataset_error, reason, 136, 1024);

STRUCT(ddprun_dataset_plugin, 80);
FIELD(ddprun_dataset_plugin, struct_size, 0, 4);
FIELD(ddprun_dataset_plugin, abi, 4, 4);
FIELD(ddprun_dataset_plugin, name, 8, 8);
FIELD(ddprun_dataset_plugin, version, 16, 8);
FIELD(ddprun_dataset_plugin, summary, 24, 8);
FIELD(ddprun_dataset_plugin, open, 32, 8);
FIELD(ddprun_dataset_plugin, describe, 40, 8);
FIELD(ddprun_dataset_plugin, fetch, 48, 8);
FIELD(ddprun_dataset_plugin, close, 56, 8);
FIELD(ddprun_dataset_plugin, options, 64, 8);
FIELD(ddprun_dataset_plugin, option_count, 72, 4);
FIELD(ddprun_dataset_plugin, reserved, 76, 4);

TEST_CASE("the numbers of statuses, dtypes, ops, memories and capabilities are those of version 1") {
  CHECK(std::vector<int>{DDPRUN_OK, DDPRUN_INVALID, DDPRUN_UNSUPPORTED, DDPRUN_TIMEOUT, DDPRUN_PEER_LOST,
                         DDPRUN_ABORTED, DDPRUN_MISMATCH, DDPRUN_NO_MEMORY,
                         DDPRUN_INTERNAL} == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(std::vector<int>{DDPRUN_FLOAT16, DDPRUN_BFLOAT16, DDPRUN_FLOAT32, DDPRUN_FLOAT64, DDPRUN_INT8, DDPRUN_INT16,
                         DDPRUN_INT32, DDPRUN_INT64, DDPRUN_UINT8,
                         DDPRUN_DTYPE_COUNT} == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(std::vector<int>{DDPRUN_SUM, DDPRUN_MIN, DDPRUN_MAX, DDPRUN_PRODUCT, DDPRUN_AVG, DDPRUN_OP_COUNT} ==
        std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(std::vector<int>{DDPRUN_HOST, DDPRUN_CUDA} == std::vector<int>{0, 1});
  CHECK(std::vector<int>{DDPRUN_LOG_DEBUG, DDPRUN_LOG_INFO, DDPRUN_LOG_WARNING, DDPRUN_LOG_ERROR} ==
        std::vector<int>{0, 1, 2, 3});
  CHECK(std::vector<int>{DDPRUN_CAP_HOST, DDPRUN_CAP_CUDA, DDPRUN_CAP_BLOCKING, DDPRUN_CAP_STREAM_ORDERED,
                         DDPRUN_CAP_ALLOC, DDPRUN_CAP_REDUCE_SCATTER} == std::vector<int>{1, 2, 4, 8, 16, 32});
  CHECK(std::vector<int>{DDPRUN_OPTION_TEXT, DDPRUN_OPTION_CHOICE, DDPRUN_OPTION_INTEGER, DDPRUN_OPTION_REAL,
                         DDPRUN_OPTION_FLAG, DDPRUN_OPTION_DURATION, DDPRUN_OPTION_SIZE, DDPRUN_OPTION_NAME,
                         DDPRUN_OPTION_PART,
                         DDPRUN_OPTION_TYPE_COUNT} == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(std::vector<int>{DDPRUN_OPTION_ABOVE_LEAST, DDPRUN_OPTION_BELOW_MOST} == std::vector<int>{1, 2});
  CHECK(std::vector<int>{DDPRUN_DATASET_OK, DDPRUN_DATASET_INVALID, DDPRUN_DATASET_FAILURE} ==
        std::vector<int>{0, 1, 2});
  CHECK(std::vector<int>{DDPRUN_ELEMENT_FLOAT32, DDPRUN_ELEMENT_INT64} == std::vector<int>{0, 1});
}

TEST_CASE("the entries have the version of their ABI in their names") {
  CHECK(std::string(DDPRUN_COMM_ENTRY) == "ddprun_comm_plugin_v" + std::to_string(DDPRUN_COMM_ABI));
  CHECK(std::string(DDPRUN_DATASET_ENTRY) == "ddprun_dataset_plugin_v" + std::to_string(DDPRUN_DATASET_ABI));
  CHECK(std::string(DDPRUN_MODEL_ENTRY) == "ddprun_model_plugin_v" + std::to_string(DDPRUN_MODEL_ABI));
}
