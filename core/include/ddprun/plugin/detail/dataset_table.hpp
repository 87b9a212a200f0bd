// The functions of the C table, for a data set that is a C++ class. Included by dataset_plugin.hpp only.
#pragma once

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::detail {

using OpenSplits = Splits(const DatasetContext&);
int32_t open_splits(OpenSplits* open, const ddprun_dataset_request* request, ddprun_dataset** train,
                    ddprun_dataset** test, ddprun_dataset_error* error);
void describe_dataset(const ddprun_dataset* split, ddprun_dataset_info* info) noexcept;
int32_t fetch_samples(const ddprun_dataset* split, const int64_t* indices, uint64_t count, int64_t epoch, void* inputs,
                      void* targets, ddprun_dataset_error* error);
void close_dataset(ddprun_dataset* split) noexcept;

template <OpenSplits* open>
int32_t open_dataset(const ddprun_dataset_request* request, ddprun_dataset** train, ddprun_dataset** test,
                     ddprun_dataset_error* error) {
  return open_splits(open, request, train, test, error);
}

template <OpenSplits* open>
constexpr ddprun_dataset_plugin dataset_table(const char* name, const char* version, const char* summary,
                                              OptionSpecs options = kNoOptions) {
  return {sizeof(ddprun_dataset_plugin),
          DDPRUN_DATASET_ABI,
          name,
          version,
          summary,
          &open_dataset<open>,
          &describe_dataset,
          &fetch_samples,
          &close_dataset,
          options.data(),
          static_cast<uint32_t>(options.size()),
          0};
}

}  // namespace ddprun::detail
