// Whether all ranks have the same module.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::ddp {

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
