#include "mesh.hpp"

#include <gloo/common/error.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <stop_token>
#include <string_view>

#include "address.hpp"
#include "ddprun/plugin/network_interface.hpp"
#include "host/liveness.hpp"
#include "sockets.hpp"

namespace ddprun::gloo_backend {
namespace {

constexpr uint64_t kPage = 4096, kLargestChunk = 512 * 1024;
// Gloo matches a message with the buffer that has its slot. The messages of a connection are read in order, so one slot
// is enough.
constexpr int kSlot = 0;

// Gloo's error message without its "[file:line] ".
std::string without_location(const std::string& text) {
  const auto end = text.find("] ");
  return text.starts_with('[') && end != std::string::npos ? text.substr(end + 2) : text;
}

// Never deleted: Debian 13's Gloo ends the process if a thread of its own is the last to own a device, as a stranger's
// connection makes it. A forked process makes its own.
std::shared_ptr<gloo::transport::Device> device_on(const std::string& address) try {
  static std::mutex mutex;
  static auto& devices = *new std::map<std::pair<pid_t, std::string>, std::shared_ptr<gloo::transport::Device>>;
  const std::lock_guard lock(mutex);
  auto& device = devices[{getpid(), address}];
  if (device == nullptr) device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
  return device;
} catch (const std::exception& error) {
  throw CommError(CommStatus::internal, "cannot listen on " + with_interface(address, network_interfaces()) + ": " +
                                            without_location(error.what()));
}

// Makes the send buffer so large that two chunks fit. The kernel also counts its own data for each packet, so there is
// room for half a chunk more: without it, three hosts took 1.2 times as long on a slow link. Linux doubles what it is
// asked for, and its limit, net.core.wmem_max. Returns the largest chunk that fits.
uint64_t make_send_buffer(int socket, uint64_t chunk) {
  int size = static_cast<int>(chunk / 4 * 5);
  socklen_t length = sizeof size;
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, length);
  getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, &length);
  return static_cast<uint64_t>(size) / 5 * 2;
}

// The largest chunk that fits twice into each send buffer.
uint64_t chunk_of(const std::vector<Descriptor>& sockets) {
  uint64_t chunk = kLargestChunk;
  for (const auto& socket : sockets) {
    if (socket.get() >= 0) chunk = std::min(chunk, make_send_buffer(socket.get(), chunk));
  }
  return std::max(chunk / kPage * kPage, kPage);
}

void limit_waits(int socket, std::chrono::milliseconds limit) {
  const timeval time = {limit.count() / 1000, limit.count() % 1000 * 1000};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

// Whether a read would not wait: a message or the end of the connection has arrived.
bool is_readable(int socket) {
  char byte;
  return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

using Address = std::vector<char>;  // in Gloo's format

sockaddr_storage socket_address(const Address& address) {
  return gloo::transport::tcp::Address(address).getSockaddr();
}

std::string text_of(const Address& address) {
  const sockaddr_storage storage = socket_address(address);
  return numeric_address(reinterpret_cast<const sockaddr*>(&storage));
}

// Gives each other rank the address for_rank(rank). Returns the addresses that the others give this rank, in rank
// order.
template <class ForRank>
std::vector<Address> exchange(const Host& host, ForRank&& for_rank) {
  std::string mine;
  const std::size_t bytes = gloo::transport::tcp::Address().bytes().size();
  for (int rank = 0; rank < host.size(); ++rank) {
    const Address address = rank == host.rank() ? Address(bytes) : for_rank(rank);
    mine.append(address.begin(), address.end());
  }
  std::vector<Address> for_me;
  for (const std::string& theirs : host.allgather(mine)) {
    if (theirs.size() != mine.size()) throw CommError(CommStatus::mismatch, "the ranks run different builds of Gloo");
    const auto first = theirs.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(host.rank()) * bytes);
    for_me.emplace_back(first, first + static_cast<std::ptrdiff_t>(bytes));
  }
  return for_me;
}

// Whether the listening end of this connection did not serve it. Gloo has the reason only as text.
bool is_refused(const gloo::IoException& error) {
  const std::string_view text = error.what();
  return text.find(std::strerror(ECONNREFUSED)) != text.npos || text.find(std::strerror(ECONNRESET)) != text.npos;
}

// Returns true if joining must end (abort flag or deadline), and false if `stop` was requested first.
bool wait_for_end(const std::stop_token& stop, const Host& host, const ConnectionWatchdog& watchdog) {
  constexpr std::chrono::milliseconds kPollInterval(20);
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && !host.aborted() && !watchdog.is_over()) {
    never.wait_for(lock, stop, std::min(kPollInterval, watchdog.remaining()), [] { return false; });
  }
  return !stop.stop_requested();
}

}  // namespace

