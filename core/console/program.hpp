// What every program of ddprun does: finds itself and its siblings, and turns an exception into one line and an exit
// code.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "ddprun/error.hpp"

namespace ddprun::console {

// The path of this program.
std::string this_program();

// The folders in which programs are looked for: this program's own, then those of PATH.
std::vector<std::string> program_folders();
// The path of an executable of this name in the first of them that has one; "" where none has.
std::string find_program(const std::string& name);

// Reports a failure: to our own launcher where this process is one of its ranks (the launcher prints the first cause
// once, last), else to stderr. Returns the code.
ExitCode report_failure(ExitCode code, const std::string& message);

// The body of main(): follows the launcher that started this process, if one did, and runs `body`. What `body` throws
// is reported; the message of an exception that is no Error comes from `message_of`.
std::string error_message(const std::exception& error);
int run_program(const std::function<ExitCode()>& body,
                std::string (*message_of)(const std::exception&) = error_message);

}  // namespace ddprun::console
