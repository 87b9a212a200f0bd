#include "comm/checked_backend.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace ddprun::comm {
namespace {

class CheckedBackend : public CallBackend {
 public:
  CheckedBackend(std::unique_ptr<CommBackend> inner, std::unique_ptr<FingerprintExchange> exchange,
                 std::chrono::milliseconds deadline)
      : inner_(std::move(inner)), exchange_(std::move(exchange)), deadline_(deadline) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  const Capabilities& capabilities() const override { return inner_->capabilities(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void throw_if_failed() override { inner_->throw_if_failed(); }
  void abort() noexcept override {
    exchange_->abort();
    inner_->abort();
  }

 protected:
  RequestPtr start(const Call& call) override {
    if (failed_) throw Error(ExitCode::peer, prefix(call) + "the ranks have disagreed or lost one another before");
    failed_ = true;  // until all have come and agreed
    require_agreement(call);
    failed_ = false;
    return forward(*inner_, call);
  }

 private:
  void require_agreement(const Call& call) {
    const Fingerprint mine = fingerprint(call);
    const auto prints = gather(call, mine);
    const bool agreed = std::all_of(prints.begin(), prints.end(), [&](const auto& print) { return print == mine; });
    if (agreed) return;
    throw Error(ExitCode::peer,
                name() + ": rank " + std::to_string(rank()) + ": mismatch: " + describe_disagreement(prints));
  }

  std::span<const Fingerprint> gather(const Call& call, const Fingerprint& mine) {
    try {
      return exchange_->exchange(mine, deadline_);
    } catch (const Error& error) {
      throw Error(error.code(), prefix(call) + error.what());
    }
  }

  std::unique_ptr<CommBackend> inner_;
  std::unique_ptr<FingerprintExchange> exchange_;
  std::chrono::milliseconds deadline_;
  bool failed_ = false;
};

class BackendExchange : public FingerprintExchange {
 public:
  explicit BackendExchange(CommBackend& backend)
      : backend_(backend), prints_(static_cast<std::size_t>(backend.size())) {}

  std::span<const Fingerprint> exchange(const Fingerprint& mine, std::chrono::milliseconds deadline) override {
    const Buffer recv{prints_.data(), prints_.size() * sizeof(Fingerprint), DType::uint8};
    backend_.allgather(&mine, recv)->wait(deadline);
    return prints_;
  }

  void abort() noexcept override {}  // the backend's own abort ends the allgather

 private:
  CommBackend& backend_;
  std::vector<Fingerprint> prints_;
};

}  // namespace

std::unique_ptr<CommBackend> checked(std::unique_ptr<CommBackend> inner, std::unique_ptr<FingerprintExchange> exchange,
                                     std::chrono::milliseconds deadline) {
  return std::make_unique<CheckedBackend>(std::move(inner), std::move(exchange), deadline);
}

std::unique_ptr<FingerprintExchange> exchange_over(CommBackend& backend) {
  return std::make_unique<BackendExchange>(backend);
}

}  // namespace ddprun::comm
