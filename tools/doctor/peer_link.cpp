#include "tools/doctor/peers.hpp"

#include <endian.h>
#include <fmt/format.h>

#include <utility>  // Boost.Asio 1.74 needs it and does not include it

#include <boost/asio.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "ddprun/error.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::doctor {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// A connection: the ticket, then requests. A number is 8 bytes, big-endian.
//   0            -> the clock, in nanoseconds since 1970: a ping
//   milliseconds -> (the client sends bytes until the answer comes) the bytes that came, and in how many nanoseconds.
//                   The server counts for so long from the first byte on, so a slow network has nothing to drain. The
//                   last request of a connection.
constexpr uint64_t kPing = 0;

constexpr seconds kTicketLimit{1};
constexpr seconds kIdleLimit{5};
constexpr uint64_t kLongestStream = 60'000;  // milliseconds
constexpr std::size_t kBlock = 1 << 18;
constexpr int kWarmup = 5;
constexpr int kPings = 200;
constexpr milliseconds kPingTime{300};  // on a long way, fewer are enough

int64_t wall_clock() {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Starts an operation of `on`, a socket or an acceptor, and waits for its end. Returns 0 or an errno: ETIMEDOUT at the
// deadline, ECONNRESET if the peer has closed the connection.
template <class On, class Start>
int complete(asio::io_context& context, On& on, Clock::time_point deadline, Start start) {
  int result = ETIMEDOUT;
  bool ended = false;
  start([&](const error_code& error, auto...) {
    result = error == asio::error::eof ? ECONNRESET : error.value();
    ended = true;
  });
  context.restart();
  while (!ended && context.run_one_until(deadline) > 0) {
  }
  if (ended) return result;
  on.cancel();
  context.restart();
  context.run();
  return ETIMEDOUT;
}

class Connection {
 public:
  int connect(const std::string& address, int port, Clock::time_point deadline) {
    error_code error;
    const tcp::endpoint to(asio::ip::make_address(address, error), static_cast<uint16_t>(port));
    if (error) return EADDRNOTAVAIL;
    return complete(context, socket, deadline, [&](auto done) { socket.async_connect(to, done); });
  }
  int send(const void* data, std::size_t bytes, Clock::time_point deadline) {
    return complete(context, socket, deadline,
                    [&](auto done) { asio::async_write(socket, asio::buffer(data, bytes), done); });
  }
  int receive(void* data, std::size_t bytes, Clock::time_point deadline) {
    return complete(context, socket, deadline,
                    [&](auto done) { asio::async_read(socket, asio::buffer(data, bytes), done); });
  }

  void send_at_once() {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
  }

  asio::io_context context;
  tcp::socket socket{context};
};

// Counts what comes, and answers.
void serve_stream(Connection& to, milliseconds length) {
  std::vector<char> block(kBlock);
  uint64_t bytes = 0;
  const auto begin = Clock::now();
  auto end = begin + length + seconds(1);  // for the first byte
  while (Clock::now() < end) {
    std::size_t got = 0;
    const int error = complete(to.context, to.socket, end, [&](auto done) {
      to.socket.async_read_some(asio::buffer(block), [&got, done](const error_code& result, std::size_t count) {
        got = count;
        done(result);
      });
    });
    if (error != 0 && error != ETIMEDOUT) return;
    if (bytes == 0 && got > 0) end = Clock::now() + length;
    bytes += got;
  }
  const auto took = static_cast<uint64_t>(std::max<int64_t>(1, nanoseconds(Clock::now() - begin).count()));
  const std::array<uint64_t, 2> answer = {htobe64(bytes), htobe64(took)};
  to.send(answer.data(), sizeof answer, Clock::now() + kIdleLimit);
}

void serve_requests(Connection& to) {
  uint64_t request = kPing;
  while (to.receive(&request, sizeof request, Clock::now() + kIdleLimit) == 0) {
    if (request != kPing) return serve_stream(to, milliseconds(std::min(be64toh(request), kLongestStream)));
    const uint64_t now = htobe64(static_cast<uint64_t>(wall_clock()));
    if (to.send(&now, sizeof now, Clock::now() + kIdleLimit) != 0) return;
  }
}

int measure_pings(Connection& to, milliseconds limit, PeerPair& pair) {
  const auto enough = Clock::now() + kPingTime;
  std::vector<double> times;
  double shortest = 0;
  for (int i = 0; i < kWarmup + kPings; ++i) {
    const auto begin = Clock::now();
    const int64_t sent = wall_clock();
    uint64_t theirs = 0;
    if (const int error = to.send(&kPing, sizeof kPing, begin + limit)) return error;
    if (const int error = to.receive(&theirs, sizeof theirs, begin + limit)) return error;
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    if (i < kWarmup) continue;
    times.push_back(took);
    if (times.size() == 1 || took < shortest) {
      shortest = took;
      pair.clock_ahead_s = static_cast<double>(static_cast<int64_t>(be64toh(theirs)) - sent) * 1e-9 - took / 2;
    }
    if (Clock::now() > enough) break;
  }
  pair.round_trip_s = tools::median(std::move(times));
  return 0;
}

int measure_bandwidth(Connection& to, const PeersOptions& options, PeerPair& pair) {
  const auto deadline = Clock::now() + options.connect_limit + options.duration + seconds(1);
  const uint64_t duration = htobe64(static_cast<uint64_t>(options.duration.count()));
  if (const int error = to.send(&duration, sizeof duration, deadline)) return error;
  const std::vector<char> block(kBlock);
  const std::function<void(const error_code&)> send_on = [&](const error_code& error) {
    if (error) return;
    to.socket.async_write_some(asio::buffer(block), [&](const error_code& result, std::size_t) { send_on(result); });
  };
  send_on({});
  std::array<uint64_t, 2> answer{};
  const int error = to.receive(answer.data(), sizeof answer, deadline);
  to.socket.cancel();
  to.context.run();  // send_on ends here
  if (error != 0) return error;
  pair.bandwidth_bytes_per_s =
      static_cast<double>(be64toh(answer[0])) / (static_cast<double>(be64toh(answer[1])) * 1e-9);
  return 0;
}

}  // namespace

