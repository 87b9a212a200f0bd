// What the ranks exchange outside of a training step: texts and errors; and whether all have the same module.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "ddprun/error.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::ddp {

// The texts of all ranks, in rank order. Collective.
std::vector<std::string> gather_texts(CommBackend& backend, const std::string& mine, std::chrono::milliseconds timeout);

// The exception that is being handled, as an Error: a message of LibTorch without its backtrace.
Error current_error();
// What `work` throws. A CommError passes: the ranks cannot share it.
std::optional<Error> error_of(const std::function<void()>& work);
// If at least one rank has an error, every rank throws that of the lowest one. Collective.
void throw_first(CommBackend& backend, const std::optional<Error>& mine, std::chrono::milliseconds timeout);

// "Float [10, 3]", and the strides of a tensor that is not contiguous.
std::string form_of(const torch::Tensor& tensor);

// Compares lines of text that describe `what`. Collective. On a difference, every rank throws the same
// Error(rendezvous), which quotes the first lines that differ.
void require_same_lines(CommBackend& backend, const std::string& what, const std::string& lines,
                        std::chrono::milliseconds timeout);

// Compares names, dtypes and shapes, in order. Collective. On a difference, every rank throws the same
// Error(rendezvous), which names the first tensor that differs.
void require_same_tensors(CommBackend& backend, const std::vector<train::NamedTensor>& tensors,
                          std::chrono::milliseconds timeout);

}  // namespace ddprun::ddp
