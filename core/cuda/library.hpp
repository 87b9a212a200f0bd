// A library of NVIDIA's, loaded on first use, so that CUDA is not linked and its headers are not needed.
#pragma once

#include <string>

namespace ddprun::cuda {

class Library {
 public:
  // Opens `name`, a SONAME or a path, and keeps it open until the process ends. A library that the process has already
  // loaded under that SONAME is used. Thread-safe.
  explicit Library(const char* name);

  bool found() const { return handle_ != nullptr; }
  // The loader's message if the library was not found.
  const std::string& why() const { return why_; }

  // The function `name`, with the type that the caller gives; null if the library does not have it.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

  // The same for a required function. Throws Error(plugin) that names library and function.
  template <class Function>
  void bind(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(required(name));
  }

 private:
  void* symbol(const char* name) const;
  void* required(const char* name) const;

  std::string name_;
  void* handle_;
  std::string why_;
};

}  // namespace ddprun::cuda
