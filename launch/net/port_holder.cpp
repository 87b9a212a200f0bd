#include "launch/net/address.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace ddprun::launch {
namespace {

namespace fs = std::filesystem;

// The inode of the socket that listens on `port`: the tenth field of its line in /proc/net/tcp.
std::string listening_inode(const char* table, int port) {
  std::ifstream lines(table);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    const std::vector<std::string> values{std::istream_iterator<std::string>(fields), {}};
    if (values.size() < 10 || values[3] != "0A") continue;  // 0A: it listens
    const std::string& local = values[1];
    if (std::strtol(local.c_str() + local.rfind(':') + 1, nullptr, 16) == port) return values[9];
  }
  return "";
}

std::string owner_of(const std::string& inode) {
  const std::string wanted = "socket:[" + inode + "]";
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    const std::string pid = process.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    for (const auto& fd : fs::directory_iterator(process.path() / "fd", ignored)) {
      if (fs::read_symlink(fd.path(), ignored).string() != wanted) continue;
      std::string name;
      std::ifstream(process.path() / "comm") >> name;
      return " by pid " + pid + " (" + name + ")";
    }
  }
  return "";
}

}  // namespace

std::string port_holder(int port) noexcept try {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string inode = listening_inode(table, port);
    if (!inode.empty() && inode != "0") return owner_of(inode);
  }
  return "";
} catch (const std::exception&) {
  return "";  // a process ended meanwhile: the message is shorter
}

}  // namespace ddprun::launch
