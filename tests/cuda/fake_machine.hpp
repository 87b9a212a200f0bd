// Runs a test of NVIDIA's libraries in a separate process with fake ones: a process looks for a library only once, and
// finds a loaded one with the same SONAME.
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "testing/ranks.hpp"

namespace ddprun::testing {

struct Machine {
  std::vector<const char*> libraries;            // paths of fakes; empty: the libraries of the real machine
  std::map<std::string, std::string> variables;  // environment variables
};

// A function of a fake library, by name.
template <class Signature>
Signature* function(const char* name) {
  auto* const address = reinterpret_cast<Signature*>(dlsym(RTLD_DEFAULT, name));
  if (address == nullptr) throw std::runtime_error(dlerror());
  return address;
}

// The result of body() in that process, or how the process ended.
inline std::string run_with(const Machine& machine, const std::function<std::string()>& body) {
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
