// What the ranks exchange outside of a training step: errors; and whether all have the same module.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "ddprun/error.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::ddp {

// The exception that is being handled, as an Error: a message of LibTorch without its backtrace.
Error current_error();
// What `work` throws. A CommError passes: the ranks cannot share it.
std::optional<Error> error_of(const std::function<void()>& work);
// If at least one rank has an error, every rank throws that of the lowest one. Collective.
void throw_first(const comm::Group& ranks, const std::optional<Error>& mine);

// "Float [10, 3]", and the strides of a tensor that is not contiguous.
std::string form_of(const torch::Tensor& tensor);

// Compares lines of text that describe `what`. Collective. On a difference, every rank throws the same
// Error(rendezvous), which quotes the first lines that differ.
void require_same_lines(const comm::Group& ranks, const std::string& what, const std::string& lines);

// Compares names, dtypes and shapes, in order. Collective. On a difference, every rank throws the same
// Error(rendezvous), which names the first tensor that differs.
void require_same_tensors(const comm::Group& ranks, const std::vector<train::NamedTensor>& tensors);

}  // namespace ddprun::ddp
