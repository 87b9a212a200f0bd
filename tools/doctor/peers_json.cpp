#include "tools/doctor/peers_json.hpp"

#include <nlohmann/json.hpp>

namespace ddprun::doctor {
namespace {

template <class Number>
nlohmann::ordered_json or_null(const std::optional<Number>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

template <class Number>
std::optional<Number> number_from(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional<Number>(value.get<Number>());
}

}  // namespace

nlohmann::ordered_json to_json(const PeerHost& host) {
  return {{"rank", host.rank}, {"name", host.name}, {"interface", host.interface}, {"address", host.address},
          {"mtu", host.mtu},   {"port", host.port}, {"version", host.version},     {"error", host.error}};
}

PeerHost host_from(const nlohmann::json& value) {
  PeerHost host;
  host.rank = value.at("rank");
  host.name = value.at("name");
  host.interface = value.at("interface");
  host.address = value.at("address");
  host.mtu = value.at("mtu");
  host.port = value.at("port");
  host.version = value.at("version");
  host.error = value.at("error");
  return host;
}

nlohmann::ordered_json to_json(const PeerPair& pair) {
  return {{"from", pair.from},
          {"to", pair.to},
          {"interface", pair.interface},
          {"address", pair.address},
          {"connect_errno", pair.connect_errno},
          {"error", pair.error},
          {"round_trip_s", or_null(pair.round_trip)},
          {"bandwidth_bytes_per_s", or_null(pair.bandwidth)},
          {"clock_ahead_s", or_null(pair.clock_ahead)},
          {"path_mtu", or_null(pair.path_mtu)}};
}

PeerPair pair_from(const nlohmann::json& value) {
  PeerPair pair;
  pair.from = value.at("from");
  pair.to = value.at("to");
  pair.interface = value.at("interface");
  pair.address = value.at("address");
  pair.connect_errno = value.at("connect_errno");
  pair.error = value.at("error");
  pair.round_trip = number_from<double>(value.at("round_trip_s"));
  pair.bandwidth = number_from<double>(value.at("bandwidth_bytes_per_s"));
  pair.clock_ahead = number_from<double>(value.at("clock_ahead_s"));
  pair.path_mtu = number_from<int64_t>(value.at("path_mtu"));
  return pair;
}

}  // namespace ddprun::doctor
