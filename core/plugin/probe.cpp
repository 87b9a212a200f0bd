#include "plugin/probe.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "base/subprocess.hpp"
#include "ddprun/error.hpp"

namespace ddprun::plugin {
namespace {

// A crash of this process leaves no trace but its exit status: no output, no core file, no stack of a handler.
void be_silent() {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(signal, SIG_DFL);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, output);
}

}  // namespace

void require_complete(const File& file) {
  std::ifstream stream(file.path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(0, stream.tellg()));
  ElfW(Ehdr) header{};
  stream.seekg(0);
  if (!stream.read(reinterpret_cast<char*>(&header), sizeof header)) return;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr))) return;
  uint64_t end = header.e_phoff + uint64_t{header.e_phnum} * sizeof(ElfW(Phdr));
  stream.seekg(static_cast<std::streamoff>(header.e_phoff));
  ElfW(Phdr) segment{};
  for (int i = 0; i < header.e_phnum && stream.read(reinterpret_cast<char*>(&segment), sizeof segment); ++i) {
    if (segment.p_type == PT_LOAD) end = std::max<uint64_t>(end, segment.p_offset + segment.p_filesz);
  }
  if (end <= size) return;
  refuse(file, "truncated: it has " + std::to_string(size) + " of at least " + std::to_string(end) +
                   " bytes; build or copy it again");
}

void probe(const File& file, const std::function<void()>& load, std::chrono::seconds limit) {
  const auto try_it = [&] {
    be_silent();
    try {
      load();
    } catch (const Error&) {  // the caller will get it, too
    } catch (const std::exception& thrown) {
      throw std::runtime_error(std::string("it threw \"") + thrown.what() + '"');
    } catch (...) {
      throw std::runtime_error("it threw something unknown");
    }
    return std::string();
  };
  try {
    text_from_subprocess(try_it, limit);
  } catch (const Error& trouble) {
    refuse(file, "refused: while it was loaded, " + std::string(trouble.what()) +
                     "; look at its static constructors and its table");
  }
}

}  // namespace ddprun::plugin
