// Exchanges texts and errors between the ranks, outside of a training step.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ddprun/comm_backend.hpp"
#include "ddprun/error.hpp"

namespace ddprun::ddp {

// The texts of all ranks, in rank order. Collective.
std::vector<std::string> gather_texts(CommBackend& backend, const std::string& mine, std::chrono::milliseconds timeout);

// The exception that is being handled, as an Error: a message of LibTorch without its backtrace.
Error current_error();
// What `work` throws. A CommError passes: the ranks cannot share it.
std::optional<Error> error_of(const std::function<void()>& work);
// If at least one rank has an error, every rank throws that of the lowest one. Collective.
void throw_first(CommBackend& backend, const std::optional<Error>& mine, std::chrono::milliseconds timeout);

}  // namespace ddprun::ddp
