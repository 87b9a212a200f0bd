#include "launch/net/store_server.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

#include <utility>  // Boost.Asio 1.74 needs it and does not include it

#include <boost/asio.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <deque>
#include <optional>
#include <set>
#include <thread>

#include "ddprun/error.hpp"
#include "launch/net/address.hpp"
#include "launch/net/hub.hpp"
#include "launch/net/protocol.hpp"

namespace ddprun::launch {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kHandshakeLimit{2000};
constexpr milliseconds kSweep{50};
constexpr milliseconds kLastWords{500};

// Boost.Asio 1.74 does not: a process that outlives this one would keep the port.
void close_in_children(int socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
}

}  // namespace

// One connection. It proves the secret first; from then on it is a client of the hub.
class StoreSession : public HubClient, public std::enable_shared_from_this<StoreSession> {
 public:
  StoreSession(tcp::socket socket, Hub& hub, const Secret& secret)
      : socket_(std::move(socket)), hub_(hub), secret_(secret), begin_(Clock::now()) {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    const auto peer = socket_.remote_endpoint(ignored);
    address_ = ignored ? "an unknown address" : peer.address().to_string();
  }

  void start() {
    const auto self = shared_from_this();
    asio::async_read(socket_, asio::buffer(first_), [self](error_code error, std::size_t) {
      if (!error && std::string_view(self->first_.data(), kHello.size()) == kHello) {
        self->answer();
      } else {
        self->close();
      }
    });
  }

  bool is_known() const { return known_; }
  bool is_open() const { return socket_.is_open(); }
  // Whether all that arrived is handled, and all answers are sent.
  bool is_idle() const {
    error_code ignored;
    return queue_.empty() && socket_.available(ignored) == 0;
  }
  Clock::time_point begin() const { return begin_; }

  void send(std::shared_ptr<const std::string> frame) override {
    queue_.push_back(std::move(frame));
    if (queue_.size() == 1) write();
  }
  void close() override {
    error_code ignored;
    socket_.close(ignored);
  }
  std::string address() const override { return address_; }

 private:
  void answer() {
    client_nonce_.assign(first_.data() + kHello.size(), kNonceBytes);
    server_nonce_ = make_nonce();
    queue_.push_back(std::make_shared<const std::string>(std::string(kHello) + server_nonce_ +
                                                         proof(secret_, "server", client_nonce_, server_nonce_)));
    write();
    const auto self = shared_from_this();
    asio::async_read(socket_, asio::buffer(proof_), [self](error_code error, std::size_t) {
      const std::string expected = proof(self->secret_, "client", self->client_nonce_, self->server_nonce_);
      if (error || !equal_proofs(expected, {self->proof_.data(), self->proof_.size()})) return self->close();
      self->known_ = true;
      self->read();
    });
  }

  void read() {
    const auto self = shared_from_this();
    asio::async_read(socket_, asio::buffer(header_), [self](error_code error, std::size_t) {
      const uint32_t length = error ? 0 : frame_length({self->header_.data(), self->header_.size()});
      if (error || length > kLongestFrame) return self->end();
      self->payload_.resize(length);
      asio::async_read(self->socket_, asio::buffer(self->payload_),
                       [self](error_code failed, std::size_t) { failed ? self->end() : self->handle(); });
    });
  }

  void handle() {
    try {
      hub_.handle(shared_from_this(), payload_, Clock::now());
    } catch (const std::exception&) {
      return end();
    }
    if (payload_.capacity() > (1 << 16)) std::string().swap(payload_);
    read();
  }

  void write() {
    const auto self = shared_from_this();
    asio::async_write(socket_, asio::buffer(*queue_.front()), [self](error_code error, std::size_t) {
      self->queue_.pop_front();
      if (error) {
        self->queue_.clear();
        return self->end();
      }
      if (!self->queue_.empty()) self->write();
    });
  }

  void end() {
    close();
    hub_.leave(shared_from_this());
  }

  tcp::socket socket_;
  Hub& hub_;
  const Secret& secret_;
  const Clock::time_point begin_;
  std::string address_;
  bool known_ = false;
  std::array<char, kFirstBytes> first_{};
  std::array<char, kProofBytes> proof_{};
  std::string client_nonce_, server_nonce_;
  std::array<char, 4> header_{};
  std::string payload_;
  std::deque<std::shared_ptr<const std::string>> queue_;
};

