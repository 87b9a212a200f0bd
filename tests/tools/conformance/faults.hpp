// Runs `ddprun-conformance` on a fake plugin whose option `fault` makes it break its contract in one way.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/text.hpp"

namespace ddprun::testing {

// A sanitizer replaces malloc, so what the heap holds is not known.
#if defined(DDPRUN_SANITIZED)
inline constexpr bool kCountsHeap = false;
#else
inline constexpr bool kCountsHeap = true;
#endif

// The plugin with `fault` fails in this check, and the reason has this text.
struct Fault {
  const char* fault;
  const char* check;
  const char* text;
};

inline ProcessResult conformance(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), DDPRUN_CONFORMANCE);
  return Process(arguments, {}).wait(std::chrono::seconds(120));
}

// `plugin`: the first arguments; `what`: "data set", as the output names it.
inline void require_found(const std::vector<std::string>& plugin, const std::string& what, const Fault& fault) {
  CAPTURE(fault.fault);
  if (!kCountsHeap && contains(fault.text, "bytes of the heap")) {
    MESSAGE("skipped: a sanitizer replaces malloc");
    return;
  }
  std::vector<std::string> arguments = plugin;
  for (const std::string& word : {std::string("--option"), std::string("fault=") + fault.fault, std::string("--filter"),
                                  std::string(fault.check)}) {
    arguments.push_back(word);
  }
  const ProcessResult result = conformance(arguments);
  CHECK_MESSAGE(result.code == 6, (result.err + result.out));
  CHECK_MESSAGE(contains(result.out, "FAILED  " + what + ": " + fault.check + "\n"), result.out);
  CHECK_MESSAGE(contains(result.out, fault.text), result.out);
}

}  // namespace ddprun::testing
