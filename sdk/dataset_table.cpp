#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun {
namespace detail {
namespace {

// The handle of one split: the data set, and what describe() points into.
struct DatasetHandle {
  explicit DatasetHandle(std::unique_ptr<Dataset> made) : dataset(std::move(made)) {
    for (const std::string& name : dataset->classes()) classes.push_back(name.c_str());
  }
  std::unique_ptr<Dataset> dataset;
  std::vector<const char*> classes;
};

ddprun_dataset* release(std::unique_ptr<Dataset> dataset) {
  if (dataset == nullptr) return nullptr;
  return reinterpret_cast<ddprun_dataset*>(new DatasetHandle(std::move(dataset)));
}

const DatasetHandle& handle_of(const ddprun_dataset* split) {
  return *reinterpret_cast<const DatasetHandle*>(split);
}

// Cuts what is too long, between two characters of UTF-8.
template <std::size_t size>
void write_text(char (&to)[size], const char* text) {
  std::size_t length = std::min(std::strlen(text), size - 1);
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;
  std::memcpy(to, text, length);
  to[length] = '\0';
}

// Runs `body`; what it throws becomes the status and the error.
template <class Body>
int32_t guarded_dataset_call(ddprun_dataset_error* error, Body body) {
  try {
    body();
    return DDPRUN_DATASET_OK;
  } catch (const InvalidDataset& fault) {
    write_text(error->key, fault.key().c_str());
    write_text(error->reason, fault.what());
    return DDPRUN_DATASET_INVALID;
  } catch (const std::bad_alloc&) {
    write_text(error->reason, "out of memory");
  } catch (const std::exception& caught) {
    write_text(error->reason, caught.what());
  } catch (...) {
    write_text(error->reason, "unknown exception");
  }
  return DDPRUN_DATASET_FAILURE;
}

DatasetContext context_of(const ddprun_dataset_request& request) {
  DatasetContext context{request.root, {}, request.seed};
  for (uint32_t i = 0; i < request.option_count; ++i) {
    context.options[request.options[i].key] = request.options[i].value;
  }
  return context;
}

ddprun_dataset_field describe_field(const Field& field) {
  return {field.shape.data(), static_cast<uint32_t>(field.shape.size()), static_cast<uint32_t>(field.type)};
}

}  // namespace

int32_t open_splits(OpenSplits* open, const ddprun_dataset_request* request, ddprun_dataset** train,
                    ddprun_dataset** test, ddprun_dataset_error* error) {
  return guarded_dataset_call(error, [&] {
    Splits splits = open(context_of(*request));
    if (splits.train == nullptr) throw std::logic_error("the data set was opened without a training split");
    ddprun_dataset* const opened = release(std::move(splits.test));
    *train = release(std::move(splits.train));
    *test = opened;
  });
}

void describe_dataset(const ddprun_dataset* split, ddprun_dataset_info* info) noexcept try {
  const DatasetHandle& handle = handle_of(split);
  info->input = describe_field(handle.dataset->input());
  info->target = describe_field(handle.dataset->target());
  info->class_count = handle.classes.size();
  info->classes = handle.classes.data();
  info->vocabulary = static_cast<uint64_t>(handle.dataset->vocabulary());
  info->size = handle.dataset->size();
} catch (...) {
  info->size = 0;  // which the host refuses
}

int32_t fetch_samples(const ddprun_dataset* split, const int64_t* indices, uint64_t count, int64_t epoch,
                             void* inputs, void* targets, ddprun_dataset_error* error) {
  return guarded_dataset_call(error, [&] {
    handle_of(split).dataset->fetch(std::span(indices, static_cast<std::size_t>(count)), epoch, inputs, targets);
  });
}

void close_dataset(ddprun_dataset* split) noexcept {
  delete reinterpret_cast<DatasetHandle*>(split);
}

}  // namespace detail

void check_indices(std::span<const int64_t> indices, int64_t size) {
  for (const int64_t index : indices) {
    if (index >= 0 && index < size) continue;
    throw std::out_of_range("sample " + std::to_string(index) + " of a data set that holds " + std::to_string(size));
  }
}

}  // namespace ddprun
