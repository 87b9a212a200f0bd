#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "fake_files.hpp"
#include "plugin/options.hpp"
#include "plugin/registry.hpp"
#include "support/error_of.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::plugin {
namespace {

// "3: comm plugin <path of the fake>: <rest>"
std::string refusal(const std::string& name, const std::string& rest) {
  return "3: comm plugin " + file_of(name) + ": " + rest;
}

}  // namespace

TEST_CASE("a name is found in the search path, and the registry returns the plugin's table") {
  const CommPlugin good = Registry({"/nonexistent", kFakes}).comm("good");
  CHECK(good.path == file_of("good"));
  CHECK(std::string(good.table->name) == "good");
  CHECK(std::string(good.table->version) == "1.2.3");
  CHECK(good.table->algorithm_count == 1);
}

TEST_CASE("a name with a slash is a path") {
  CHECK(Registry({}).comm(file_of("good")).path == file_of("good"));
  CHECK(comm_error("./nothing.so") ==
        "3: comm plugin " + (fs::current_path() / "nothing.so").string() + ": not found: there is no such file");
}

TEST_CASE("a plugin given by its path may have any file name") {
  const Copy good("good");
  const std::string other = (good.folder.path() / "mine.so").string();
  fs::rename(good.path, other);
  CHECK(Registry({}).comm(other).path == other);
}

TEST_CASE("the first folder that has the plugin wins") {
  const Copy good("good");
  CHECK(Registry({good.folder.path().string(), kFakes}).comm("good").path == good.path);
  CHECK(Registry({kFakes, good.folder.path().string()}).comm("good").path == file_of("good"));
}

TEST_CASE("the error for a missing plugin has the search path, the available plugins and the nearest name") {
  const Copy good("good");
  fs::copy_file(file_of("throwing"), good.folder.path() / "libddprun_comm_throwing.so");
  const std::string folder = good.folder.path().string();
  CHECK(error_of([&] {
          Registry({"/nonexistent", folder}).comm("goood");
        }) == "3: comm plugin \"goood\": not found: looked in /nonexistent (no such folder), " + folder +
                  "; there is \"good\" and \"throwing\" (did you mean \"good\"?)");
  CHECK(error_of([&] { Registry({folder}).model("resnet18", "2.11.0", 1); }) ==
        "3: model plugin \"resnet18\": not found: looked in " + folder + "; no model plugin is there");
  CHECK(error_of([] { Registry({}).comm("gloo"); }) ==
        "3: comm plugin \"gloo\": not found: looked in nowhere; no comm plugin is there");
}

TEST_CASE("the error for a file that cannot be loaded has the loader's message") {
  const TempDir folder;
  const std::string path = folder.write("libddprun_comm_text.so", "this is no shared library");
  CHECK(comm_error("text", folder.path().string()) ==
        "3: comm plugin " + path + ": cannot be loaded: " + path + ": file too short");
}

TEST_CASE("a broken link is listed as a refused entry") {
  const Copy good("good");
  const fs::path link = good.folder.path() / "libddprun_comm_gone.so";
  fs::create_symlink("/nonexistent/libddprun_comm_gone.so", link);
  const std::vector<Listed> listed = Registry({good.folder.path().string()}).list();
  REQUIRE(listed.size() == 2);
  const Listed& gone = listed[0].name == "gone" ? listed[0] : listed[1];
  CHECK(std::get<std::string>(gone.content) ==
        "comm plugin " + link.string() + ": cannot be loaded: No such file or directory");
}

TEST_CASE("a library without the entry point is refused") {
  CHECK(comm_error("no_entry") == refusal("no_entry",
                                          "no entry point: it does not export ddprun_comm_plugin_v1; is it "
                                          "a comm plugin of another version?"));
}

TEST_CASE("a model in place of a comm plugin is reported as a model") {
  const std::string path = kFakes + "/libddprun_model_other_torch.so";
  CHECK(comm_error(path) ==
        "3: comm plugin " + path + ": no entry point: it does not export ddprun_comm_plugin_v1; it is a model plugin");
}

TEST_CASE("the error for a plugin of another ABI has both versions") {
  CHECK(comm_error("newer_abi") ==
        refusal("newer_abi",
                "wrong ABI: the plugin has version 3, this ddprun takes version 1; rebuild the plugin with "
                "this ddprun's headers"));
}

TEST_CASE("a table may be longer than version 1, because tables grow at their end, but not shorter") {
  CHECK(comm_error("longer") == "no error");
  CHECK(comm_error("shorter") ==
        refusal("shorter",
                "wrong ABI: its table has 64 bytes, version 1 has 168; rebuild the plugin with "
                "this ddprun's headers"));
  CHECK(comm_error("cut") == refusal("cut",
                                     "wrong ABI: its table has 176 bytes, version 1 has 180; rebuild the plugin with "
                                     "this ddprun's headers"));
}

