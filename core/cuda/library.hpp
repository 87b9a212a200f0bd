// A library of NVIDIA's, opened when it is first asked for: nothing of CUDA is linked, and no header of it is needed.
#pragma once

#include <string>

namespace ddprun::cuda {

class Library {
 public:
  // Opens `name`, a SONAME or a path; it stays open until the process ends. One that the process has already, under
  // that SONAME, is the one. Any thread.
  explicit Library(const char* name);

  bool found() const { return handle_ != nullptr; }
  // The loader's words where it was not found.
  const std::string& why() const { return why_; }

  // The function `name`, whose type the caller knows; null where the library has none.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

  // The same, of a library that must have it. Throws Error(plugin) that names both.
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
