// The vocabulary of the command line: names of nccl-tests and of PyTorch. All functions throw Error(usage): one line
// with the option and its valid values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/call.hpp"

namespace ddprun::bench {

[[noreturn]] void refuse(const std::string& option, const std::string& given, const std::string& expected);
void require_known(const std::string& option, const std::string& given, const std::vector<std::string>& known);

// "4", "64K", "1M", "2G": powers of 1024; at least 1.
std::size_t parse_bytes(const std::string& option, const std::string& text);
DType parse_dtype(const std::string& name);
Op parse_op(const std::string& name);
comm::Kind parse_collective(const std::string& name);

}  // namespace ddprun::bench
