#include "launch/net/address.hpp"

#include <utility>  // Boost.Asio 1.74 needs it and does not include it

#include <boost/asio.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "ddprun/error.hpp"
#include "ddprun/plugin/network_interface.hpp"

namespace ddprun::launch {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using asio::ip::tcp;

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

std::string host_name() {
  return asio::ip::host_name();
}

std::vector<std::string> addresses_of(const std::string& host) {
  asio::io_context context;
  boost::system::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : tcp::resolver(context).resolve(host, "", tcp::resolver::flags(), error)) {
    found.push_back(entry.endpoint().address().to_string());
  }
  if (!error) return found;
  throw Error(ExitCode::rendezvous, "the master's name \"" + host + "\" cannot be resolved: " + error.message() +
                                        "; give a name or an address that this host knows");
}

bool is_loopback(const std::string& numeric) {
  return numeric.starts_with("127.") || numeric == "::1";
}

bool is_own(const std::string& numeric) {
  return interface_with(network_interfaces(), numeric) != nullptr;
}

Route route_to(const std::string& host) {
  auto addresses = addresses_of(host);
  // IPv4 first, so that hosts with and without IPv6 choose the same family.
  std::stable_partition(addresses.begin(), addresses.end(), [](auto& each) { return each.find(':') == each.npos; });
  asio::io_context context;
  boost::system::error_code error;
  Route loopback;
  for (const std::string& to : addresses) {
    asio::ip::udp::socket socket(context);
    constexpr unsigned short kAnyPort = 9;
    socket.connect({asio::ip::make_address(to), kAnyPort}, error);  // chooses the route and sends nothing
    if (error) continue;
    const Route route{socket.local_endpoint().address().to_string(), to};
    if (!is_loopback(route.from)) return route;
    if (loopback.from.empty()) loopback = route;
  }
  if (!loopback.from.empty()) return loopback;
  throw Error(ExitCode::rendezvous, "no route to the host \"" + host + "\": " + error.message());
}

std::vector<std::string> listening_addresses(const std::string& host, bool only_this_host) {
  const auto addresses = addresses_of(host);
  std::vector<std::string> found;
  for (const std::string& address : addresses) {
    const bool is_here = is_loopback(address) || is_own(address);
    if (is_here && std::find(found.begin(), found.end(), address) == found.end()) found.push_back(address);
  }
  if (found.empty()) {
    throw Error(ExitCode::rendezvous,
                "the master " + host + " is " + addresses.front() +
                    ", which is no address of this host, where the first rank is; this host has " +
                    list_of(network_interfaces()));
  }
  const bool is_loopback_everywhere = host == "localhost" || host == found.front();
  if (only_this_host || is_loopback_everywhere || !is_loopback(found.front())) return found;
  return is_own("::1") ? std::vector<std::string>{"0.0.0.0", "::"} : std::vector<std::string>{"0.0.0.0"};
}

int free_port(const std::string& host) {
  const tcp::endpoint any(asio::ip::make_address(listening_addresses(host).front()), 0);
  asio::io_context context;
  return tcp::acceptor(context, any).local_endpoint().port();
}

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
