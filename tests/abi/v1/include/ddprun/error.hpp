// ddprun/error.hpp: the exception that carries the exit code of the command. Torch-free.
#pragma once

#include <stdexcept>
#include <string>

namespace ddprun {

// The exit codes of the command. The README lists them for users.
enum class ExitCode : int {
  ok = 0,
  failure = 1,     // training, set-up or download failed; NaN; out of memory
  usage = 2,       // command line, config, dataset or checkpoint
  plugin = 3,      // a plugin is missing or refused; a device is missing
  rendezvous = 4,  // the ranks did not find each other, or do not fit together
  peer = 5,        // a peer died, a collective timed out, the ranks disagree
  gate = 6,        // a parity, conformance or regression gate failed
  interrupted = 130,
  terminated = 143,
};

// what() is one clear line: what is wrong, where, and what to do. It has several lines if several errors are reported
// together.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

}  // namespace ddprun
