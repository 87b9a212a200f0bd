#include "peers.hpp"

#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>

namespace ddprun::ucx_backend {
namespace {

void note_loss(void* lost, ucp_ep_h, ucs_status_t) {
  *static_cast<char*>(lost) = 1;
}

// The names of its lanes, such as "posix/memory". UCX prints them in its report on an endpoint; before 1.14 it has no
// query for them.
std::vector<std::string> lanes_of(ucp_ep_h endpoint) {
  std::vector<std::string> lanes;
  char* text = nullptr;
  std::size_t length = 0;
  FILE* const stream = open_memstream(&text, &length);
  if (stream == nullptr) throw std::bad_alloc();
  ucp_ep_print_info(endpoint, stream);
  std::fclose(stream);
  std::istringstream report(text);
  std::free(text);
  // "#    lane[0]:  2:posix/memory.0 md[2] -> ..."
  for (std::string line; std::getline(report, line);) {
    const auto lane = line.find("lane[");
    const auto number = lane == std::string::npos ? lane : line.find(':', line.find("]:", lane) + 2);
    if (number == std::string::npos) continue;
    const std::string name = line.substr(number + 1, line.find_first_of(". ", number) - number - 1);
    if (name.find('/') != std::string::npos) lanes.push_back(name);
  }
  return lanes;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

// The destructor runs also if this throws: UCX must not report a loss to an object that is gone.
Peers::Peers(const Worker& worker, const std::vector<std::string>& addresses, const std::vector<bool>& by_memory,
             int self)
    : Peers(by_memory) {
  for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
    if (rank == static_cast<std::size_t>(self)) continue;
    ucp_ep_params_t wanted = {};
    wanted.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    wanted.address = reinterpret_cast<const ucp_address_t*>(addresses[rank].data());
    if (!by_memory[rank]) {
      wanted.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
      wanted.err_mode = UCP_ERR_HANDLING_MODE_PEER;
      wanted.err_handler = {note_loss, &lost_[rank]};
    }
    check(ucp_ep_create(worker.get(), &wanted, &endpoints_[rank]), CommStatus::invalid,
          "no transport leads to rank " + std::to_string(rank));
  }
}

// Endpoints through shared memory end with the worker: UCX cannot close them without waiting for the peer.
Peers::~Peers() {
  for (std::size_t rank = 0; rank < endpoints_.size(); ++rank) {
    if (endpoints_[rank] == nullptr || by_memory_[rank]) continue;
    ucp_request_param_t by_force = {};
    by_force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    by_force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    ucs_status_ptr_t const request = ucp_ep_close_nbx(endpoints_[rank], &by_force);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
}

bool Peers::is_by_tcp(int rank) const {
  const auto lanes = endpoint(rank) != nullptr ? lanes_of(endpoint(rank)) : std::vector<std::string>();
  return lanes.size() == 1 && lanes.front().starts_with("tcp/");
}

std::string Peers::lanes(const std::vector<bool>& without) const {
  std::set<std::string> lanes;
  for (std::size_t rank = 0; rank < endpoints_.size(); ++rank) {
    const bool is_left_out = rank < without.size() && without[rank];
    if (endpoints_[rank] == nullptr || is_left_out) continue;
    for (auto& name : lanes_of(endpoints_[rank])) lanes.insert(std::move(name));
  }
  return joined(lanes);
}

std::string Peers::transports(const std::vector<bool>& without) const {
  std::istringstream all(lanes(without));
  std::set<std::string> names;
  for (std::string lane; std::getline(all, lane, ',');) names.insert(lane.substr(0, lane.find('/')));
  return joined(names);
}

}  // namespace ddprun::ucx_backend
