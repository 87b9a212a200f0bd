#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/console/table.hpp"
#include "cli/console/units.hpp"
#include "tools/doctor/judge_peers.hpp"
#include "tools/doctor/output.hpp"
#include "tools/doctor/peers_json.hpp"

namespace ddprun::doctor {
namespace {

std::string end_of(const PeerHost& host) {
  return fmt::format("{} (rank {})", host.name, host.rank);
}

std::string connection(const PeerPair& pair) {
  if (pair.connect_errno != 0) return std::strerror(pair.connect_errno);
  return pair.error.empty() ? "ok" : pair.error;
}

}  // namespace

std::string peers_text(const PeersReport& report) {
  if (report.pairs.empty()) return "";
  using console::Align;
  console::Table table({{"from"},
                        {"to"},
                        {"interface"},
                        {"address"},
                        {"port", Align::right},
                        {"round trip", Align::right},
                        {"Gbit/s", Align::right},
                        {"path MTU", Align::right},
                        {"connection"}});
  for (const PeerPair& pair : report.pairs) {
    const PeerHost& to = report.hosts[pair.to];
    table.row({end_of(report.hosts[pair.from]), end_of(to), pair.interface.empty() ? "-" : pair.interface, to.address,
               std::to_string(to.port), pair.round_trip ? console::human_time(*pair.round_trip) : "-",
               pair.bandwidth ? fmt::format("{:.3g}", *pair.bandwidth * 8e-9) : "-",
               pair.path_mtu ? std::to_string(*pair.path_mtu) : "-", connection(pair)});
  }
  return table.printed();
}

nlohmann::ordered_json peers_json(const PeersReport& report, const std::vector<Finding>& findings) {
  auto hosts = nlohmann::ordered_json::array(), pairs = nlohmann::ordered_json::array();
  for (const PeerHost& host : report.hosts) hosts.push_back(to_json(host));
  for (const PeerPair& pair : report.pairs) pairs.push_back(to_json(pair));
  return {{"hosts", hosts}, {"pairs", pairs}, {"findings", to_json(findings)}};
}

}  // namespace ddprun::doctor
