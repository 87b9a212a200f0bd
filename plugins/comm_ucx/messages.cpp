#include "messages.hpp"

#include <algorithm>
#include <thread>

namespace ddprun::ucx_backend {
namespace {

// A tag holds: kind of message, number of the collective (modulo 2^24), label, source rank.
constexpr int kKindShift = 60, kNumberShift = 36, kLabelShift = 20;
constexpr ucp_tag_t kOfCollective = ucp_tag_t{1} << kKindShift, kNotice = ucp_tag_t{2} << kKindShift;
constexpr ucp_tag_t kAllBits = ~ucp_tag_t{0}, kKindBits = ucp_tag_t{15} << kKindShift;
constexpr uint32_t kNumbers = 1u << (kKindShift - kNumberShift);
constexpr uint64_t kFitsInSocket = 8192;

std::vector<bool> ranks_here(const std::vector<host::Process>& processes, int self) {
  std::vector<bool> are;
  const auto& own = processes[static_cast<std::size_t>(self)];
  for (const auto& process : processes) are.push_back(host::share_host(process, own));
  are[static_cast<std::size_t>(self)] = true;
  return are;
}

int number_of(const std::vector<bool>& chosen) {
  return static_cast<int>(std::count(chosen.begin(), chosen.end(), true));
}

// UCX detects the kind of GPU memory itself: ordinary, managed or mapped.
ucp_request_param_t in_memory(Memory memory) {
  ucp_request_param_t how = {};
  if (memory == Memory::cuda) return how;
  how.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  return how;
}

}  // namespace

Messages::Messages(const Host& host)
    : host_(host),
      processes_(host::processes_of(host)),
      liveness_(processes_, host.rank()),
      silence_(host, processes_),
      here_(ranks_here(processes_, host.rank())),
      chosen_(Transports::of(host, number_of(here_))),
      waiter_(host, number_of(here_), are_by_memory() ? shm::Poll::memory : shm::Poll::system_call,
              [this] { return lost(); }) {}

// Otherwise UCX polls its sockets, with a system call.
bool Messages::are_by_memory() const noexcept {
  return number_of(here_) == host_.size() && chosen_.share_memory();
}

void Messages::connect() {
  begin("create");
  context_ = std::make_unique<Context>(chosen_, host_.size(), number_of(here_), host_.device() >= 0);
  worker_ = std::make_unique<Worker>(*context_);
  active_ = std::make_unique<ActiveMessages>(worker_->get());
  require_equal_transports();
  const auto addresses = host_.allgather(worker_->address());
  const auto by_memory = chosen_.share_memory() ? here_ : std::vector<bool>(here_.size(), false);
  peers_ = std::make_unique<Peers>(*worker_, addresses, by_memory, host_.rank());
  greet();
}

void Messages::require_equal_transports() const {
  const auto all_chosen = host_.allgather(chosen_.tls);
  for (std::size_t rank = 0; rank < all_chosen.size(); ++rank) {
    if (all_chosen[rank] == chosen_.tls) continue;
    throw CommError(CommStatus::mismatch, "rank " + std::to_string(rank) + " has transports " + all_chosen[rank] +
                                              ", rank " + std::to_string(host_.rank()) + " has " + chosen_.tls +
                                              "; set comm.options.tls or UCX_TLS to the same value on all ranks");
  }
}

// UCX connects with the first message. Sending one now means that no collective waits for it.
void Messages::greet() {
  auto how = in_memory(Memory::host);
  const auto posted = ucp_tag_recv_nbx(worker_->get(), &notice_, sizeof notice_, kNotice, kKindBits, &how);
  if (UCS_PTR_IS_ERR(posted)) fail(UCS_PTR_STATUS(posted), host_.rank());
  active_to_.assign(here_.size(), 0);
  active_from_ = active_to_;
  exchange(0);
  silence_.find_connections();
  transports_ = host_.size() == 1 ? "self" : peers_->transports({});
  if (host_.size() == 1) return;
  host_.log(host_.rank() == 0 ? DDPRUN_LOG_INFO : DDPRUN_LOG_DEBUG,
            "rank " + std::to_string(host_.rank()) + " reaches the others by " + peers_->lanes({}));

  const bool is_possible = ActiveMessages::is_possible();
  for (std::size_t rank = 0; rank < active_to_.size(); ++rank) {
    active_to_[rank] = is_possible && peers_->is_by_tcp(static_cast<int>(rank)) ? 1 : 0;
  }
  exchange(1);
}

// Sends each other rank its byte of active_to_, and receives those of active_from_.
void Messages::exchange(int label) {
  std::vector<Transfer> transfers;
  for (int rank = 0; rank < host_.size(); ++rank) {
    if (rank == host_.rank()) continue;
    const Message message = {.peer = rank, .label = label, .bytes = 1};
    transfers.push_back(receive(message, &active_from_[static_cast<std::size_t>(rank)]));
    transfers.push_back(send(message, &active_to_[static_cast<std::size_t>(rank)]));
  }
  for (auto& transfer : transfers) wait(transfer);
}

void Messages::begin(const char* name, Memory memory) noexcept {
  memory_ = memory;
  how_ = in_memory(memory);
  if (active_ != nullptr) active_->begin();
  number_ = (number_ + 1) % kNumbers;
  awaited_ = -1;
  waiter_.begin(name);
}

ucp_tag_t Messages::tag(int label, int source) const noexcept {
  return kOfCollective | ucp_tag_t{number_} << kNumberShift | static_cast<ucp_tag_t>(label) << kLabelShift |
         static_cast<ucp_tag_t>(source);
}

bool Messages::is_active(const Message& message) const noexcept {
  const auto peer = static_cast<std::size_t>(message.peer);
  return active_to_[peer] != 0 && active_from_[peer] != 0 && memory_ == Memory::host && message.bytes > kFitsInSocket &&
         !message.confirmed;
}

Transfer Messages::send(const Message& message, const void* data) {
  const auto [to, label, bytes, confirmed] = message;
  const ucp_tag_t name = tag(label, host_.rank());
  const bool waits = !peers_->is_by_memory(to) && (confirmed || bytes > kFitsInSocket);
  const auto send = waits ? ucp_tag_send_sync_nbx : ucp_tag_send_nbx;
  void* const request = is_active(message) ? active_->send(peers_->endpoint(to), name, data, bytes, how_)
                                           : send(peers_->endpoint(to), data, bytes, name, &how_);
  if (UCS_PTR_IS_ERR(request)) fail(UCS_PTR_STATUS(request), to);
  return {.request = request, .peer = to};
}

Transfer Messages::receive(const Message& message, void* data, Use use) {
  const auto [from, label, bytes, confirmed] = message;
  if (is_active(message)) {
    return {.arrival = &active_->expect(tag(label, from), data, bytes, std::move(use)), .peer = from};
  }
  auto how = how_;
  how.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;  // if it completes at once, UCX 1.13 does not report the length
  void* const request = ucp_tag_recv_nbx(worker_->get(), data, bytes, tag(label, from), kAllBits, &how);
  if (UCS_PTR_IS_ERR(request)) fail(UCS_PTR_STATUS(request), from);
  return {.request = request, .bytes = bytes, .peer = from, .is_receive = true};
}

bool Messages::is_over(Transfer& transfer) {
  if (transfer.arrival != nullptr) {
    const auto status = transfer.arrival->status;
    if (status == UCS_INPROGRESS) return false;
    active_->collect(*std::exchange(transfer.arrival, nullptr));
    if (status != UCS_OK) fail(status, transfer.peer);
  }
  if (transfer.request == nullptr) return true;
  ucp_tag_recv_info_t info = {};
  const auto status = transfer.is_receive ? ucp_tag_recv_request_test(transfer.request, &info)
                                          : ucp_request_check_status(transfer.request);
  if (status == UCS_INPROGRESS) return false;
  ucp_request_free(transfer.request);
  transfer.request = nullptr;
  if (status != UCS_OK) fail(status, transfer.peer);
  if (transfer.is_receive && info.length != transfer.bytes) fail(UCS_ERR_MESSAGE_TRUNCATED, transfer.peer);
  return true;
}

// The rank that a failed peer blames comes first.
void Messages::fail(ucs_status_t status, int peer) {
  const std::string warnings = take_warnings();
  const std::string why = warnings.empty() ? ucs_status_string(status) : warnings;
  if (status == UCS_ERR_MESSAGE_TRUNCATED) {
    throw CommError(CommStatus::mismatch,
                    "rank " + std::to_string(peer) +
                        " has sent another number of bytes than was expected: the ranks call different collectives");
  }
  if (status == UCS_ERR_NO_MEMORY) throw CommError(CommStatus::no_memory, "UCX is out of memory: " + why);
  drain();
  culprit_ = notice_ >= 0 ? notice_ : peer;
  throw CommError(CommStatus::peer_lost,
                  "lost rank " + std::to_string(culprit_) + (culprit_ == peer ? ": " + why : ""));
}

void Messages::wait(Transfer& transfer) {
  if (is_over(transfer)) return;
  awaited_ = transfer.peer;
  const auto ready = [&] {
    ucp_worker_progress(worker_->get());
    return is_over(transfer);
  };
  waiter_.until(ready, -1, [&](std::chrono::nanoseconds longest) { worker_->sleep(longest); });
}

// What ready() waits for does not wake the worker, so sleeps are short.
void Messages::wait_for(const std::function<bool()>& ready, const std::string& what) {
  awaited_ = -1;
  const auto asked = [&] {
    if (!is_closed()) ucp_worker_progress(worker_->get());
    return ready();
  };
  const auto sleep = [](std::chrono::nanoseconds longest) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(longest, std::chrono::microseconds(50)));
  };
  try {
    waiter_.until(asked, -1, sleep);
  } catch (const CommError& failure) {
    if (failure.status() != CommStatus::timeout) throw;
    throw CommError(CommStatus::timeout,
                    "waited for " + what + " for " + std::to_string(host_.deadline().count()) + " ms");
  }
}

