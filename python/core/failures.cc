#include "python/core/failures.h"

#include <c10/util/Exception.h>

#include <optional>
#include <string>

#include "trireme/error.h"

namespace trireme::python {
namespace {

/// What Python code that C++ called has raised, until the error it led to arrives in Python. Under
/// the interpreter's lock.
struct Raised {
  std::string text;
  py::object exception;
};
std::optional<Raised>& last_raised() {
  static auto* raised = new std::optional<Raised>;  // outlives the interpreter
  return *raised;
}

/// `ValueError: too long (model.py:12, in forward)`.
std::string describe(const py::error_already_set& failure) {
  std::string text = py::str(failure.type().attr("__name__"));
  text += ": " + std::string(py::str(failure.value()));
  py::object frames = py::module_::import("traceback").attr("extract_tb")(failure.trace());
  if (py::len(frames) == 0) return text;
  const py::object last = frames[py::int_(-1)];
  return text + " (" + std::string(py::str(last.attr("filename"))) + ":" +
         std::string(py::str(last.attr("lineno"))) + ", in " +
         std::string(py::str(last.attr("name"))) + ")";
}

template <typename T>
py::object or_none(const std::optional<T>& value) {
  return value ? py::cast(*value) : py::none();
}

py::object to_exception(const Error& error) {
  py::object exception = py::module_::import("trireme.errors").attr("Error")(error.what());
  exception.attr("kind") = std::string(to_text(error.kind()));
  exception.attr("message") = error.message();
  exception.attr("rank") = or_none(error.context().rank);
  exception.attr("peer") = or_none(error.context().peer);
  exception.attr("operation") = error.context().operation;
  exception.attr("step") = or_none(error.context().step);
  exception.attr("microbatch") = or_none(error.context().microbatch);
  std::optional<Raised>& raised = last_raised();
  if (raised && std::string(error.what()).find(raised->text) != std::string::npos) {
    exception.attr("__cause__") = raised->exception;
  }
  raised.reset();
  return exception;
}

}  // namespace

Shared::Shared(py::object object)
    : object_(new py::object(std::move(object)), [](const py::object* held) {
        if (Py_IsInitialized() == 0) return;  // its memory is gone with the interpreter
        const py::gil_scoped_acquire lock;
        delete held;
      }) {}

void throw_failure(py::error_already_set& failure) {
  std::string text = describe(failure);
  last_raised() = Raised{text, failure.value()};
  C10_THROW_ERROR(Error, text);
}

void throw_if_damaged(py::error_already_set& failure) {
  const py::object error = py::module_::import("trireme.errors").attr("Error");
  if (!failure.matches(error)) return;
  const py::object raised = failure.value();
  const std::string damaged(to_text(ErrorKind::kCorruptData));
  if (std::string(py::str(py::getattr(raised, "kind", py::none()))) != damaged) return;
  std::string text = py::str(py::getattr(raised, "message", py::str()));
  if (text.empty()) text = py::str(raised);
  last_raised() = Raised{.text = text, .exception = raised};
  throw Error(ErrorKind::kCorruptData, text);
}

void bind_failures(py::module_&) {
  py::register_local_exception_translator([](std::exception_ptr failure) {
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      const py::object exception = to_exception(error);
      PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
    }
  });
}

}  // namespace trireme::python
