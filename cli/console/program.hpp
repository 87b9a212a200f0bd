// Common code of every ddprun program: finds itself and other programs, and turns an exception into one line and an
// exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ddprun/error.hpp"

namespace ddprun::console {

// The path of this program.
std::string this_program();

// The folders where programs are searched: this program's own, then those of PATH.
std::vector<std::string> program_folders();
// The path of the first executable with this name in these folders; "" if there is none.
std::string find_program(const std::string& name);

// A word of a command line, quoted for a shell if it has characters that need it.
std::string shell_word(const std::string& text);

// The body of main(): follows the launcher that started this process, if there is one, runs `body`, and flushes stdout.
// Reports an exception of `body`, and output that stdout did not take.
int run_program(const std::function<ExitCode()>& body);

}  // namespace ddprun::console