namespace {

// The number of unknown connections at a time. Others of the process must still get a descriptor.
std::size_t most_unknown() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 16, 1024);
}

}  // namespace

class StoreServer::Server {
 public:
  Server(const std::vector<std::string>& addresses, int port, Secret secret)
      : secret_(std::move(secret)), most_unknown_(most_unknown()), port_(port), timer_(io_), retry_(io_) {
    for (const std::string& address : addresses) listen(address);
    for (tcp::acceptor& acceptor : acceptors_) accept(acceptor);
    sweep();
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { io_.run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  ~Server() {
    asio::post(io_, [this] {
      stop_by_ = Clock::now() + kLastWords;
      error_code ignored;
      for (tcp::acceptor& acceptor : acceptors_) acceptor.close(ignored);
      stop_if_done();
    });
    thread_.join();
  }

  int port() const { return port_; }

 private:
  void listen(const std::string& address) try {
    const tcp::endpoint endpoint(asio::ip::make_address(address), static_cast<unsigned short>(port_));
    tcp::acceptor& acceptor = acceptors_.emplace_back(io_);
    acceptor.open(endpoint.protocol());
    close_in_children(acceptor.native_handle());
    acceptor.set_option(tcp::acceptor::reuse_address(true));  // a port whose connections have only just ended
    if (endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true));  // 0.0.0.0 is listened on too
    acceptor.bind(endpoint);
    acceptor.listen(4096);
    port_ = acceptor.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    const bool in_use = error.code() == asio::error::address_in_use;
    throw Error(ExitCode::rendezvous, "cannot listen on " + address + ":" + std::to_string(port_) + ": " +
                                          (in_use ? "the port is in use" + port_holder(port_) + "; choose another one"
                                                  : error.code().message()));
  }

  void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([this, &acceptor](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) {
        close_in_children(socket.native_handle());
        make_place();
        const auto session = std::make_shared<StoreSession>(std::move(socket), hub_, secret_);
        sessions_.insert(session);
        unknown_.push_back(session);
        session->start();
        return accept(acceptor);
      }
      drop_oldest();  // no descriptor left
      retry_.expires_after(kSweep);
      retry_.async_wait([this, &acceptor](error_code cancelled) {
        if (!cancelled && !stop_by_) accept(acceptor);
      });
    });
  }

  void make_place() {
    std::erase_if(unknown_, [](const auto& session) { return session->is_known() || !session->is_open(); });
    if (unknown_.size() >= most_unknown_) drop_oldest();
  }

  void drop_oldest() {
    if (unknown_.empty()) return;
    unknown_.front()->close();
    unknown_.pop_front();
  }

  void sweep() {
    const auto now = Clock::now();
    hub_.sweep(now);
    for (const auto& session : unknown_) {
      if (!session->is_known() && now - session->begin() > kHandshakeLimit) session->close();
    }
    make_place();
    std::erase_if(sessions_, [](const auto& session) { return !session->is_open(); });
    if (stop_by_) return stop_if_done();
    timer_.expires_after(kSweep);
    timer_.async_wait([this](error_code cancelled) {
      if (!cancelled) sweep();
    });
  }

  // The launcher of node 0 sends how its ranks ended, and ends this server at once: the other nodes must get it.
  void stop_if_done() {
    const bool idle = std::all_of(sessions_.begin(), sessions_.end(),
                                  [](const auto& session) { return session->is_idle() || !session->is_open(); });
    if (idle || Clock::now() >= *stop_by_) return io_.stop();
    timer_.expires_after(milliseconds(5));
    timer_.async_wait([this](error_code) { stop_if_done(); });
  }

  const Secret secret_;
  const std::size_t most_unknown_;
  int port_;
  asio::io_context io_;
  Hub hub_;
  std::deque<tcp::acceptor> acceptors_;
  asio::steady_timer timer_;
  asio::steady_timer retry_;
  std::set<std::shared_ptr<StoreSession>> sessions_;
  std::deque<std::shared_ptr<StoreSession>> unknown_;
  std::optional<Clock::time_point> stop_by_;
  std::thread thread_;
};

StoreServer::StoreServer(const std::vector<std::string>& addresses, int port, Secret secret)
    : server_(std::make_unique<Server>(addresses, port, std::move(secret))) {}
StoreServer::~StoreServer() = default;
int StoreServer::port() const {
  return server_->port();
}

}  // namespace ddprun::launch