Mesh::Mesh(const Host& host, const std::vector<host::Process>& processes)
    : watchdog_(host, processes), waiter_(host, host.size(), shm::Poll::system_call, [] { return -1; }) {
  const NoSigpipe quiet;
  const auto is_here = [&](const host::Process& each) { return host::share_network(each, processes.front()); };
  const bool are_here = std::all_of(processes.begin() + 1, processes.end(), is_here);
  address_ = listening_address(host, are_here, network_interfaces());
  device_ = device_on(address_);
  try {
    auto sockets = connect(host, processes);
    for (const auto& socket : sockets) {
      if (socket.get() >= 0) limit_waits(socket.get(), host.deadline());
    }
    largest_sent_.resize(sockets.size());
    watchdog_.watch(std::move(sockets));
  } catch (const gloo::IoException& error) {
    const auto status = watchdog_.is_late() ? CommStatus::timeout : CommStatus::peer_lost;
    throw CommError(status, std::string("the ranks could not connect: ") + without_location(error.what()) +
                                "; this rank listens on " + with_interface(address_, network_interfaces()) +
                                (address_.starts_with("127.") ? "" : kNameInterface));
  }
}

std::vector<Descriptor> Mesh::connect(const Host& host, const std::vector<host::Process>& processes) {
  constexpr int kAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    std::string problem;
    auto sockets = try_to_connect(host, processes, problem);
    // The last exchange must come after this: then a peer may leave, and Gloo's thread takes the end of an asynchronous
    // connection for a failure.
    for (int rank = 0; rank < host.size() && problem.empty(); ++rank) {
      if (rank != host.rank()) pairs_->getPair(rank)->setSync(true, false);
    }
    chunk_ = problem.empty() ? chunk_of(sockets) : 0;
    for (const std::string& theirs : host.allgather(std::to_string(chunk_))) {
      chunk_ = std::min<uint64_t>(chunk_, std::strtoull(theirs.c_str(), nullptr, 10));
    }
    if (chunk_ > 0) return sockets;
    if (attempt == kAttempts) {
      throw CommError(CommStatus::peer_lost,
                      "the ranks could not connect, after " + std::to_string(kAttempts) +
                          " attempts: " + (problem.empty() ? "another rank has no connection" : problem));
    }
  }
}

