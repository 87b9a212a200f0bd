#include "launch/net/net_store.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <utility>  // Boost.Asio 1.74 needs it and does not include it

#include <boost/asio.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/subprocess.hpp"
#include "ddprun/error.hpp"
#include "launch/net/address.hpp"
#include "launch/net/connection.hpp"
#include "launch/net/hub.hpp"

namespace ddprun::launch {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kHandshakeLimit{2000};
constexpr milliseconds kSweep{50}, kLastSweep{5};
constexpr milliseconds kLastWords{500};

// The number of unknown connections at a time. Others of the process must still get a descriptor.
std::size_t most_unknown() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 16, 1024);
}

// The server's end of a connection. Once it has proved the secret, it is a client of the hub.
class StoreSession : public HubClient, public std::enable_shared_from_this<StoreSession> {
 public:
  StoreSession(tcp::socket socket, Hub& hub, const Secret& secret)
      : socket_(std::move(socket)), hub_(hub), greeting_(std::in_place, Greeting::Side::server, secret) {
    error_code error;
    const auto peer = socket_.remote_endpoint(error);
    address_ = error ? "an unknown address" : peer.address().to_string();
    set_options(socket_.native_handle());
    socket_.non_blocking(true, error);
  }

  void read() {
    socket_.async_wait(tcp::socket::wait_read,
                       [self = shared_from_this()](error_code error) { error ? self->end() : self->handle(); });
  }

  bool is_known() const { return !greeting_; }  // the other side knows the secret
  bool is_open() const { return socket_.is_open(); }
  bool is_idle() const {  // all that arrived is read, and all that was queued is sent
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
  void handle() try {
    std::array<char, 65536> buffer;
    error_code error;
    received_.append(buffer.data(), socket_.read_some(asio::buffer(buffer), error));
    if (error && error != asio::error::would_block) return end();
    if (greeting_) greet();
    std::string payload;
    while (!greeting_ && take_frame(received_, payload, kLongestFrame)) {
      hub_.handle(shared_from_this(), payload, Clock::now());
    }
    read();
  } catch (const std::exception&) {
    end();
  }

  void greet() {
    std::string reply;
    const auto result = greeting_->step(received_, reply);
    if (!reply.empty()) send(std::make_shared<const std::string>(std::move(reply)));
    if (result == Greeting::Result::complete) return greeting_.reset();
    if (result != Greeting::Result::incomplete) throw std::runtime_error("no proof of the secret");
  }

  // After an error, handle() still reads the other side's last words, and then the end.
  void write() {
    const auto sent = [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return;
      self->queue_.pop_front();
      if (!self->queue_.empty()) self->write();
    };
    asio::async_write(socket_, asio::buffer(*queue_.front()), sent);
  }

  void end() {
    close();
    hub_.leave(shared_from_this());
  }

  tcp::socket socket_;
  Hub& hub_;
  std::optional<Greeting> greeting_;  // until it is complete
  const Clock::time_point begin_ = Clock::now();
  std::string address_;
  std::string received_;
  std::deque<std::shared_ptr<const std::string>> queue_;
};

class Server final : public StoreServer {
 public:
  Server(const StoreAddress& address, bool survives)
      : secret_(address.secret), most_unknown_(most_unknown()), port_(address.port), hub_(survives), timer_(io_) {
    for (const std::string& each : listening_addresses(address.host, secret_.empty())) listen(each);
    for (tcp::acceptor& acceptor : acceptors_) accept(acceptor);
    sweep();
    thread_ = quiet_thread([this] { io_.run(); });
  }

  ~Server() override {
    asio::post(io_, [this] {
      stop_by_ = Clock::now() + kLastWords;
      error_code ignored;
      for (tcp::acceptor& acceptor : acceptors_) acceptor.close(ignored);
      timer_.cancel();  // sweeps now
    });
    thread_.join();
  }

  int port() const override { return port_; }

 private:
  void listen(const std::string& address) try {
    const tcp::endpoint endpoint(asio::ip::make_address(address), static_cast<unsigned short>(port_));
    tcp::acceptor& acceptor = acceptors_.emplace_back(io_);
    acceptor.open(endpoint.protocol());
    ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);   // asio does not do it
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
        sessions_.push_back(std::make_shared<StoreSession>(std::move(socket), hub_, secret_));
        sessions_.back()->read();
        limit_unknown(most_unknown_);
        return accept(acceptor);
      }
      limit_unknown(0);  // no descriptor left
      paused_.push_back(&acceptor);
    });
  }

  // Closes the oldest of the connections that have not proved the secret, if they are more than `most`.
  void limit_unknown(std::size_t most) {
    const auto is_unknown = [](const auto& session) { return session->is_open() && !session->is_known(); };
    const auto count = std::count_if(sessions_.begin(), sessions_.end(), is_unknown);
    if (static_cast<std::size_t>(count) <= most) return;
    (*std::find_if(sessions_.begin(), sessions_.end(), is_unknown))->close();
  }

  void sweep() {
    const auto now = Clock::now();
    hub_.sweep(now);
    for (tcp::acceptor* acceptor : std::exchange(paused_, {})) accept(*acceptor);
    std::erase_if(sessions_, [](const auto& session) { return !session->is_open(); });
    for (const auto& session : sessions_) {
      if (!session->is_known() && now - session->begin() > kHandshakeLimit) session->close();
    }
    // The launcher of node 0 sends how its ranks ended, and ends this server at once: the other nodes must get it.
    const auto is_idle = [](const auto& session) { return session->is_idle(); };
    if (stop_by_ && (now >= *stop_by_ || std::all_of(sessions_.begin(), sessions_.end(), is_idle))) return io_.stop();
    timer_.expires_after(stop_by_ ? kLastSweep : kSweep);
    timer_.async_wait([this](error_code) { sweep(); });
  }

  const Secret secret_;
  const std::size_t most_unknown_;
  int port_;
  asio::io_context io_;
  Hub hub_;
  std::deque<tcp::acceptor> acceptors_;
  asio::steady_timer timer_;
  std::vector<tcp::acceptor*> paused_;                  // until the next sweep
  std::deque<std::shared_ptr<StoreSession>> sessions_;  // the oldest first
  std::optional<Clock::time_point> stop_by_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<StoreServer> store_server(const StoreAddress& address, bool survives) {
  return std::make_unique<Server>(address, survives);
}

}  // namespace ddprun::launch
