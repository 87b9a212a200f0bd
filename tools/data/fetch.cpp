#include "tools/data/fetch.hpp"

#include <algorithm>
#include <filesystem>

#include "base/log.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::fetch {
namespace {

std::vector<std::string> bases_of(const DataSet& set, std::string mirror) {
  if (mirror.empty()) return set.bases;
  if (!mirror.starts_with("http://") && !mirror.starts_with("https://") && !mirror.starts_with("file://")) {
    throw Error(ExitCode::usage,
                "--mirror " + mirror + ": expected a URL that begins with http://, https:// or file:///");
  }
  if (std::any_of(mirror.begin(), mirror.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; })) {
    throw Error(ExitCode::usage, "--mirror " + mirror + ": a URL has no spaces; write %20 for each");
  }
  if (mirror.back() != '/') mirror += '/';
  return {mirror};
}

std::string how_to_use(const DataSet& set, const std::string& root) {
  const std::string text = set.name + " is in " + root + ": set data.name = \"" + set.name + "\"";
  return set.found_in_root && root == set.root
             ? text
             : text + " and data.root = \"" + std::filesystem::absolute(root).string() + "\"";
}

}  // namespace

std::string fetch(const DataSet& set, const FetchOptions& options) {
  const std::string root = options.root.empty() ? set.root : options.root;
  const std::vector<std::string> bases = bases_of(set, options.mirror);
  for (const RemoteFile& file : set.files) {
    std::vector<std::string> urls;
    for (const std::string& base : bases) urls.push_back(base + file.name);
    download(file, root, urls);
  }
  for (const RemoteFile& file : set.files) {
    if (!file.members.empty()) log::plain(file.name + ": " + unpack(file, root));
  }
  return how_to_use(set, root);
}

const std::vector<DataSet>& catalogue() {
  // The MD5 sums of the files are those of torchvision (MNIST) and of Zalando's README (Fashion-MNIST).
  static const std::vector<DataSet> all{
      {"mnist",
       "data/mnist",
       true,
       {"https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"},
       {{"train-images-idx3-ubyte.gz", 9'912'422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
        {"train-labels-idx1-ubyte.gz", 28'881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
        {"t10k-images-idx3-ubyte.gz", 1'648'877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
        {"t10k-labels-idx1-ubyte.gz", 4'542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}}},
      // The data set of that name reads the files of a Debian package unless data.root is set.
      {"fashion-mnist",
       "data/fashion-mnist",
       false,
       {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"},
       {{"train-images-idx3-ubyte.gz", 26'421'880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
        {"train-labels-idx1-ubyte.gz", 29'515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
        {"t10k-images-idx3-ubyte.gz", 4'422'102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
        {"t10k-labels-idx1-ubyte.gz", 5'148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}}},
      {"cifar10",
       "data/cifar10",
       true,
       {"https://www.cs.toronto.edu/~kriz/"},
       {{"cifar-10-binary.tar.gz",
         170'052'171,
         "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
         {"cifar-10-batches-bin/data_batch_1.bin", "cifar-10-batches-bin/data_batch_2.bin",
          "cifar-10-batches-bin/data_batch_3.bin", "cifar-10-batches-bin/data_batch_4.bin",
          "cifar-10-batches-bin/data_batch_5.bin", "cifar-10-batches-bin/test_batch.bin"}}}}};
  return all;
}

std::vector<std::string> data_set_names() {
  return tools::each(catalogue(), &DataSet::name);
}

const DataSet& find_data_set(const std::string& name) {
  for (const DataSet& set : catalogue()) {
    if (set.name == name) return set;
  }
  throw Error(ExitCode::usage, "data set \"" + name + "\": " + expected_one_of(name, data_set_names()));
}

}  // namespace ddprun::fetch