struct PeerListener::Socket {
  asio::io_context context;
  tcp::acceptor acceptor;
  explicit Socket(const tcp::endpoint& at) : acceptor(context, at) {}
};

PeerListener::PeerListener(const std::string& address, int port) try
    : socket_(new Socket({asio::ip::make_address(address), static_cast<uint16_t>(port)})) {
} catch (const boost::system::system_error& error) {
  throw Error(ExitCode::failure, fmt::format("cannot listen on {} port {}: {}", address, port, error.code().message()));
}

PeerListener::~PeerListener() = default;

int PeerListener::port() const {
  return socket_->acceptor.local_endpoint().port();
}

void PeerListener::serve(const std::string& ticket, milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (true) {
    Connection client;
    const auto accept = [&](auto done) { socket_->acceptor.async_accept(client.socket, done); };
    if (complete(socket_->context, socket_->acceptor, deadline, accept) != 0) return;
    client.send_at_once();
    std::string presented(ticket.size(), '\0');
    if (client.receive(presented.data(), presented.size(), Clock::now() + kTicketLimit) != 0) continue;
    if (presented == ticket) return serve_requests(client);
  }
}

PeerPair measure(const PeerHost& to, const std::string& ticket, const PeersOptions& options) {
  PeerPair pair;
  Connection link;
  pair.connect_errno = link.connect(to.address, to.port, Clock::now() + options.connect_limit);
  if (pair.connect_errno != 0) return pair;
  link.send_at_once();
  error_code ignored;
  pair.address = link.socket.local_endpoint(ignored).address().to_string();
  int error = link.send(ticket.data(), ticket.size(), Clock::now() + options.connect_limit);
  if (error == 0) error = measure_pings(link, options.connect_limit, pair);
  if (error == 0) error = measure_bandwidth(link, options, pair);
  if (error != 0) pair.error = std::strerror(error);
  link.socket.set_option(asio::socket_base::linger(true, 0), ignored);  // what is still to be sent is of no use
  return pair;
}

std::string random_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace ddprun::doctor