void Messages::close(int cause) noexcept {
  if (is_closed()) return;
  cause_ = cause >= 0 ? cause : host_.rank();
  const auto how = in_memory(Memory::host);
  for (int rank = 0; peers_ != nullptr && rank < host_.size(); ++rank) {
    if (rank == host_.rank() || peers_->is_lost(rank) || liveness_.has_ended(rank)) continue;
    ucp_tag_send_nbx(peers_->endpoint(rank), &cause_, sizeof cause_, kNotice, &how);
  }
  drain();
  peers_.reset();
  worker_.reset();
}

void Messages::disconnect() noexcept {
  peers_.reset();
  worker_.reset();
  active_.reset();
  context_.reset();
}

int Messages::lost() {
  if (notice_ < 0 && awaited_ >= 0 && (peers_->is_lost(awaited_) || liveness_.has_ended(awaited_))) {
    drain();
    culprit_ = awaited_;
  }
  if (notice_ >= 0) culprit_ = notice_;
  if (const auto& silent = silence_.ranks(); culprit_ < 0 && !silent.empty()) culprit_ = silent.front();
  return culprit_;
}

// Receives what has arrived.
void Messages::drain() noexcept {
  constexpr int kMost = 10'000;
  for (int i = 0; i < kMost && ucp_worker_progress(worker_->get()) != 0; ++i) {
  }
}

}  // namespace ddprun::ucx_backend