std::vector<Descriptor> Mesh::try_to_connect(const Host& host, const std::vector<host::Process>& processes,
                                             std::string& problem) {
  pairs_ = device_->createContext(host.rank(), host.size());
  pairs_->setTimeout(host.deadline());
  const auto listening = exchange(host, [&](int rank) { return pairs_->createPair(rank)->address().bytes(); });
  const host::Process& mine = processes[static_cast<std::size_t>(host.rank())];
  const auto interfaces = network_interfaces();
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const bool is_known = !mine.network.empty() && !processes[rank].network.empty();
    if (is_known && !host::share_network(mine, processes[rank])) {
      require_elsewhere(static_cast<int>(rank), text_of(listening[rank]), interfaces);
    }
  }
  connect_pairs(host, listening, problem);

  // A connected pair's address is this end of the connection, so the peer's address is the other end.
  const auto ends = exchange(host, [&](int rank) { return pairs_->getPair(rank)->address().bytes(); });
  std::vector<Descriptor> sockets(static_cast<std::size_t>(host.size()));
  for (int rank = 0; rank < host.size(); ++rank) {
    if (rank == host.rank()) continue;
    const auto at = static_cast<std::size_t>(rank);
    sockets[at] = duplicate_socket(socket_address(pairs_->getPair(rank)->address().bytes()), socket_address(ends[at]));
    if (sockets[at].get() < 0 && problem.empty()) problem = "there is no connection to rank " + std::to_string(rank);
  }
  return sockets;
}

void Mesh::connect_pairs(const Host& host, const std::vector<Address>& addresses, std::string& problem) {
  const std::jthread guard([&](const std::stop_token& stop) {
    if (!wait_for_end(stop, host, watchdog_)) return;
    for (int rank = 0; rank < host.size(); ++rank) {
      if (rank != host.rank()) pairs_->getPair(rank)->close();
    }
  });
  for (int rank = 0; rank < host.size(); ++rank) {
    if (rank == host.rank()) continue;
    const Address& address = addresses[static_cast<std::size_t>(rank)];
    try {
      pairs_->getPair(rank)->connect(address);
    } catch (const gloo::IoException& error) {
      problem = "rank " + std::to_string(rank) + " at " + text_of(address) + ": " + without_location(error.what());
      if (!is_refused(error) && !watchdog_.is_over()) throw gloo::IoException(problem);
    }
    // A pair that was closed meanwhile reports no error.
    if (host.aborted()) throw CommError(CommStatus::aborted, "aborted");
    if (!watchdog_.is_over()) continue;
    const std::string advice = address_.starts_with("127.") ? "" : kNameInterface;
    throw CommError(CommStatus::timeout, "rank " + std::to_string(rank) + " could not be reached at " +
                                             text_of(address) + " within " + std::to_string(host.deadline().count()) +
                                             " ms; this rank listens on " +
                                             with_interface(address_, network_interfaces()) + advice);
  }
}

void Mesh::begin(const char* name) noexcept {
  watchdog_.begin();
  waiter_.begin(name);
}

template <class Body>
void Mesh::with_pair(int rank, Body&& body) {
  try {
    body(*pairs_->getPair(rank));
  } catch (const gloo::IoException& error) {
    throw ConnectionLost(rank, without_location(error.what()));
  }
}

// Before a message that is larger than the send buffer, Gloo sets the buffer to twice the message. A first small
// message thus makes it small, and two chunks no longer fit. So the size is set again after each message larger than
// all before.
void Mesh::send(int to, const void* data, uint64_t bytes) {
  with_pair(to, [&](gloo::transport::Pair& pair) {
    const auto buffer = pair.createSendBuffer(kSlot, const_cast<void*>(data), bytes);
    buffer->send();
    buffer->waitSend();
  });
  uint64_t& largest = largest_sent_[static_cast<std::size_t>(to)];
  if (bytes <= largest) return;
  largest = bytes;
  make_send_buffer(watchdog_.socket(to), chunk_);
}

void Mesh::receive(int from, void* data, uint64_t bytes) {
  const int socket = watchdog_.socket(from);
  const auto sleep = [&](std::chrono::nanoseconds longest) {
    pollfd readable = {socket, POLLIN, 0};
    poll(&readable, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(longest).count()));
  };
  waiter_.until([&] { return is_readable(socket); }, from, sleep);
  with_pair(from, [&](gloo::transport::Pair& pair) { pair.createRecvBuffer(kSlot, data, bytes)->waitRecv(); });
}

void Mesh::abort() noexcept {
  waiter_.abort();
  watchdog_.cut();
}

}  // namespace ddprun::gloo_backend
