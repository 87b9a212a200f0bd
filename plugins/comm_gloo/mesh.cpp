#include "mesh.hpp"

#include <gloo/common/error.h>
#include <gloo/transport/device.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <stop_token>
#include <string_view>

#include "address.hpp"
#include "ddprun/plugin/network_interface.hpp"
#include "host/liveness.hpp"
#include "sigpipe.hpp"
#include "transport.hpp"

namespace ddprun::gloo_backend {
namespace {

std::shared_ptr<gloo::transport::Device> make_device(const Host& host, bool one_host) {
  gloo::transport::tcp::attr where;
  where.hostname = listening_address(host, one_host, network_interfaces());
  return gloo::transport::tcp::CreateDevice(where);
}

// The context for Gloo's algorithms.
class Context final : public gloo::Context {
 public:
  Context(std::shared_ptr<gloo::transport::Device> device, std::shared_ptr<gloo::transport::Context> transport)
      : gloo::Context(transport->rank, transport->size) {
    device_ = std::move(device);
    transportContext_ = std::move(transport);
  }
};

using Address = std::vector<char>;  // in Gloo's format

sockaddr_storage socket_address(const Address& address) {
  return gloo::transport::tcp::Address(address).getSockaddr();
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
  constexpr std::chrono::milliseconds kLook(20);
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && !host.aborted() && !watchdog.is_over()) {
    never.wait_for(lock, stop, std::min(kLook, watchdog.remaining()), [] { return false; });
  }
  return !stop.stop_requested();
}

}  // namespace

Mesh::Mesh(const Host& host, const std::vector<host::Place>& places) : watchdog_(host, places) {
  const NoSigpipe quiet;
  device_ = make_device(host, host::leaders_of(places).size() == 1);
  try {
    serve(connect(host));
  } catch (const gloo::IoException& error) {
    const auto status = watchdog_.is_late() ? CommStatus::timeout : CommStatus::peer_lost;
    throw CommError(status, std::string("the ranks could not connect: ") + without_location(error.what()));
  }
  context_->setTimeout(host.deadline());
}

Mesh::~Mesh() {
  watchdog_.stop();
}

std::vector<Descriptor> Mesh::connect(const Host& host) {
  constexpr int kAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    std::string problem;
    auto sockets = try_to_connect(host, problem);
    const auto results = host.allgather(problem.empty() ? "y" : "n");
    if (std::ranges::count(results, "y") == host.size()) return sockets;
    if (attempt == kAttempts) {
      throw CommError(CommStatus::peer_lost,
                      "the ranks could not connect, after " + std::to_string(kAttempts) +
                          " attempts: " + (problem.empty() ? "another rank has no connection" : problem));
    }
  }
}

std::vector<Descriptor> Mesh::try_to_connect(const Host& host, std::string& problem) {
  pairs_ = device_->createContext(host.rank(), host.size());
  pairs_->setTimeout(host.deadline());
  const auto listening = exchange(host, [&](int rank) { return pairs_->createPair(rank)->address().bytes(); });
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
    try {
      pairs_->getPair(rank)->connect(addresses[static_cast<std::size_t>(rank)]);
    } catch (const gloo::IoException& error) {
      if (!is_refused(error)) throw;
      problem = without_location(error.what());
    }
    // A pair that was closed meanwhile reports no error.
    if (host.aborted()) throw CommError(CommStatus::aborted, "aborted");
    if (watchdog_.is_over())
      throw CommError(CommStatus::timeout, "rank " + std::to_string(rank) + " could not be reached within " +
                                               std::to_string(host.deadline().count()) + " ms");
  }
}

void Mesh::serve(std::vector<Descriptor> sockets) {
  probe_ = pairs_->createUnboundBuffer(nullptr, 0);
  context_ = std::make_shared<Context>(device_, std::make_shared<InterruptibleContext>(watchdog_, pairs_));
  watchdog_.watch(std::move(sockets), [this](int rank) { return is_closed(rank); });
}

// Gloo does not report whether a pair is closed. But a receive on a closed pair throws: IoException if the peer closed
// it, EnforceNotMet if close() did. A receive posted on an open pair never completes, because the peer has gone.
bool Mesh::is_closed(int rank) {
  constexpr uint64_t kProbeSlot = ~uint64_t{0};
  try {
    probe_->recv(rank, kProbeSlot, 0, 0);
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

void Mesh::close() noexcept {
  watchdog_.cut();
  try {
    context_->closeConnections();
  } catch (const std::exception&) {
    // The connections are closed; the destructor frees what Gloo could not.
  }
}

}  // namespace ddprun::gloo_backend
