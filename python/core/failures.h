#pragma once

#include <memory>
#include <utility>

#include "python/core/bind.h"

namespace trireme::python {

/// A Python object that C++ may copy and let go on any thread.
class Shared {
 public:
  explicit Shared(py::object object);

  /// Call it under the interpreter's lock.
  const py::object& get() const { return *object_; }

 private:
  std::shared_ptr<const py::object> object_;
};

/// Throws what Python raised as an error of the model: its type, text and line. Whoever turns that
/// into a Python exception names the raised one as its cause.
[[noreturn]] void throw_failure(py::error_already_set& failure);

/// Throws kCorruptData where that is what a data set has raised: a trireme.Error of the kind `corrupt data`.
void throw_if_damaged(py::error_already_set& failure);

/// Runs `call` under the interpreter's lock, from any thread. Returns no Python objects.
template <typename Call>
auto in_python(const Call& call) {
  const py::gil_scoped_acquire lock;
  try {
    return call();
  } catch (py::error_already_set& failure) {
    throw_failure(failure);
  }
}

}  // namespace trireme::python
