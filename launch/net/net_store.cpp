#include "launch/net/net_store.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "ddprun/error.hpp"
#include "launch/net/connection.hpp"
#include "launch/net/protocol.hpp"

namespace ddprun::launch {
namespace {

using Clock = Connection::Clock;
using std::chrono::milliseconds;

class NetStore : public Store {
 public:
  // server: null, or the server of this store, in this process.
  NetStore(StoreAddress address, milliseconds timeout, std::unique_ptr<StoreServer> server)
      : server_(std::move(server)), address_(std::move(address)) {
    free_.push_back(std::make_unique<Connection>(address_, Clock::now() + timeout));
  }

  void set(const std::string& key, std::string_view value) override {
    call(exchange(milliseconds(0)).number(1).text(key).text(value), milliseconds(0));
  }

  std::optional<std::string> get(const std::string& key, milliseconds timeout) override {
    const std::string payload = call(exchange(timeout).number(0).text(key), timeout);
    ByteReader reader(payload);
    if (reader.number<Reply>() == Reply::late) return std::nullopt;
    return reader.text();
  }

  std::vector<std::string> allgather(const std::string& name, int rank, int size, std::string_view value,
                                     milliseconds timeout) override {
    const std::string mine = rank_key(name, rank);
    const std::string payload =
        call(exchange(timeout).number(1).text(mine).text(value).text(name).number(size), timeout);
    ByteReader reader(payload);
    if (reader.number<Reply>() == Reply::late) throw_missing_ranks(name, size, timeout, missing_ranks(reader));
    std::vector<std::string> values;
    while (!reader.empty()) values.push_back(reader.text());
    return values;
  }

 private:
  static ByteWriter exchange(milliseconds timeout) {
    return ByteWriter().number(Request::exchange).number(std::max<int64_t>(timeout.count(), 0));
  }

  // Sends one request and waits for its reply. Another thread uses another connection meanwhile.
  std::string call(const ByteWriter& message, milliseconds timeout) {
    std::string payload = send(message, Clock::now() + std::max(timeout, milliseconds(0)) + kAnswer);
    ByteReader reader(payload);
    const auto reply = reader.number<Reply>();
    if (reply == Reply::refused) throw Error(ExitCode::rendezvous, reader.text());
    if (reply == Reply::failed) throw Error(ExitCode::peer, reader.text() + " while this rank waited for the others");
    return payload;
  }

  std::string send(const ByteWriter& message, Clock::time_point deadline) try {
    auto connection = take();
    if (!connection) connection = std::make_unique<Connection>(address_, Clock::now() + kAnswer);
    connection->send(message);
    std::string payload = connection->receive(deadline);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(connection));
    return payload;
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    if (error.code() == ExitCode::peer) lost_ = error.what();
    throw;
  }

  // Null if none is free.
  std::unique_ptr<Connection> take() {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) throw Error(ExitCode::peer, lost_);
    if (free_.empty()) return nullptr;
    auto connection = std::move(free_.back());
    free_.pop_back();
    return connection;
  }

  const std::unique_ptr<StoreServer> server_;  // ends after the connections
  const StoreAddress address_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> free_;
  std::string lost_;  // the error of a connection that was lost; the server does not come back
};

}  // namespace

std::unique_ptr<Store> net_store(StoreAddress address, milliseconds timeout) {
  return std::make_unique<NetStore>(std::move(address), timeout, nullptr);
}

std::unique_ptr<Store> hosted_store(StoreAddress& address, milliseconds timeout) {
  auto server = store_server(address);
  address.port = server->port();
  return std::make_unique<NetStore>(address, timeout, std::move(server));
}

}  // namespace ddprun::launch
