// A test of core/cuda in a process of its own, whose libraries of NVIDIA's are the fakes: a library is looked for once
// in a process, and found where one with its SONAME is loaded.
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "tools/conformance/ranks.hpp"

namespace ddprun::testing {

struct Machine {
  std::vector<const char*> libraries;            // paths of fakes; none: what the machine of this test has
  std::map<std::string, std::string> variables;  // of the environment
};

// A function of such a library, by its name.
template <class Signature>
Signature* function(const char* name) {
  auto* const address = reinterpret_cast<Signature*>(dlsym(RTLD_DEFAULT, name));
  if (address == nullptr) throw std::runtime_error(dlerror());
  return address;
}

// What body() returns there, or how that ended.
inline std::string told(const Machine& machine, const std::function<std::string()>& body) {
  const auto outcomes = run_ranks(1, As::processes, std::chrono::seconds(30), [&](Rank& rank) {
    for (const char* const path : machine.libraries) {
      if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) == nullptr) throw std::runtime_error(dlerror());
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
    for (const auto& [name, value] : machine.variables) setenv(name.c_str(), value.c_str(), 1);
    rank.report(body());
  });
  const Outcome& outcome = outcomes.front();
  return outcome.ok() && !outcome.records.empty() ? outcome.records.front() : outcome.describe();
}

}  // namespace ddprun::testing