TEST_CASE("the error for an incomplete table has the field's name") {
  CHECK(comm_error("no_allreduce") == refusal("no_allreduce", "incomplete: allreduce is null"));
  CHECK(comm_error("no_alloc") == refusal("no_alloc", "incomplete: alloc is null"));
  CHECK(comm_error("no_reduce_scatter") == refusal("no_reduce_scatter", "incomplete: reduce_scatter is null"));
  CHECK(comm_error("no_exchange") == refusal("no_exchange", "incomplete: exchange is null"));
  CHECK(comm_error("before_exchange") == refusal("before_exchange", "incomplete: exchange is null"));
  CHECK(comm_error("no_test") == refusal("no_test", "incomplete: test is null"));
  CHECK(comm_error("no_algorithm") == refusal("no_algorithm", "incomplete: it declares no algorithm"));
}

TEST_CASE("a plugin whose name differs from its file's is refused") {
  CHECK(comm_error("misnamed") == refusal("misnamed",
                                          "wrong name: the plugin calls itself \"another\", its file \"misnamed\"; "
                                          "rename one of the two"));
}

TEST_CASE("capabilities that cannot be true are refused with the reason") {
  const std::string newer = "; remove them, or install a newer ddprun";
  CHECK(comm_error("no_memory") ==
        refusal("no_memory", "incomplete: capabilities has neither DDPRUN_CAP_HOST nor DDPRUN_CAP_CUDA"));
  CHECK(
      comm_error("unknown_capability") ==
      refusal("unknown_capability", "wrong ABI: capabilities has bits that this ddprun does not know: 0x300" + newer));
  CHECK(comm_error("blocking_and_ordered") ==
        refusal("blocking_and_ordered",
                "contradiction: capabilities has both DDPRUN_CAP_BLOCKING and DDPRUN_CAP_STREAM_ORDERED"));
}

TEST_CASE("algorithms that nothing can use are refused with the reason") {
  const std::string newer = "; remove them, or install a newer ddprun";
  CHECK(comm_error("auto") ==
        refusal("auto", "wrong name: algorithms[0] is \"auto\", which means that the plugin chooses"));
  CHECK(comm_error("no_dtypes") == refusal("no_dtypes", "incomplete: algorithms[0] (none) has no dtypes"));
  CHECK(comm_error("no_ops") == refusal("no_ops", "incomplete: algorithms[0] (none) has no ops"));
  CHECK(comm_error("unknown_dtype") ==
        refusal("unknown_dtype",
                "wrong ABI: dtypes of algorithms[0] (none) has bits that this ddprun does not know: "
                "0x100000" +
                    newer));
}

TEST_CASE("options that are declared wrongly are refused with the reason") {
  const auto second = [](const std::string& name, const std::string& why) {
    return refusal(name, "wrong option: options[1] (second): " + why);
  };
  CHECK(comm_error("option_short") ==
        refusal("option_short",
                "wrong ABI: options[1] has 32 bytes, version 1 has 64; rebuild the plugin with this ddprun's headers"));
  CHECK(comm_error("option_unnamed") ==
        refusal("option_unnamed", "wrong option: the name of options[1] is null or empty"));
  CHECK(comm_error("option_twice") == refusal("option_twice", "wrong option: options[1] is \"first\" again"));
  CHECK(comm_error("option_no_meaning") == second("option_no_meaning", "its meaning is null or empty"));
  CHECK(comm_error("option_type") == second("option_type", "it has the type 99, which this ddprun does not know"));
  CHECK(comm_error("option_default") ==
        second("option_default", "its default_value is \"9\": expected an integer from 1 to 8"));
  CHECK(comm_error("option_least") == second("option_least", "its least is \"one\": expected an integer"));
  CHECK(comm_error("option_range") == second("option_range", "its most is \"8\": expected an integer of at least 9"));
  CHECK(comm_error("option_text_range") == second("option_text_range", "it has a range, but no number"));
  CHECK(comm_error("option_no_choices") == second("option_no_choices", "its choices is null"));
  CHECK(comm_error("option_choices") == second("option_choices", "it has choices, but is no CHOICE and no number"));
}

TEST_CASE("declared options are found, and a table that ends before them declares nothing") {
  const auto* const longer = Registry({kFakes}).comm("longer").table;
  const auto declared = option_specs(*longer);
  REQUIRE(declared.has_value());
  REQUIRE(declared->size() == 2);
  CHECK(std::string(declared->at(1).name) == "second");
  const auto errors = option_errors(*longer, {{"first", ""}, {"scond", "1"}, {"second", "9"}});
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].name == "scond");
  CHECK(errors[0].reason ==
        "backend \"longer\" has no such option; expected \"first\" or \"second\" (did you mean \"second\"?)");
  CHECK(errors[1].name == "second");
  CHECK(errors[1].reason == "expected an integer from 1 to 8");

  const auto* const before = Registry({kFakes}).comm("before_options").table;
  CHECK_FALSE(option_specs(*before).has_value());
  CHECK(option_errors(*before, {{"scond", "1"}}).empty());
}

