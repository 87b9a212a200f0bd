// Gloo itself over TCP, without ddprun's plugin:
//
//     raw_gloo ring|bcube|halving_doubling|halving_doubling_poll PLACES SAMPLES WARMUP SIZE...
//
// PLACES is the number of ranks, all on this host, or the place of each rank: ADDRESS@NAMESPACE,... with the path of a
// network namespace and an address in it. halving_doubling is Gloo's classic algorithm; _poll sets its pairs to
// synchronous mode with busy polling.
#include <fcntl.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/barrier.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>

#include "measure.hpp"
#include "processes.hpp"

namespace {

struct Place {
  std::string address = "127.0.0.1";
  std::string network;  // the path of the namespace; "": this one
};

std::vector<Place> places_of(const std::string& words) {
  if (words.find('@') == std::string::npos) return std::vector<Place>(std::stoul(words));
  std::vector<Place> places;
  std::istringstream stream(words);
  for (std::string word; std::getline(stream, word, ',');) {
    const std::size_t at = word.find('@');
    if (at == std::string::npos) throw std::invalid_argument(word + ": expected ADDRESS@NAMESPACE");
    places.push_back({word.substr(0, at), word.substr(at + 1)});
  }
  return places;
}

// Call it before the first thread starts: each thread has its own namespace.
void enter(const Place& place) {
  if (place.network.empty()) return;
  const int space = open(place.network.c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) {
    throw std::system_error(errno, std::generic_category(), place.network);
  }
  close(space);
}

std::shared_ptr<gloo::rendezvous::Context> connect(const std::string& folder, const Place& place, int rank, int ranks) {
  std::shared_ptr<gloo::transport::Device> device =
      gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(place.address.c_str()));
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  return context;
}

// What the ranks need to connect. Construct it before forking them.
struct Meeting {
  Meeting(int count, std::size_t samples) : ranks(count), table(count, samples + 1) {
    std::string name = std::filesystem::temp_directory_path() / "ddprun-peer-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    folder = name;
    for (const char* mesh : {"calls", "barriers"}) std::filesystem::create_directory(folder / mesh);
  }
  ~Meeting() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  const int ranks;
  peers::SharedTable table;
  std::filesystem::path folder;
};

class RawGloo {
 public:
  // Barriers need a separate mesh, because polling pairs work with the classic algorithms only.
  RawGloo(const std::string& algorithm, const Place& place, int own, Meeting& meeting)
      : rank(own),
        size(meeting.ranks),
        is_classic_(algorithm != "ring" && algorithm != "bcube"),
        algorithm_(algorithm == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                        : gloo::AllreduceOptions::Algorithm::RING),
        table_(meeting.table),
        calls_(connect(meeting.folder / "calls", place, rank, size)),
        barriers_(connect(meeting.folder / "barriers", place, rank, size)) {
    if (algorithm != "halving_doubling_poll") return;
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) calls_->getPair(peer)->setSync(true, true);
    }
  }

  const int rank, size;
  float* allocate(std::size_t bytes) { return peers::page_aligned(bytes); }

  void prepare(float* data, std::size_t count) {
    if (!is_classic_) return;
    halving_doubling_.reset();
    halving_doubling_ = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(calls_, std::vector<float*>{data},
                                                                                static_cast<int>(count));
    barrier();  // the classic algorithms' buffers must exist before a peer writes to them
  }

  void allreduce(float* data, std::size_t count) {
    if (is_classic_) return halving_doubling_->run();
    gloo::AllreduceOptions options(calls_);
    options.setAlgorithm(algorithm_);
    options.setOutput(data, count);
    using Sum = void (*)(void*, const void*, const void*, std::size_t);
    options.setReduceFunction(Sum(&gloo::sum<float>));
    gloo::allreduce(options);
  }

  void barrier() {
    gloo::BarrierOptions options(barriers_);
    gloo::barrier(options);
  }

  std::vector<int64_t> gather(const std::vector<int64_t>& mine) { return table_.gather(rank, mine); }

 private:
  const bool is_classic_;
  const gloo::AllreduceOptions::Algorithm algorithm_;  // unless it is classic
  peers::SharedTable& table_;
  const std::shared_ptr<gloo::rendezvous::Context> calls_, barriers_;
  std::unique_ptr<gloo::AllreduceHalvingDoubling<float>> halving_doubling_;
};

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
constexpr const char* kLibrary =
    "gloo " TEXT(GLOO_VERSION_MAJOR) "." TEXT(GLOO_VERSION_MINOR) "." TEXT(GLOO_VERSION_PATCH);

}  // namespace

int main(int argc, char** argv) try {
  const std::string algorithm = argc > 2 ? argv[1] : "";
  const std::vector<std::string> known = {"ring", "bcube", "halving_doubling", "halving_doubling_poll"};
  if (std::find(known.begin(), known.end(), algorithm) == known.end()) {
    throw std::invalid_argument("expected ring, bcube, halving_doubling or halving_doubling_poll, and PLACES");
  }
  const std::vector<Place> places = places_of(argv[2]);
  const peers::Options options = peers::parse(argc, argv, 3);
  Meeting meeting(static_cast<int>(places.size()), static_cast<std::size_t>(options.samples));
  return peers::run_ranks(meeting.ranks, [&](int rank) {
    const Place& place = places[static_cast<std::size_t>(rank)];
    enter(place);
    RawGloo group(algorithm, place, rank, meeting);
    peers::Measurement(group, options).run(kLibrary);
    group.barrier();  // no rank exits while another still receives
  });
} catch (const std::exception& error) {
  std::fprintf(stderr, "raw_gloo: %s\n", error.what());
  return 2;
}
