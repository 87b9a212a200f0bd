#include "tools/predict/links.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::predict {
namespace {

using nlohmann::json;

std::vector<Measured> measured(const FittedLink& fitted) {
  return tools::each(fitted.rows, [&](const BenchRow& row) {
    const Path path = fitted.is_within ? Path{1, row.bytes} : path_between(fitted.algorithm, row.shape, row.bytes);
    return Measured{path, row.seconds};
  });
}

// What the row says about a link; no rows in it yet.
std::optional<FittedLink> kind_of(const BenchRow& row, int64_t per_host) {
  const bool is_within = row.shape.hosts == 1;
  if (is_within && row.shape.per_host != per_host) return std::nullopt;
  if (is_within && row.backend == "shm")
    return FittedLink{"shm", "hierarchical", Algorithm::hierarchical, true, {}, {}};
  const auto algorithm = algorithm_of(row.backend, row.algorithm);
  if (!algorithm) return std::nullopt;
  if (!is_within && (algorithm == Algorithm::hierarchical || !shows_single_calls(*algorithm, row.shape.hosts))) {
    return std::nullopt;
  }
  return FittedLink{row.backend, row.algorithm, *algorithm, is_within, {}, {}};
}

void fit_one(FittedLink& fitted) {
  const auto times = measured(fitted);
  const auto refuse = [&](const std::string& reason) { throw Error(ExitCode::usage, fitted.text() + ": " + reason); };
  if (!is_determined(times)) {
    refuse("the measured sizes cannot separate latency from bandwidth; measure several, such as --sizes 4K,64K,1M,4M");
  }
  fitted.link = fit(times);
  if (fitted.link.beta == 0) refuse("the time does not grow with the size; measure larger vectors too");
}

// Rank 0 started the ranks of a file without hosts on its own host.
int64_t hosts_of(const json& file) {
  return std::max<int64_t>(1, static_cast<int64_t>(file.at("hosts").size()));
}

void require_one_rank_each(const json& file, const std::string& path) {
  for (const json& host : file.at("hosts")) {
    if (hosts_of(file) == 1 || host.at("ranks").size() == 1) continue;
    throw Error(ExitCode::usage, path + ": host " + host.at("name").get<std::string>() +
                                     " has several ranks; measure the links between hosts with one rank on each");
  }
}

BenchRow row_of(const json& row, int64_t hosts, const std::string& path) {
  BenchRow one;
  row.at("backend").get_to(one.backend);
  row.at("algorithm").get_to(one.requested);
  row.at("served").at("algorithm").get_to(one.algorithm);
  one.shape = {hosts, row.at("ranks").get<int64_t>() / hosts};
  row.at("size").get_to(one.bytes);
  row.at("median").get_to(one.seconds);
  if (!(one.seconds > 0)) {
    throw Error(ExitCode::usage, path + ": an allreduce of " + std::to_string(one.bytes) + " bytes has no time");
  }
  return one;
}

void read(const std::string& path, bool any_hosts, std::vector<BenchRow>& rows) {
  const std::string text = read_text(path);
  const std::size_t before = rows.size();
  try {
    const json file = json::parse(text);
    file.at("ddprun_bench");
    if (!any_hosts) require_one_rank_each(file, path);
    const auto has_own_memory = [&](const json& row) {
      return std::ranges::any_of(file.at("rows"), [&](const json& other) {
        return other.at("backend") == row.at("backend") && other.at("buffer") == "plugin";
      });
    };
    for (const json& row : file.at("rows")) {
      const bool in_training = row.at("collective") == "allreduce" && row.at("in_place") == true && row.at("ranks") > 1;
      if (!in_training || (row.at("buffer") != "plugin" && has_own_memory(row))) continue;
      rows.push_back(row_of(row, hosts_of(file), path));
    }
  } catch (const json::exception&) {
    throw Error(ExitCode::usage, path + ": not a file of `ddprun bench --json`");
  }
  if (rows.size() == before)
    throw Error(ExitCode::usage, path + ": has no allreduce in place between two or more ranks");
}

}  // namespace

std::string FittedLink::text() const {
  return (backend == "shm" ? backend : backend + " " + name) + (is_within ? " within a host" : " between hosts");
}

std::vector<FittedLink> fit_links(const std::vector<BenchRow>& rows, int64_t per_host) {
  std::vector<FittedLink> all;
  for (const BenchRow& row : rows) {
    const auto kind = kind_of(row, per_host);
    if (!kind) continue;
    auto place = std::ranges::find(all, kind->text(), &FittedLink::text);
    if (place == all.end()) place = all.insert(all.end(), *kind);
    place->rows.push_back(row);
  }
  if (std::ranges::count(all, false, &FittedLink::is_within) == 0) {
    throw Error(
        ExitCode::usage,
        "no file of --bench has an algorithm between hosts whose cost is known (ring; tree, halving_doubling and "
        "doubling of gloo; tree of ucx); start `ddprun bench --nnodes 2 ...` on two hosts");
  }
  for (FittedLink& fitted : all) fit_one(fitted);
  return all;
}

Links links_of(const std::vector<FittedLink>& fitted, const std::string& backend) {
  Links links;
  for (const FittedLink& one : fitted) {
    if (one.backend == backend || one.backend == "shm")
      (one.is_within ? links.within : links.between)[one.algorithm] = one.link;
  }
  return links;
}

bool is_determined(const std::vector<Measured>& measured) {
  if (measured.empty()) return false;
  const auto [least, most] = std::ranges::minmax(
      tools::each(measured, [](const Measured& one) { return one.path.bytes / one.path.messages; }));
  constexpr double kFactor = 4;
  return most >= kFactor * least;
}

Link fit(const std::vector<Measured>& measured) {
  Link best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const Link& link) {
    if (!(link.alpha >= 0 && link.beta >= 0)) return;
    double sum = 0;
    for (const Measured& one : measured) sum += std::abs(std::log(link.seconds(one.path) / one.seconds));
    if (sum < least) least = sum, best = link;
  };
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Path a = measured[i].path;
    const double s = measured[i].seconds;
    consider({s / a.messages, 0});
    consider({0, s / a.bytes});
    for (std::size_t j = 0; j < i; ++j) {
      const Path b = measured[j].path;
      const double t = measured[j].seconds, determinant = a.messages * b.bytes - b.messages * a.bytes;
      if (determinant != 0) {
        consider({(s * b.bytes - t * a.bytes) / determinant, (t * a.messages - s * b.messages) / determinant});
      }
    }
  }
  for (const Measured& one : measured) {
    best.misfits.push_back({one.path.bytes / one.path.messages, best.seconds(one.path) / one.seconds - 1});
  }
  return best;
}

std::vector<BenchRow> read_bench(const std::vector<std::string>& paths, bool any_hosts) {
  std::vector<BenchRow> rows;
  for (const std::string& path : paths) read(path, any_hosts, rows);
  return rows;
}

}  // namespace ddprun::predict