TEST_CASE("a library that crashes, ends the process or throws when it is loaded is refused") {
  const auto loaded = [](const std::string& what) {
    return "refused: while it was loaded, " + what +
           "; if its file is whole, look at its static constructors and its table";
  };
  CHECK(comm_error("crashes") == refusal("crashes", loaded("the child process crashed: Segmentation fault")));
  CHECK(comm_error("wild_name") == refusal("wild_name", loaded("the child process crashed: Segmentation fault")));
  CHECK(comm_error("exits") == refusal("exits", loaded("the child process ended with exit code 0")));
  CHECK(comm_error("quits") == refusal("quits", loaded("the child process ended with exit code 7")));
// No exception passes dlopen() of ThreadSanitizer and of glibc 2.41.
#if defined(DDPRUN_TSAN) || __GLIBC_PREREQ(2, 41)
  const char* const thrown = "the child process crashed: Aborted";
#else
  const char* const thrown = "it threw \"no constructor today\"";
#endif
  CHECK(comm_error("throws_when_loaded") == refusal("throws_when_loaded", loaded(thrown)));
}

TEST_CASE("a truncated library is refused") {
  const Copy good("good");
  const auto whole = fs::file_size(good.path);
  for (const auto size : {whole / 20, whole / 50}) {  // debug information follows the segments
    fs::resize_file(good.path, size);
    const std::string error = comm_error("good", good.folder.path().string());
    CHECK_MESSAGE(error.starts_with("3: comm plugin " + good.path + ": "), error);
  }
}

TEST_CASE("a world-writable file is refused, a group-writable one is not") {
  const Copy good("good");
  ::chmod(good.path.c_str(), 0775);
  CHECK(comm_error(good.path) == "no error");
  ::chmod(good.path.c_str(), 0777);
  CHECK(comm_error(good.path) == "3: comm plugin " + good.path + ": refused: " + good.path +
                                     " can be written by everyone; run chmod o-w " + good.path);
}

TEST_CASE("a world-writable folder is refused, unless it is sticky") {
  const Copy good("good");
  const std::string folder = good.folder.path().string();
  ::chmod(folder.c_str(), 01777);
  CHECK(comm_error("good", folder) == "no error");
  ::chmod(folder.c_str(), 0777);
  CHECK(comm_error("good", folder) == "3: comm plugin " + good.path + ": refused: " + folder +
                                          " can be written by everyone; run chmod o-w " + folder);
}

TEST_CASE("a link is refused if its folder, its target or the target's folder is world-writable") {
  const Copy good("good");
  const TempDir links;
  const std::string link = (links.path() / "libddprun_comm_good.so").string();
  fs::create_symlink(good.path, link);
  CHECK(comm_error(link) == "no error");
  ::chmod(links.path().c_str(), 0777);
  CHECK(comm_error(link).find("refused: " + links.path().string() + " can be written") != std::string::npos);
  ::chmod(links.path().c_str(), 0700);
  ::chmod(good.folder.path().c_str(), 0777);
  CHECK(comm_error(link).find("refused: " + good.folder.path().string() + " can be written") != std::string::npos);
}

TEST_CASE("the error for a model for another Torch or C++ ABI has both versions of both") {
  const auto load = [](const std::string& torch, int cxx11_abi) {
    return error_of([&] { Registry({kFakes}).model("other_torch", torch, cxx11_abi); });
  };
  const std::string built = "3: model plugin " + kFakes +
                            "/libddprun_model_other_torch.so: wrong Torch: the plugin was built for Torch 1.13.1+cu117 "
                            "with _GLIBCXX_USE_CXX11_ABI=0, this program has Torch ";
  const std::string advice = "; rebuild the plugin with this program's Torch";
  CHECK(load("2.11.0+cu130", 1) == built + "2.11.0+cu130 with _GLIBCXX_USE_CXX11_ABI=1" + advice);
  CHECK(load("1.13.1", 1) == built + "1.13.1 with _GLIBCXX_USE_CXX11_ABI=1" + advice);
  CHECK(load("1.13.10", 0) == built + "1.13.10 with _GLIBCXX_USE_CXX11_ABI=0" + advice);
  CHECK(load("1.13.1+cpu", 0) == "no error");
}

TEST_CASE("the list has every plugin in the search path, or the reason why it is refused") {
  const auto listed = Registry({kFakes, kFakes}).list();
  const auto files = std::count_if(fs::directory_iterator(kFakes), fs::directory_iterator(),
                                   [](const auto& entry) { return entry.path().extension() == ".so"; });
  CHECK(listed.size() == static_cast<std::size_t>(files));
  const auto entry = [&](const std::string& name) {
    return *std::find_if(listed.begin(), listed.end(), [&](const Listed& one) { return one.name == name; });
  };
  CHECK(std::string(std::get<const ddprun_comm_plugin*>(entry("good").content)->library) == "slots 0.1");
  CHECK(std::get<const ddprun_model_plugin*>(entry("other_torch").content)->cxx11_abi == 0);
  CHECK(entry("other_torch").kind == Kind::model);
  CHECK("3: " + std::get<std::string>(entry("no_entry").content) == comm_error("no_entry"));
}

}  // namespace ddprun::plugin
